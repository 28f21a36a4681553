"""What a dream's proposal says, as values, and how that stands as JSON. Pure.

Rules of this file
- A row is input: anything may have damaged the state file. What comes out has the types and the
  bounds that memd itself writes, or the proposal is one that cannot be read.
- Texts are exact. A byte that is no UTF-8 stands in the JSON as the lone surrogate that Python
  makes of it, and comes back as that byte.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memd.core.text import one_line, sha256

OPEN, ACCEPTED, PARTLY, REJECTED = "open", "accepted", "partly", "rejected"
_EDITS = 2000  # four times what one change may have
_PATH_CHARACTERS = 1000
_REASON_CHARACTERS = 500
_LATEST_NS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """One file of a proposal: what it was, and what it would be; ``None`` where there is no file.

    ``base`` is the hash of what it was, "" for none. ``before`` may be unknown where there was a
    file. ``merged_into`` names the memory that says what a removed one said, "" for none.
    ``mtime_ns`` is set where the change must not make the memory look newer.
    """

    path: str
    content: bytes | None
    base: str = ""
    before: bytes | None = None
    reason: str = ""
    merged_into: str = ""
    state: str = OPEN
    mtime_ns: int | None = None

    def facts(self) -> dict[str, Any]:
        """Return the edit as JSON members."""
        return {
            "path": self.path,
            "content": _as_text(self.content),
            "base": self.base,
            "before": _as_text(self.before),
            "reason": self.reason,
            "merged_into": self.merged_into,
            "state": self.state,
            "mtime_ns": self.mtime_ns,
        }

    @property
    def wanted(self) -> str:
        """What the dream wanted with the file, in a line."""
        reason = f": {self.reason}" if self.reason else ""
        if self.content is None and self.merged_into:
            return f"merge {self.path} into {self.merged_into}"
        if self.content is None:
            return one_line(f"remove {self.path}{reason}", _REASON_CHARACTERS)
        verb = "change" if self.base else "create"
        return one_line(f"{verb} {self.path}{reason}", _REASON_CHARACTERS)


def read_edits(content: Mapping[str, Any]) -> tuple[ProposedEdit, ...] | None:
    """Return the edits of a proposal's content, ``None`` where they make no sense."""
    items = content.get("edits")
    if not isinstance(items, list) or len(items) > _EDITS:
        return None
    found = [_read_edit(item) for item in items]
    edits = tuple(edit for edit in found if edit is not None)
    if len(edits) < len(items) or len({edit.path for edit in edits}) < len(edits):
        return None
    return edits


def state_of(edits: Iterable[ProposedEdit]) -> str:
    """Return the state of a whole proposal: open as long as one of its edits is."""
    states = {edit.state for edit in edits}
    if OPEN in states or not states:
        return OPEN
    return states.pop() if len(states) == 1 else PARTLY


def is_plain(value: object, characters: int) -> bool:
    """Say whether a value is a text of no more characters that can be kept and sent."""
    if not isinstance(value, str) or len(value) > characters:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_edit(item: object) -> ProposedEdit | None:
    if not isinstance(item, dict):
        return None
    path, base, state = item.get("path"), item.get("base"), item.get("state", OPEN)
    reason, into = item.get("reason", ""), item.get("merged_into", "")
    mtime = item.get("mtime_ns")
    plain = (path, reason, into, "" if base is None else base)
    if not path or not all(is_plain(value, _PATH_CHARACTERS) for value in plain):
        return None
    try:
        content, before = _as_bytes(item.get("content")), _as_bytes(item.get("before"))
    except (TypeError, UnicodeEncodeError):
        return None
    if state not in (OPEN, ACCEPTED, REJECTED):
        return None
    if base is None:  # an older memd did not say; what it had not read it must not replace
        base = "" if before is None else sha256(before)
    fits = type(mtime) is int and 0 <= mtime <= _LATEST_NS
    return ProposedEdit(
        str(path), content, str(base), before, one_line(str(reason), _REASON_CHARACTERS),
        str(into), state, mtime if fits else None,
    )  # fmt: skip


def _as_text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="surrogateescape")


def _as_bytes(text: Any) -> bytes | None:
    """Return the bytes of a text. Raises TypeError and UnicodeEncodeError for what is none."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError
    return text.encode(errors="surrogateescape")
