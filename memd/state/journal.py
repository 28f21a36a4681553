"""The journal: every change set with the texts before and after, its author and the reason.

A change set is a group of file changes that are made together.

Rules of this file
- A set is *recorded* with all its bodies in one durable transaction before the first file is
  written. It ends as *applied* (the files are in place, and its effects became true in the same
  transaction), *abandoned* (another program wrote a file meanwhile) or *failed* (an I/O error). Of
  an abandoned or failed set nothing is in place.
- A set that contradicts external edits is stored as a *conflict*: it is never applied, but its
  texts can be read and restored.
- A *proposal* (``state/proposals.py``) is a set that a person has yet to decide about; the queries
  here do not return it.
- A body, the text of a file, is stored once under its SHA-256 (``state/blobs.py``).
- The numbers of change sets are never used twice (AUTOINCREMENT), also after pruning.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from msgspec.structs import asdict, replace

from memd.base.imports import is_import
from memd.base.text import sha256
from memd.base.values import Actor, CommitResult, Provenance
from memd.state import baseline, blobs, effects, proposed, teams
from memd.state.database import Cursor, Database, Row
from memd.state.records import (
    APPLIED,
    CONFLICT,
    RECORDED,
    ChangeRecord,
    PlannedChange,
    Step,
    read_record,
    read_result_text,
    read_step,
    result_text,
    step_values,
)
from memd.state.rows import insert_row

_TABLES = f"""
CREATE TABLE IF NOT EXISTS changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    state TEXT NOT NULL,
    at REAL NOT NULL,
    actor TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    model TEXT NOT NULL,
    reason TEXT NOT NULL,
    origin TEXT NOT NULL,
    request TEXT NOT NULL,
    effects TEXT NOT NULL,
    conflicts TEXT NOT NULL,
    decided REAL,
    proposal TEXT
);
CREATE INDEX IF NOT EXISTS changes_of_directory ON changes (directory, id);
CREATE INDEX IF NOT EXISTS changes_recorded ON changes (state) WHERE state = 'recorded';
CREATE INDEX IF NOT EXISTS changes_proposed ON changes (directory, id) WHERE {proposed.IS_PROPOSAL};
CREATE INDEX IF NOT EXISTS changes_by_age ON changes (at);
CREATE TABLE IF NOT EXISTS change_files (
    change INTEGER NOT NULL REFERENCES changes (id),
    number INTEGER NOT NULL,
    path TEXT NOT NULL,
    before TEXT,
    after TEXT,
    before_mtime_ns INTEGER,
    mode INTEGER,
    after_mtime_ns INTEGER,
    temp TEXT NOT NULL,
    conflict INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (change, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS change_files_of_path ON change_files (path, change);
CREATE INDEX IF NOT EXISTS change_files_before ON change_files (before);
CREATE INDEX IF NOT EXISTS change_files_after ON change_files (after);
CREATE TABLE IF NOT EXISTS purged_paths (
    directory TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (directory, hash)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
    directory TEXT NOT NULL,
    client TEXT NOT NULL,
    request TEXT NOT NULL,
    at REAL NOT NULL,
    change INTEGER,
    conflicts TEXT NOT NULL,
    PRIMARY KEY (directory, client, request)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_age ON requests (at);
"""
# The journal stores the bodies of the baseline, teams and imports too, and its transactions update
# the owners of directories.
_OTHERS = (blobs.SCHEMA, baseline.SCHEMA, teams.SCHEMA)
SCHEMA = "".join((_TABLES, *_OTHERS))

# External sets from a time on, all of whose files are in a list of paths (JSON).
_UNCLAIMED = """
SELECT id FROM changes
WHERE directory = ? AND state = 'applied' AND actor = 'external' AND at >= ? AND NOT EXISTS (
    SELECT 1 FROM change_files f WHERE f.change = changes.id
    AND f.path NOT IN (SELECT value FROM json_each(?)))
"""
_ATTRIBUTE = """
UPDATE changes SET actor = ?, client = ?, session = ?, reason = ?, origin = ? WHERE id = ?
"""
T = TypeVar("T")
_ID = re.compile(r"c([0-9]{1,18})")  # 18 digits fit SQLite's 64 bits


class Journal:
    """The change sets in the state file. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def without_pruning(self, work: Callable[[], T]) -> T:
        """Call ``work`` while retention is blocked, and return its result.

        The caller must hold no transaction. Raises the errors of ``work``.
        """
        with self._database.file.pruning.shared():
            return work()

    def record(self, intent: PlannedChange) -> ChangeRecord:
        """Record a change set with its bodies durably, before its files are written."""
        with self._database.transaction() as cursor:
            return insert(cursor, intent, RECORDED)

    def record_conflict(self, intent: PlannedChange) -> ChangeRecord:
        """Record a change set that conflicts with external edits; it is never applied."""
        with self._database.transaction() as cursor:
            return insert(cursor, intent, CONFLICT)

    def record_external(
        self, intent: PlannedChange, moves: baseline.BaselineChange
    ) -> ChangeRecord:
        """Record external edits as an applied change set, and update the baseline with it."""
        with self._database.transaction() as cursor:
            baseline.move(cursor, intent.directory, moves)
            return insert(cursor, intent, APPLIED)

    def attribute(
        self, directory: str, paths: Collection[str], by: Provenance, since: float
    ) -> None:
        """Store who made the external changes since a time that touch only the given paths."""
        values = (by.actor, by.client, by.session, by.reason, by.origin)
        with self._database.transaction() as cursor:
            cursor.execute(_UNCLAIMED, (directory, since, json.dumps(sorted(paths))))
            for number in [row["id"] for row in cursor.fetchall()]:
                cursor.execute(_ATTRIBUTE, (*values, number))

    def mark_applied(
        self, record: ChangeRecord, at: float, left: Collection[str] = ()
    ) -> ChangeRecord:
        """Mark a set applied and carry out its effects; ``left`` are paths of files left alone."""
        with self._database.transaction() as cursor:
            cursor.executemany(
                "UPDATE change_files SET conflict = 1 WHERE change = ? AND path = ?",
                [(record.number, path) for path in left],
            )
            exists = _end(cursor, record, APPLIED)
            written_steps = [step for step in record.steps if step.path not in left]
            files = ((step.path, step.after, step.mode) for step in written_steps)
            baseline.update_for_commit(cursor, record.directory, files)
            effects.carry_out(cursor, record.directory, record.effects, record.id, at)
            _store_answer(cursor, record, record.number if exists else None)
        steps = tuple(
            replace(step, conflict=step.conflict or step.path in left) for step in record.steps
        )
        return replace(record, state=APPLIED, steps=steps)

    def mark_ended(self, record: ChangeRecord, state: str) -> None:
        """Mark a set as abandoned or failed, with no file written."""
        with self._database.transaction() as cursor:
            _end(cursor, record, state)

    def record_effects(self, intent: PlannedChange) -> None:
        """Carry out effects and store the request's result, if no file needs to change."""
        if not intent.effects and not intent.request:
            return
        empty = ChangeRecord(0, intent.directory, APPLIED, intent.at, intent.by, intent.request, ())
        with self._database.transaction() as cursor:
            effects.carry_out(cursor, intent.directory, intent.effects, None, intent.at)
            _store_answer(cursor, replace(empty, conflicts=intent.conflicts), None)

    def earlier_result(self, directory: str, client: str, request: str) -> CommitResult | None:
        """Return the stored result of a client's request id, or ``None`` if there is none."""
        rows = request and self._database.read(
            "SELECT change, conflicts FROM requests"
            " WHERE directory = ? AND client = ? AND request = ?",
            (directory, client, request),
        )
        if not rows:
            return None
        conflicts, _ = read_result_text(rows[0]["conflicts"])
        record = None if rows[0]["change"] is None else self.load(rows[0]["change"])
        result = record.result(repeated=True) if record else CommitResult(None, repeated=True)
        return replace(result, conflicts=conflicts)

    def pending(self, directory: str | None = None) -> tuple[ChangeRecord, ...]:
        """Return a directory's recorded sets that have not ended, oldest first.

        ``None`` stands for all directories.
        """
        condition = "state = 'recorded' AND (? IS NULL OR directory = ?)"
        return self._records(condition, (directory, directory), "ORDER BY id")

    def change(self, directory: str, change: str, *, refused: bool = False) -> ChangeRecord | None:
        """Return an applied set by its id, such as c12, or ``None``.

        It must be of the directory unless that is "". With ``refused`` a conflict is returned as
        well.
        """
        number = _parse_id(change)
        record = self.load(number) if change == f"c{number}" else None
        states = {APPLIED, CONFLICT} if refused else {APPLIED}
        if record is None or record.state not in states:
            return None
        return record if directory in {"", record.directory} else None

    def select(
        self, condition: str, values: Sequence[object], *, limit: int, files: bool = True
    ) -> tuple[ChangeRecord, ...]:
        """Return the newest applied sets that meet a condition, newest first.

        ``condition`` is SQL from this room; outside input is only in ``values``. Without ``files``
        the sets have no steps.
        """
        condition = f"state = 'applied' AND {condition}"
        order = "ORDER BY id DESC LIMIT ?"
        return self._records(condition, (*values, limit), order, files=files)

    def blob(self, body_hash: str) -> bytes | None:
        """Return the body with this hash, or ``None`` when the journal has none that matches."""
        return blobs.read(self._database, body_hash)

    def known_paths(self, directory: str, paths: Collection[str]) -> frozenset[str]:
        """Return those of the paths that a change set of the directory has, also if purged."""
        query = (
            "SELECT 1 FROM change_files f JOIN changes c ON c.id = f.change"  # noqa: S608 - fixed words
            f" WHERE f.path = ?1 AND c.directory = ?2 AND NOT ({proposed.IS_PROPOSAL})"
            " UNION ALL SELECT 1 FROM purged_paths WHERE hash = ?3 AND directory = ?2 LIMIT 1"
        )
        known: set[str] = set()
        for path in paths:
            path_hash = sha256(path.encode(errors="replace"))
            if self._database.read(query, (path, directory, path_hash)):
                known.add(path)
        return frozenset(known)

    def was_imported(self, directory: str, path: str, body_hash: str) -> bool:
        """Return whether the text with this hash is the last one of a memory, by an import."""
        last = self._last_row(directory, path)
        return last is not None and is_import(str(last["origin"])) and last["after"] == body_hash

    def was_written_by_memd(self, directory: str, path: str, body_hash: str) -> bool:
        """Return whether the text with this hash is the last one of a memory and memd wrote it.

        True also if the journal has no change set of the memory.
        """
        last = self._last_row(directory, path)
        if last is None:
            return True
        is_of_memd = last["actor"] not in (Actor.EXTERNAL, Actor.ASSISTANT)
        return is_of_memd and last["after"] == body_hash

    def _last_row(self, directory: str, path: str) -> Row | None:
        """Return actor, origin and new hash of the last applied change of a path, if any."""
        rows = self._database.read(
            "SELECT f.after, c.actor, c.origin"
            " FROM change_files f JOIN changes c ON c.id = f.change"
            " WHERE f.path = ? AND c.directory = ? AND c.state = 'applied' AND NOT f.conflict"
            " ORDER BY f.change DESC LIMIT 1",
            (path, directory),
        )
        return rows[0] if rows else None

    def has_body(self, body_hash: str) -> bool:
        """Return whether the body with this hash is stored and not purged."""
        query = "SELECT 1 FROM blobs WHERE hash = ? AND length(body) > 0"
        return bool(self._database.read(query, (body_hash,)))

    def directories(self) -> tuple[str, ...]:
        """Return every directory with a change set in the journal."""
        rows = self._database.read("SELECT DISTINCT directory FROM changes ORDER BY directory")
        return tuple(row["directory"] for row in rows if isinstance(row["directory"], str))

    def load(self, number: int) -> ChangeRecord | None:
        """Return a set in any state by its number, or ``None``."""
        return next(iter(self._records("id = ?", (number,))), None)

    def _records(
        self, condition: str, values: Sequence[object], order: str = "", *, files: bool = True
    ) -> tuple[ChangeRecord, ...]:
        """Return the change sets that meet an SQL condition, with their files if wanted."""
        rows = self._database.read(f"SELECT * FROM changes WHERE {condition} {order}", values)  # noqa: S608 - fixed words
        return tuple(read_record(row, self.steps(row["id"]) if files else ()) for row in rows)

    def steps(self, number: int) -> tuple[Step, ...]:
        """Return the files of a change set."""
        rows = self._database.read(
            "SELECT path, before, after, before_mtime_ns, mode, after_mtime_ns, temp,"
            " conflict, EXISTS (SELECT 1 FROM blobs WHERE hash IN (before, after)"
            " AND length(body) = 0) AS purged FROM change_files WHERE change = ? ORDER BY number",
            (number,),
        )
        return tuple(read_step(row) for row in rows)


def insert(cursor: Cursor, intent: PlannedChange, state: str) -> ChangeRecord:
    """Insert a change set with a state and its bodies, inside a transaction, and return it.

    Without a token its files get no temporary names, so that it can never be applied.
    """
    row = {
        **asdict(intent.by),
        "directory": intent.directory,
        "state": state,
        "at": intent.at,
        "request": intent.request,
        "effects": effects.to_text(intent.effects),
        "conflicts": result_text(intent.conflicts, intent.merged),
    }
    number = insert_row(cursor, "changes", row)
    steps = tuple(
        replace(step, temp=intent.token and f".memd-{number}-{position}-{intent.token}.tmp")
        for position, step in enumerate(intent.steps)
    )
    cursor.executemany(
        "INSERT INTO change_files (change, number, path, before, after, before_mtime_ns,"
        " mode, after_mtime_ns, temp) VALUES (?,?,?,?,?,?,?,?,?)",
        [(number, position, *step_values(step)) for position, step in enumerate(steps)],
    )
    blobs.save(cursor, intent.bodies)
    return ChangeRecord(
        number, intent.directory, state, intent.at, intent.by, intent.request, steps,
        intent.effects, intent.conflicts, intent.merged,
    )  # fmt: skip


def _parse_id(change: str) -> int:
    """Return the number in a change set's id, 0 if it is not an id."""
    match = _ID.fullmatch(change)
    return int(match[1]) if match else 0


def _end(cursor: Cursor, record: ChangeRecord, state: str) -> bool:
    """Set the state of a change set; return whether its row exists.

    It is missing if the state file was replaced by a new one since.
    """
    cursor.execute(
        "UPDATE changes SET state = ? WHERE id = ? AND directory = ?",
        (state, record.number, record.directory),
    )
    return cursor.rowcount == 1


def _store_answer(cursor: Cursor, record: ChangeRecord, number: int | None) -> None:
    """Store the result of the record's request id, if it has one, for a repeated request."""
    if record.request:
        cursor.execute(
            "INSERT OR REPLACE INTO requests (directory, client, request, at, change, conflicts)"
            # Where nothing changed, the newest change tells how old the answer is, negative since
            # it is not the answer's own.
            " VALUES (?,?,?,?, coalesce(?, (SELECT -max(id) FROM changes)), ?)",
            (
                *(record.directory, record.by.client, record.request, record.at, number),
                json.dumps(record.conflicts),
            ),
        )
