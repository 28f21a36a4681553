"""Explain why memories were selected or left out, for ``memctl prefetch --explain``. Pure.

Explaining marks nothing as surfaced, so a second call gives the same result.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

# The reasons to leave a memory out, besides those of ``search/ranking.py``.
# Before the ranking:
ALREADY_SURFACED = "already surfaced in this session"
ALREADY_READ = "already read"
RECENT_TOOL = "explains a tool that was just used"
TEAM_OFF = "team memories are off"
NOT_TEXT = "its name is no text"
# After it:
NOT_SELECTED = "not chosen by the model"
UNREADABLE = "cannot be read"
SESSION_BUDGET = "does not fit the session's budget"
NO_ROOM = "no room in the block"

MOST_ROWS = 100  # as many as an engine proposes; a person reads the first ten


class Row(Struct, frozen=True):
    """A memory that was considered: the parts of its score, and why it was left out.

    ``path`` is relative to the memory directory. ``score`` is the sum of ``parts``; ``terms`` are
    the words of the query in it. ``kept`` says that it was selected; then ``reason`` is "".
    ``last_surfaced`` is an ISO 8601 time, null if it never was.
    """

    path: str
    name: str
    score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    terms: tuple[str, ...] = ()
    kept: bool = False
    reason: str = ""
    last_surfaced: str | None = None


class Explanation(Struct, frozen=True):
    """How a selection was made, for a person.

    ``candidates`` counts all memories of the directory. ``surfaced_bytes`` is what the session got
    before this call, ``cap`` what it may get in all, both in bytes.
    """

    strategy: str
    note: str = ""
    candidates: int = 0
    surfaced_bytes: int = 0
    cap: int = 0
    rows: tuple[Row, ...] = ()


def ordered(rows: Iterable[Row], most: int = MOST_ROWS) -> tuple[Row, ...]:
    """Return the first ``most`` rows: selected ones in their order, then the others by score."""
    all_rows = tuple(rows)
    selected = [row for row in all_rows if row.kept]
    others = [row for row in all_rows if not row.kept]
    others.sort(key=lambda row: (-row.score, row.path))
    return tuple((selected + others)[:most])
