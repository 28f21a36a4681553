"""Explain why memories were selected or left out, for ``memctl prefetch --explain``. Pure.

Explaining marks nothing as surfaced, so a second call gives the same result.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from memd.recall.rank import Ranked

# The reasons to leave a memory out, besides those of ``rank.py``.
# Before the ranking:
ALREADY_SURFACED = "already surfaced in this session"
ALREADY_READ = "already read"
RECENT_TOOL = "explains a tool that was just used"
TEAM_OFF = "team memories are off"
# After it:
NOT_SELECTED = "not chosen by the model"
UNREADABLE = "cannot be read"
SESSION_BUDGET = "does not fit the session's budget"
NO_ROOM = "no room in the block"

MOST_ROWS = 100  # a person reads the first ten


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


def explained_rows(
    ranked: Iterable[Ranked],
    excluded: Mapping[str, tuple[str, str]],
    sent: Mapping[str, str],
    unsent: Mapping[str, str],
    otherwise: str,
) -> list[Row]:
    """Return rows for memories that were ranked, excluded or sent: those that are sent first.

    All mappings are by path: ``excluded`` to name and reason, ``sent`` to the name, ``unsent`` to
    the reason why a selected memory is not sent. ``otherwise`` is the reason of any other.
    """
    considered = {
        each.row.path: Row(
            path=each.row.path,
            name=each.row.name,
            score=each.score,
            parts=each.parts,
            terms=each.terms,
            reason=each.cut,
        )
        for each in ranked
    }
    for path, (name, reason) in sorted(excluded.items()):
        considered[path] = Row(path, name, reason=reason)
    # A model may choose memories without a word of the prompt, which have no row yet.
    considered = {path: Row(path, name) for path, name in sent.items()} | considered
    rows = []
    for path, row in considered.items():
        is_sent = path in sent
        reason = "" if is_sent else unsent.get(path) or row.reason or otherwise
        rows.append(replace(row, kept=is_sent, reason=reason))
    rows.sort(key=lambda row: (False, 0.0, "") if row.kept else (True, -row.score, row.path))
    return rows[:MOST_ROWS]
