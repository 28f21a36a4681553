"""Proposals of dreams in the state file: what the judge kept back, and what a person decided.

Rules of this file
- A proposal is open until each of its edits is decided. What is accepted becomes so in the
  transaction that makes the accepted change true (``state/effects.py``), never before or after.
- One directory has at most twenty open ones; the oldest go. What is proposed again while it is
  open is the same proposal.
- What was refused is remembered apart, by path and by the text that it was refused of.
- Rows are input: a proposal that cannot be read is one without edits, to be rejected.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from memd.core.text import one_line, sha256
from memd.core.values import ProposalDecided
from memd.state.ages import Bound
from memd.state.database import Cursor, Database, Row
from memd.state.proposed import (
    ACCEPTED,
    OPEN,
    REJECTED,
    ProposedEdit,
    is_plain,
    read_edits,
    state_of,
)
from memd.state.records import text_of, time_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS proposals (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    job TEXT NOT NULL,
    at REAL NOT NULL,
    content TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS proposals_of_directory ON proposals (directory, number);
CREATE TABLE IF NOT EXISTS proposal_states (
    number INTEGER PRIMARY KEY,
    state TEXT NOT NULL,
    decided REAL,
    reason TEXT NOT NULL,
    digest TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS refusals (
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    base TEXT NOT NULL,
    number INTEGER NOT NULL,
    wanted TEXT NOT NULL,
    reason TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (directory, path, base)
) STRICT, WITHOUT ROWID;
"""

_MOST_OPEN = 20  # of one directory
_CONTENT_CHARACTERS = 4 * 1024 * 1024
_SAID_CHARACTERS = 20_000
_PROBLEMS = 200
_PROBLEM_CHARACTERS = 1000
_LISTED = 100
_REFUSALS = 2000
_WANTED_CHARACTERS = 1000
_ID = re.compile(r"p([0-9]{1,18})")
# A proposal of a memd that knew no states has none: it is open.
_ROWS = (
    "SELECT p.number, p.directory, p.job, p.at, p.content, s.decided, s.reason,"
    " CASE WHEN s.state IN ('accepted', 'partly', 'rejected') THEN s.state ELSE 'open' END"
    " AS standing FROM proposals p LEFT JOIN proposal_states s ON s.number = p.number"
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a dream wanted and the judge did not let through; times are seconds since 1970.

    ``state`` is open, accepted, partly or rejected; ``decided`` is when something of it was
    decided last, with the ``reason`` of a refusal. ``content`` is JSON; {} where it is none.
    """

    id: str
    directory: str
    job: str
    at: float
    state: str = OPEN
    decided: float | None = None
    reason: str = ""
    content: dict[str, Any] = field(default_factory=dict)

    @property
    def edits(self) -> tuple[ProposedEdit, ...] | None:
        """The edits, ``None`` where the row is damaged."""
        return read_edits(self.content)

    def words(self, name: str) -> str:
        """Return a text of the content, bounded; "" where there is none."""
        found = self.content.get(name)
        return _sent(found, _SAID_CHARACTERS) if isinstance(found, str) else ""

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the judge kept it back, bounded."""
        found = self.content.get("problems")
        words = found[:_PROBLEMS] if isinstance(found, list) else []
        return tuple(_sent(w, _PROBLEM_CHARACTERS) for w in words if isinstance(w, str))


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a person refused at one time, for the next dream: the files, what was wanted, why."""

    paths: tuple[str, ...]
    wanted: str
    reason: str
    at: float


class ProposalTable:
    """The durable rows of proposals. All methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def propose(self, directory: str, job: str, at: float, content: dict[str, Any]) -> str:
        """Keep a proposal and return its id, or the id of the open one that wants the same.

        Texts of more than 4 MiB are not kept: what is left says so.
        """
        digest, text = _digest(content), json.dumps(content)
        if len(text) > _CONTENT_CHARACTERS:
            text = json.dumps(_without_texts(content))
        with self._database.transaction() as cursor:
            cursor.execute(
                "SELECT p.number FROM proposals p JOIN proposal_states s ON s.number = p.number"
                " WHERE p.directory = ? AND s.state = 'open' AND s.digest = ?"
                " ORDER BY p.number DESC LIMIT 1",
                (directory, digest),
            )
            known = cursor.fetchone()
            if known is not None:
                return f"p{known['number']}"
            cursor.execute(
                "INSERT INTO proposals (directory, job, at, content) VALUES (?, ?, ?, ?)",
                (directory, job, at, text),
            )
            number = cursor.lastrowid or 0
            cursor.execute(
                "INSERT INTO proposal_states (number, state, reason, digest) VALUES (?, ?, '', ?)",
                (number, OPEN, digest),
            )
            _keep_few(cursor, directory)
        return f"p{number}"

    def proposals(self, directory: str, *, only: str = OPEN) -> tuple[Proposal, ...]:
        """Return the proposals for a memory directory, newest first; of any state with ``""``."""
        rows = self._database.read(
            f"{_ROWS} WHERE p.directory = ? AND (? = '' OR standing = ?)"
            " ORDER BY p.number DESC LIMIT ?",
            (directory, only, only, _LISTED),
        )
        return tuple(_read(row) for row in rows)

    def proposal(self, proposal: str) -> Proposal | None:
        """Return a proposal by its id, or ``None``."""
        rows = self._database.read(f"{_ROWS} WHERE p.number = ?", (_number(proposal),))
        return _read(rows[0]) if rows else None

    def waiting(self) -> dict[str, int]:
        """Return how many proposals are open, by memory directory; those with none are left out."""
        rows = self._database.read(
            f"SELECT directory, count(*) AS found FROM ({_ROWS} WHERE standing = 'open')"  # noqa: S608 - fixed words
            " GROUP BY directory"
        )
        return {text_of(row["directory"]): int(row["found"]) for row in rows}

    def decide(self, decided: ProposalDecided, at: float) -> None:
        """Write down what was decided of a proposal's open edits, as ``settle`` does."""
        with self._database.transaction() as cursor:
            settle(cursor, decided, at)

    def rejected(self, directory: str, limit: int) -> tuple[Refusal, ...]:
        """Return what was refused in a memory directory, the newest first."""
        rows = self._database.read(
            "SELECT path, number, wanted, reason, at FROM refusals WHERE directory = ?"
            " ORDER BY at DESC, number DESC, path LIMIT ?",
            (directory, _REFUSALS),
        )
        found = []
        for (at, _, reason), group in groupby(rows, lambda r: (r["at"], r["number"], r["reason"])):
            refused = list(group)
            wanted = "; ".join(text_of(row["wanted"]) for row in refused)
            paths = tuple(text_of(row["path"]) for row in refused)
            found.append(
                Refusal(paths, one_line(wanted, _WANTED_CHARACTERS), text_of(reason), time_of(at))
            )
        return tuple(found[: max(0, limit)])

    def refused_edits(self, directory: str) -> frozenset[tuple[str, str]]:
        """Return each path with the hash of the text of which a change was refused."""
        rows = self._database.read(
            "SELECT path, base FROM refusals WHERE directory = ?", (directory,)
        )
        return frozenset((text_of(row["path"]), text_of(row["base"])) for row in rows)

    def prune(self, bound: Bound) -> int:
        """Forget old decisions and old refusals; return how many rows."""
        decided = "state <> 'open' AND decided < ? AND number <= ?"
        refused = "at < ? AND number <= ?"
        old_enough = (bound.before, bound.proposal)
        old = self._database.read(
            f"SELECT 1 FROM proposal_states WHERE {decided} UNION ALL"  # noqa: S608 - fixed words
            f" SELECT 1 FROM refusals WHERE {refused} LIMIT 1",
            old_enough * 2,
        )
        if not old:
            return 0
        with self._database.transaction() as cursor:
            chosen = f"number IN (SELECT number FROM proposal_states WHERE {decided})"  # noqa: S608 - fixed words
            cursor.execute(f"DELETE FROM proposals WHERE {chosen}", old_enough)  # noqa: S608 - fixed words
            gone = cursor.rowcount
            cursor.execute(f"DELETE FROM proposal_states WHERE {decided}", old_enough)  # noqa: S608 - fixed words
            cursor.execute(f"DELETE FROM refusals WHERE {refused}", old_enough)  # noqa: S608 - fixed words
            return gone + cursor.rowcount


def settle(cursor: Cursor, decided: ProposalDecided, at: float) -> None:
    """Let a decision stand, inside a transaction; what is decided already stays as it is.

    A proposal that cannot be read, or has no edits, can only be rejected as a whole.
    """
    cursor.execute(f"{_ROWS} WHERE p.number = ?", (_number(decided.proposal),))
    row = cursor.fetchone()
    if row is None or decided.state not in (ACCEPTED, REJECTED):
        return
    found = _read(row)
    edits = found.edits
    if not edits:
        if decided.state == REJECTED and found.state == OPEN:
            _stand(cursor, row["number"], REJECTED, at, decided.reason)
        return
    paths = _parsed(decided.paths)
    wanted = {path for path in paths if isinstance(path, str)} if isinstance(paths, list) else set()
    now = [edit for edit in edits if edit.state == OPEN and edit.path in wanted]
    if not now:
        return
    chosen = {edit.path for edit in now}
    after = [replace(e, state=decided.state) if e.path in chosen else e for e in edits]
    content = json.dumps(found.content | {"edits": [edit.facts() for edit in after]})
    cursor.execute("UPDATE proposals SET content = ? WHERE number = ?", (content, row["number"]))
    _stand(cursor, row["number"], state_of(after), at, decided.reason)
    if decided.state == REJECTED:
        _refuse(cursor, found, now, decided.reason, at)


def _refuse(
    cursor: Cursor, found: Proposal, edits: Iterable[ProposedEdit], reason: str, at: float
) -> None:
    number = _number(found.id)
    cursor.executemany(
        "INSERT OR REPLACE INTO refusals (directory, path, base, number, wanted, reason, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (found.directory, edit.path, edit.base, number, edit.wanted, reason, at)
            for edit in edits
        ],
    )


def _stand(cursor: Cursor, number: int, state: str, at: float, reason: str) -> None:
    cursor.execute(
        "INSERT INTO proposal_states (number, state, decided, reason, digest)"
        " VALUES (?, ?, ?, ?, '') ON CONFLICT (number) DO UPDATE SET state = excluded.state,"
        " decided = excluded.decided,"
        " reason = CASE excluded.reason WHEN '' THEN reason ELSE excluded.reason END",
        (number, state, at, reason),
    )


def _keep_few(cursor: Cursor, directory: str) -> None:
    """Drop the oldest open proposals of a directory that has too many."""
    cursor.execute(
        f"SELECT number FROM ({_ROWS} WHERE p.directory = ? AND standing = 'open')"  # noqa: S608 - fixed words
        " ORDER BY number DESC LIMIT -1 OFFSET ?",
        (directory, _MOST_OPEN),
    )
    for row in cursor.fetchall():
        cursor.execute("DELETE FROM proposals WHERE number = ?", (row["number"],))
        cursor.execute("DELETE FROM proposal_states WHERE number = ?", (row["number"],))


def _read(row: Row) -> Proposal:
    content = _parsed(row["content"])
    decided = row["decided"]
    return Proposal(
        id=f"p{row['number']}",
        directory=text_of(row["directory"]),
        job=text_of(row["job"]),
        at=time_of(row["at"]),
        state=row["standing"],
        decided=None if decided is None else time_of(decided),
        reason=text_of(row["reason"]),
        content=content if isinstance(content, dict) else {},
    )


def _parsed(text: object) -> object:
    try:
        value: object = json.loads(text_of(text))
    except (ValueError, RecursionError):
        return None
    return value


def _digest(content: dict[str, Any]) -> str:
    """Return what makes a proposal the same one again: what it would make of which files."""
    edits = read_edits(content)
    if not edits:
        return sha256(json.dumps(content, sort_keys=True).encode())
    facts = sorted((edit.path, edit.base, edit.facts()["content"]) for edit in edits)
    return sha256(json.dumps(facts).encode())


def _without_texts(content: dict[str, Any]) -> dict[str, Any]:
    edits = content.get("edits")
    files = len(edits) if isinstance(edits, list) else 0
    large = Proposal("", "", "", 0.0, content=content)
    sentence = f"the texts of {files} files are too large to be kept"
    return {
        "engine": large.words("engine"),
        "said": large.words("said"),
        "problems": [*large.problems, sentence],
        "edits": [],
    }


def _sent(text: str, characters: int) -> str:
    """Return a text cut, without what cannot be sent."""
    cut = text[:characters]
    return cut if is_plain(cut, characters) else cut.encode(errors="replace").decode()


def _number(proposal: str) -> int:
    match = _ID.fullmatch(proposal)
    return int(match[1]) if match else 0
