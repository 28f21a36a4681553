"""Why a memory was brought or left out: what ``memctl prefetch --explain`` shows. Pure.

An explanation is made dry: nothing is marked, so asking twice gives the same answer twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# Why a memory was left out, beside what ``state/scoring.py`` says of those that it weighed.
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


@dataclass(frozen=True, slots=True)
class Row:
    """A memory that was looked at: what its score is made of, and why it was left out.

    ``path`` is relative to the memory directory. ``score`` is the sum of ``parts``; ``terms`` are
    the words of the query that it holds. ``reason`` is empty for one that is ``kept``.
    ``last_surfaced`` is an ISO 8601 time, null when the ledger knows of none.
    """

    path: str
    name: str
    score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    terms: tuple[str, ...] = ()
    kept: bool = False
    reason: str = ""
    last_surfaced: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """How an answer came about.

    ``candidates`` counts the memories that could have been brought, whether they match or not.
    ``surfaced_bytes`` is what the session has been given before this call, ``cap`` what it may be
    given in all; both in bytes.
    """

    strategy: str
    note: str = ""
    candidates: int = 0
    surfaced_bytes: int = 0
    cap: int = 0
    rows: tuple[Row, ...] = ()


def ordered(rows: Iterable[Row], most: int = MOST_ROWS) -> tuple[Row, ...]:
    """Return rows as they are shown: what is kept in its own order, then the best of the rest."""
    rows = tuple(rows)
    retained = [row for row in rows if row.kept]
    cut = sorted((row for row in rows if not row.kept), key=lambda row: (-row.score, row.path))
    return tuple((retained + cut)[:most])
