"""Check whether a file may be shared with a team, before it is sent or written here. Pure.

Its name must be valid on any disk, its head that of a memory, its type one of the three that are
not about a person, its size below the limit, and its text without credentials.
"""

from memd.base.errors import Invalid, Refused
from memd.base.names import TEAM
from memd.base.team import ENTRY_BYTES, HeldEntry
from memd.base.values import MemoryType
from memd.store import memory, secret
from memd.team.wire import check_key

_NOT_UTF8 = "it is not UTF-8"
_DAMAGED = "its frontmatter cannot be read"


def refusal(key: str, key_hash: str, content: bytes, most: int = ENTRY_BYTES) -> HeldEntry | None:
    """Return a held entry with the reason why a file may not be shared, ``None`` if it may be.

    ``most`` is the limit in bytes.
    """
    reason, detail = _broken_rule(key, content, most)
    return HeldEntry(key, key_hash, reason, detail) if reason else None


def _broken_rule(key: str, content: bytes, most: int) -> tuple[str, str]:
    """Return the reason of ``HeldEntry`` and a detail for the first broken rule, or "" and ""."""
    try:
        check_key(key)
    except Refused as error:
        return "name", str(error.facts["rule"])
    if len(content) > most:
        return "too_large", f"it has {len(content)} bytes, an entry may have {most}"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "refused", _NOT_UTF8
    parsed = memory.parse(content, f"{TEAM}{key}")
    if parsed.damaged or parsed.type in (None, MemoryType.USER):
        return "type", _DAMAGED if parsed.damaged else f"its type is {parsed.type or 'missing'}"
    results = secret.find(text) or secret.find(key)
    if results:
        return "secret", f"line {results[0].line} looks like a secret ({results[0].rule})"
    problems = _format_problems(content)  # the server would refuse them without details
    return ("refused", problems) if problems else ("", "")


def _format_problems(content: bytes) -> str:
    """Return what a file lacks to be a memory, "" for nothing."""
    try:
        memory.validate(content, "")
    except Invalid as error:
        return str(error.facts["problems"])
    return ""
