"""Store suggestions: statements that may become memories once a person accepts them.

A suggestion is stored in the transaction that marks its change set applied, together with the
cursor that passed its message.

Rules of this file
- Texts that differ only in case, spacing and punctuation are one row in each directory. One that
  was taken or dismissed does not come back; one that expired does if it is said again.
- At most ``OPEN_MOST`` are open in a directory; beyond that the oldest expire.
- A suggestion is shown at most twice, to two different sessions.
- A decided or expired row holds no text, only the hash by which the text is recognised.
- The state file may be damaged: a row with invalid values does not affect others.
"""

import json
import os
import re
from collections.abc import Iterable

from msgspec import Struct

from memd.base.text import sha256
from memd.base.values import Suggestion, SuggestionDecided
from memd.state.database import Cursor, Database, Row
from memd.text.normal import normal

SCHEMA = """
CREATE TABLE IF NOT EXISTS suggestions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    hash TEXT NOT NULL,
    state TEXT NOT NULL,
    filed REAL NOT NULL,
    session TEXT NOT NULL,
    text TEXT NOT NULL,
    at REAL NOT NULL,
    origin TEXT NOT NULL,
    type TEXT NOT NULL,
    reason TEXT NOT NULL,
    offered_first TEXT,
    offered_second TEXT,
    UNIQUE (directory, hash)
) STRICT;
CREATE INDEX IF NOT EXISTS suggestions_state ON suggestions (directory, state);
"""
OPEN, TAKEN, DISMISSED, EXPIRED = "open", "taken", "dismissed", "expired"
OPEN_MOST = 20  # open suggestions of a memory directory
CHARACTERS = 2000  # of a text: what is longer is no statement
_CLOSED_MOST = 1000  # decided or expired rows of a directory
_LATEST_TIME = 253_402_300_799.0  # the end of the year 9999: later times have no ISO form
_SIGNS = re.compile(r"[\W_]+")
# An expired suggestion opens again. An open one is replaced, except a person's words by a model's.
_SAVE = """
INSERT INTO suggestions (directory, hash, state, filed, session, text, at, origin, type, reason)
VALUES (?, ?, 'open', ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (directory, hash) DO UPDATE SET
    state = 'open', filed = excluded.filed, session = excluded.session, text = excluded.text,
    at = excluded.at, origin = excluded.origin, type = excluded.type, reason = excluded.reason
WHERE state = 'expired' OR state = 'open' AND (origin <> 'user' OR excluded.origin = 'user')
"""
# All open ones of a directory but the newest OPEN_MOST.
_EXPIRE = """
UPDATE suggestions SET state = 'expired', text = '', reason = '' WHERE number IN (
    SELECT number FROM suggestions WHERE directory = ? AND state = 'open'
    ORDER BY filed DESC, number DESC LIMIT -1 OFFSET ?)
"""
_FORGET = """
DELETE FROM suggestions WHERE state <> 'open' AND number IN (
    SELECT number FROM suggestions WHERE directory = ? AND state <> 'open'
    ORDER BY filed DESC, number DESC LIMIT -1 OFFSET ?)
"""
# Stores the session in the first free of two columns, unless it is there already.
_SURFACE = """
UPDATE suggestions SET
    offered_second = CASE WHEN offered_first IS NULL THEN NULL ELSE ?1 END,
    offered_first = coalesce(offered_first, ?1)
WHERE number = ?2 AND state = 'open' AND offered_second IS NULL AND offered_first IS NOT ?1
"""
_COUNTS = """
SELECT state, count(*) AS rows, count(offered_first) + count(offered_second) AS offered
FROM suggestions GROUP BY state
"""


class OpenSuggestion(Struct, frozen=True):
    """A suggestion that nobody has decided yet; most of it is as in ``Suggestion``."""

    id: str
    text: str
    session: str
    at: float
    origin: str
    type: str
    reason: str
    offered: tuple[str, ...]  # the sessions that it was shown to


class SuggestionCounts(Struct, frozen=True):
    """How many suggestions there are in each state, and how often they were shown."""

    open: int = 0
    offered: int = 0
    taken: int = 0
    dismissed: int = 0
    expired: int = 0


class SuggestionTable:
    """The suggestions of all directories. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_in(self, directory: str) -> tuple[OpenSuggestion, ...]:
        """Return a directory's open suggestions, newest first."""
        rows = self._database.read(
            "SELECT * FROM suggestions WHERE directory = ? AND state = 'open'"
            " ORDER BY filed DESC, number DESC",
            (os.path.realpath(directory),),
        )
        return tuple(map(_read_row, rows))

    def count_new(self, directory: str, texts: Iterable[str]) -> int:
        """Return how many of some texts are neither open nor decided in a directory."""
        hashes = {_hash(text) for text in texts if letters(text)}
        rows = self._database.read(
            "SELECT hash FROM suggestions WHERE directory = ? AND state <> 'expired'"
            " AND hash IN (SELECT value FROM json_each(?))",
            (os.path.realpath(directory), json.dumps([*hashes])),
        )
        return len(hashes) - len(rows)

    def surface(self, ids: Iterable[str], session: str) -> frozenset[str]:
        """Store that suggestions are shown to a session; return those that may be shown."""
        with self._database.transaction(synced=False) as cursor:
            return frozenset(id_ for id_ in ids if _mark_shown(cursor, id_, session))

    def decide(self, directory: str, decided: Iterable[SuggestionDecided]) -> frozenset[str]:
        """Close open suggestions of a directory; return the ids of those that were open."""
        real = os.path.realpath(directory)
        with self._database.transaction() as cursor:
            return frozenset(item.suggestion for item in decided if decide(cursor, real, item))

    def counts(self) -> SuggestionCounts:
        """Return the counts of suggestions of all directories."""
        rows = self._database.read(_COUNTS)
        known = {row["state"]: int(row["rows"]) for row in rows}
        return SuggestionCounts(
            offered=sum(int(row["offered"]) for row in rows),
            **{state: known.get(state, 0) for state in (OPEN, TAKEN, DISMISSED, EXPIRED)},
        )


def save(cursor: Cursor, directory: str, suggestion: Suggestion, at: float) -> None:
    """Store a suggestion inside a transaction at the time ``at``, unless its text has no letter."""
    text = _storable(suggestion.text)[:CHARACTERS]
    if not letters(text):
        return
    values = (
        directory,
        _hash(text),
        at,
        _storable(suggestion.session),
        text,
        _clamp_time(suggestion.at),
        _storable(suggestion.origin),
        _storable(suggestion.type),
        _storable(suggestion.reason),
    )
    cursor.execute(_SAVE, values)
    cursor.execute(_EXPIRE, (directory, OPEN_MOST))
    cursor.execute(_FORGET, (directory, _CLOSED_MOST))


def decide(cursor: Cursor, directory: str, decided: SuggestionDecided) -> bool:
    """Close an open suggestion inside a transaction; return whether it was open."""
    if decided.state not in (TAKEN, DISMISSED):
        return False
    cursor.execute(
        "UPDATE suggestions SET state = ?, text = '', reason = ''"
        " WHERE directory = ? AND number = ? AND state = 'open'",
        (decided.state, directory, _parse_id(decided.suggestion)),
    )
    return cursor.rowcount == 1


def letters(text: str) -> str:
    """Return a text's letters and digits in one case: equal results mean the same suggestion."""
    return _SIGNS.sub("", normal(text).casefold())


def _hash(text: str) -> str:
    """Return the hash by which a text is recognised."""
    return sha256(letters(_storable(text)[:CHARACTERS]).encode())


def _mark_shown(cursor: Cursor, id_: str, session: str) -> bool:
    """Store that a suggestion is shown to a session; return whether it may be shown."""
    cursor.execute(_SURFACE, (_storable(session), _parse_id(id_)))
    return cursor.rowcount == 1


def _read_row(row: Row) -> OpenSuggestion:
    """Return the open suggestion in a row."""
    offered = (row["offered_first"], row["offered_second"])
    return OpenSuggestion(
        id=f"s{row['number']}",
        text=row["text"],
        session=row["session"],
        at=_clamp_time(row["at"]),
        origin=row["origin"],
        type=row["type"],
        reason=row["reason"],
        offered=tuple(session for session in offered if isinstance(session, str)),
    )


def _parse_id(id_: str) -> int:
    """Return the row number in an id such as s12, 0 if it is not one."""
    digits = id_.removeprefix("s")
    is_number = digits.isascii() and digits.isdigit()
    fits_sqlite = len(digits) < 19  # noqa: PLR2004 - 18 digits fit SQLite's 64 bits
    return int(digits) if is_number and fits_sqlite else 0


def _clamp_time(at: float) -> float:
    """Return a time limited to the range that has an ISO 8601 form."""
    return float(min(max(0.0, at), _LATEST_TIME))  # NaN becomes 0 in this order


def _storable(text: str) -> str:
    """Return a text that SQLite can store: characters that UTF-8 cannot encode become ``?``."""
    return text.encode(errors="replace").decode()
