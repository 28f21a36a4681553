"""Check whether a file may be shared with a team, before it is sent or written here. Pure."""

from memd.core.team import ENTRY_BYTES, HeldEntry
from memd.documents.shared import broken_rules

_REASONS = {"name": "name", "size": "too_large", "type": "type"}  # others: secret, refused


def refusal(key: str, key_hash: str, content: bytes, most: int = ENTRY_BYTES) -> HeldEntry | None:
    """Return a held entry with the reason why a file may not be shared, ``None`` if it may be.

    ``most`` is the limit in bytes.
    """
    broken = next(broken_rules(key, content, most), None)
    if broken is None:
        return None
    other = "secret" if broken.rule.startswith("secret:") else "refused"
    return HeldEntry(key, key_hash, _REASONS.get(broken.rule, other), broken.detail)
