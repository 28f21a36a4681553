"""The log: every change with the texts before and after, its author and the reason.

A *change* is a group of files that are written together; a *step* is one file of it. Rules of this
file
- A change is *open* from before its first file is touched until all its files are in place and on
  the medium; then it is *done*, in one transaction with the rows of its files and its effects. A
  change that died is *undone*, never completed (``write.py``). A *conflict* was refused: it holds
  the text that a writer wanted, and is never applied.
- A *body* is the text of a file, stored once by its SHA-256 and packed against the text before it.
  Whoever deletes a body first packs anew what was packed against it.
- A purged body stays as an empty row: its hash is still known. A file of more than 4 MiB has only a
  hash.
- Numbers of changes are never used twice. History is bounded by its size, never by age.
- The state file may be damaged: a body that does not hash to its name counts as missing.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from memd.base.names import INDEXES
from memd.base.text import read_json, sha256
from memd.base.values import Actor, Change, CommitResult, FileChange, Provenance, Undid
from memd.state.database import Cursor, Database, Row
from memd.store.packing import pack, unpack

OPEN, DONE, UNDONE, CONFLICT = "open", "done", "undone", "conflict"
SCHEMA = """
CREATE TABLE IF NOT EXISTS directory (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS body (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    base INTEGER,
    depth INTEGER NOT NULL DEFAULT 0,
    text BLOB
);
CREATE INDEX IF NOT EXISTS body_base ON body (base) WHERE base IS NOT NULL;
CREATE TABLE IF NOT EXISTS change (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    directory INTEGER NOT NULL,
    state TEXT NOT NULL,
    at REAL NOT NULL,
    actor TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    model TEXT NOT NULL,
    reason TEXT NOT NULL,
    origin TEXT NOT NULL,
    token TEXT NOT NULL,
    more TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS change_directory ON change (directory, id);
CREATE INDEX IF NOT EXISTS change_open ON change (state) WHERE state = 'open';
CREATE TABLE IF NOT EXISTS change_file (
    change INTEGER NOT NULL,
    number INTEGER NOT NULL,
    path TEXT NOT NULL,
    before INTEGER,
    after INTEGER,
    before_mtime_ns INTEGER,
    mode INTEGER,
    after_mtime_ns INTEGER,
    conflict INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (change, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS change_file_path ON change_file (path, change);
CREATE TABLE IF NOT EXISTS request (
    id INTEGER PRIMARY KEY,
    directory INTEGER NOT NULL,
    client TEXT NOT NULL,
    request TEXT NOT NULL,
    change INTEGER,
    result TEXT NOT NULL,
    UNIQUE (directory, client, request)
);
"""
_REQUESTS_KEPT = 10_000
DEPTH = 64  # bodies that are packed one against the other, before a whole one
_LARGEST = 2**63 - 1  # of SQLite; the mtime of a file may be beyond
_NO_LIMIT = 2**62
_STEPS = """
SELECT f.*, b.hash AS before_hash, a.hash AS after_hash,
    b.text = x'' OR a.text = x'' AS purged
FROM change_file f LEFT JOIN body b ON b.id = f.before LEFT JOIN body a ON a.id = f.after
WHERE f.change = ? ORDER BY f.number
"""
# Literals, so that SQLite knows which index serves.
_STATES = {"": "1"} | {name: f"c.state = '{name}'" for name in (OPEN, DONE, UNDONE, CONFLICT)}
T = TypeVar("T")


class Step(Struct, frozen=True):
    """One file of a change; the texts are named by SHA-256, ``None`` is no file."""

    path: str
    before: str | None
    after: str | None
    before_mtime_ns: int | None = None
    mode: int | None = None  # of the file before, or of a new file; ``None`` stands for 0600
    after_mtime_ns: int | None = None  # what the mtime of the new file must be, ``None`` for any
    conflict: bool = False  # the file was left as another program wrote it
    purged: bool = False  # one of the two texts was purged
    temp: str = ""  # the name of its temporary file, "" where it has none

    def file_change(self) -> FileChange:
        """Return what happens to the file, as clients see it."""
        action = (
            "created" if self.before is None else "deleted" if self.after is None else "updated"
        )
        return FileChange(self.path, action, self.before, self.after, self.purged)


class More(Struct, frozen=True, omit_defaults=True):
    """What few changes have: parts of a result, what an undo took back, where words are from."""

    merged: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    undid: tuple[tuple[int, int], ...] = ()
    transcript: str = ""
    message: str = ""
    note: str = ""


class ChangeRecord(Struct, frozen=True):
    """One change as the log has it; ``at`` is seconds since 1970, ``directory`` a real path."""

    number: int
    directory: str
    state: str
    at: float
    by: Provenance
    steps: tuple[Step, ...] = ()
    more: More = More()

    @property
    def id(self) -> str:
        """The id that clients see, such as c12."""
        return f"c{self.number}"

    def result(self, *, repeated: bool = False) -> CommitResult:
        """Return the result for the caller, without index files."""
        more = self.more
        return CommitResult(
            self.id,
            tuple(s.file_change() for s in self.steps if not s.conflict and s.path not in INDEXES),
            repeated=repeated,
            merged=more.merged,
            note=more.note,
            conflicts=more.conflicts,
            undone=str(Undid(*more.undid[0])) if more.undid else "",
        )

    def change(self) -> Change:
        """Return this change as an entry of the history."""
        files = tuple(step.file_change() for step in self.steps if not step.conflict)
        return Change(self.id, self.at, self.directory, self.by, files)


class ChangeLog:
    """The changes in the state file. Methods block and raise Storage.

    Those that take a ``cursor`` work inside the transaction of the caller.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    def directory_id(self, cursor: Cursor, directory: str) -> int:
        """Return the id of a directory (a real path), which is given one if it has none."""
        cursor.execute("SELECT id FROM directory WHERE path = ?", (directory,))
        row = cursor.fetchone()
        if row is None:
            cursor.execute("INSERT INTO directory (path) VALUES (?)", (directory,))
            return int(cursor.lastrowid or 0)
        return int(row["id"])

    def directories(self) -> tuple[str, ...]:
        """Return the real paths of all directories that memd has looked at or changed."""
        rows = self.database.read("SELECT path FROM directory ORDER BY path")
        return tuple(row["path"] for row in rows)

    def add(
        self,
        cursor: Cursor,
        record: ChangeRecord,
        bodies: Mapping[str, bytes],
        *,
        token: str = "",
    ) -> ChangeRecord:
        """Add a change with its texts by hash; return it with its number and temporary names."""
        cursor.execute(
            "INSERT INTO change (directory, state, at, actor, client, session, model, reason,"
            " origin, token, more) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            (
                self.directory_id(cursor, record.directory),
                record.state,
                record.at,
                *asdict(record.by).values(),
                token,
                json.dumps({k: v for k, v in asdict(record.more).items() if v}),
            ),
        )
        number = int(cursor.lastrowid or 0)
        steps = []
        for position, step in enumerate(record.steps):
            before = step.before and self.save_body(cursor, step.before, bodies)
            after = step.after and self.save_body(cursor, step.after, bodies, step.before)
            before_mtime_ns, after_mtime_ns = (
                None if number is None else max(-_LARGEST, min(number, _LARGEST))
                for number in (step.before_mtime_ns, step.after_mtime_ns)
            )
            cursor.execute(
                "INSERT INTO change_file VALUES (?,?,?,?,?,?,?,?,?)",
                (
                    *(number, position, step.path, before, after),
                    *(before_mtime_ns, step.mode, after_mtime_ns, step.conflict),
                ),
            )
            name = f".memd-{number}-{position}-{token}.tmp" if token else ""
            steps.append(replace(step, temp=name))
        return replace(record, number=number, steps=tuple(steps))

    def mark(self, cursor: Cursor, record: ChangeRecord, state: str) -> None:
        """Change the state of a change."""
        cursor.execute("UPDATE change SET state = ? WHERE id = ?", (state, record.number))

    def attribute(self, numbers: Iterable[int], by: Provenance) -> None:
        """Store who made some changes, which another program made by itself."""
        with self.database.transaction() as cursor:
            cursor.executemany(
                "UPDATE change SET actor = ?, client = ?, session = ?, model = ?, reason = ?,"
                " origin = ? WHERE id = ?",
                [(*asdict(by).values(), number) for number in numbers],
            )

    def save_answer(
        self, cursor: Cursor, directory: str, by: Provenance, request: str, result: CommitResult
    ) -> None:
        """Store the result of a request id; of all, the newest 10,000 stay."""
        change = int(result.change[1:]) if result.change else None
        facts = {"conflicts": result.conflicts, "undone": result.undone}
        cursor.execute(
            "INSERT OR REPLACE INTO request (directory, client, request, change, result)"
            " VALUES (?,?,?,?,?)",
            (self.directory_id(cursor, directory), by.client, request, change, json.dumps(facts)),
        )
        cursor.execute(
            "DELETE FROM request WHERE id <= ?", (int(cursor.lastrowid or 0) - _REQUESTS_KEPT,)
        )

    def answer(self, directory: str, client: str, request: str) -> CommitResult | None:
        """Return the stored result of a request id of a client, ``None`` if there is none."""
        rows = self.database.read(
            "SELECT r.change, r.result FROM request r JOIN directory d ON d.id = r.directory"
            " WHERE d.path = ? AND r.client = ? AND r.request = ?",
            (directory, client, request),
        )
        if not rows:
            return None
        record = self.record(rows[0]["change"]) if rows[0]["change"] is not None else None
        if record:
            return record.result(repeated=True)
        facts = read_json(rows[0]["result"]) or {}
        conflicts = tuple(map(str, facts.get("conflicts", ())))
        undone = str(facts.get("undone", ""))
        return CommitResult(None, repeated=True, conflicts=conflicts, undone=undone)

    def record(self, number: int) -> ChangeRecord | None:
        """Return a change in any state by its number, or ``None``."""
        return next(iter(self.select("c.id = ?", (number,), state="")), None)

    def find(self, directory: str, change: str, *, refused: bool = False) -> ChangeRecord | None:
        """Return a change that is done by its id, or ``None``; with ``refused`` a conflict too.

        It must be of the directory, unless that is "".
        """
        digits = change[1:]
        is_id = change[:1] == "c" and digits.isascii() and digits.isdigit() and len(digits) < 19  # noqa: PLR2004 - digits that surely fit SQLite's 64 bits
        record = self.record(int(digits)) if is_id and str(int(digits)) == digits else None
        if record is None or directory not in ("", record.directory):
            return None
        return record if record.state in ((DONE, CONFLICT) if refused else (DONE,)) else None

    def open_changes(self, directory: str = "") -> tuple[ChangeRecord, ...]:
        """Return the open changes of a directory, or of all, the newest first."""
        condition, values = ("d.path = ?", (directory,)) if directory else ("1", ())
        return self.select(condition, values, state=OPEN)

    def select(
        self,
        condition: str = "1",
        values: Sequence[object] = (),
        *,
        limit: int = _NO_LIMIT,
        state: str = DONE,
        steps: bool = True,
    ) -> tuple[ChangeRecord, ...]:
        """Return the newest changes that meet a condition, newest first; without ``steps`` bare.

        ``condition`` is SQL of this room on the tables c (change) and d (directory); what comes
        from outside is in ``values`` alone.
        """
        rows = self.database.read(
            "SELECT c.*, d.path AS place FROM change c JOIN directory d ON d.id = c.directory"  # noqa: S608 - fixed words
            f" WHERE ({condition}) AND {_STATES[state]} ORDER BY c.id DESC LIMIT ?",
            (*values, limit),
        )
        return tuple(_record(row, self.steps(row) if steps else ()) for row in rows)

    def steps(self, change: Row) -> tuple[Step, ...]:
        """Return the steps of a row of ``change``."""
        rows = self.database.read(_STEPS, (change["id"],))
        return tuple(
            Step(
                row["path"],
                _hash(row["before"], row["before_hash"]),
                _hash(row["after"], row["after_hash"]),
                row["before_mtime_ns"],
                None if row["mode"] is None else row["mode"] & 0o777,
                row["after_mtime_ns"],
                bool(row["conflict"]),
                bool(row["purged"]),
                f".memd-{change['id']}-{row['number']}-{change['token']}.tmp"
                if change["token"]
                else "",
            )
            for row in rows
        )

    def knows(self, directory: str, paths: Collection[str]) -> frozenset[str]:
        """Return those of the paths under which the directory ever had a file."""
        query = (
            "SELECT 1 FROM change_file f JOIN change c ON c.id = f.change JOIN directory d"
            " ON d.id = c.directory WHERE f.path = ? AND d.path = ? AND c.state = 'done' LIMIT 1"
        )
        return frozenset(path for path in paths if self.database.read(query, (path, directory)))

    def body(self, text_hash: str | None) -> bytes | None:
        """Return the text with this hash, ``None`` if the log has it not, or not any more."""
        if not text_hash:
            return None
        rows = self.database.read("SELECT * FROM body WHERE hash = ?", (bytes.fromhex(text_hash),))
        text = self._unpacked(rows[0]) if rows else None
        return text if text is not None and sha256(text) == text_hash else None

    def team_text(self, directory: str, text_hash: str) -> bytes | None:
        """Return a text that a change of the directory brought below ``team/``, or ``None``."""
        rows = self.database.read(
            "SELECT 1 FROM change_file f JOIN change c ON c.id = f.change JOIN directory d"
            " ON d.id = c.directory JOIN body b ON b.id IN (f.before, f.after)"
            " WHERE d.path = ? AND b.hash = ? AND f.path LIKE 'team/%' LIMIT 1",
            (directory, bytes.fromhex(text_hash)),
        )
        return self.body(text_hash) if rows else None

    def has_body(self, text_hash: str) -> bool:
        """Say whether the text with this hash is kept."""
        query = "SELECT 1 FROM body WHERE hash = ? AND length(text) > 0"
        return bool(self.database.read(query, (bytes.fromhex(text_hash),)))

    def save_body(
        self, cursor: Cursor, text_hash: str, bodies: Mapping[str, bytes], before: str | None = None
    ) -> int:
        """Store a text if ``bodies`` has it, packed against the one before; return its row's id."""
        key = bytes.fromhex(text_hash)
        cursor.execute("SELECT id, length(text) AS size FROM body WHERE hash = ?", (key,))
        row = cursor.fetchone()
        text = bodies.get(text_hash)
        if row is not None and (row["size"] or text is None):
            return int(row["id"])
        base = depth = packed = None
        old = bodies.get(before or "") if text is not None else None
        if old:
            cursor.execute(
                "SELECT id, depth FROM body WHERE hash = ? AND length(text) > 0 AND depth < ?",
                (bytes.fromhex(before or ""), DEPTH),
            )
            row_before = cursor.fetchone()
            packed = pack(text, old) if text and row_before else None
            if packed is not None:
                base, depth = row_before["id"], row_before["depth"] + 1
        # Packing a text whole takes longer, so it is not tried where the difference is small.
        if text is not None and (packed is None or 2 * len(packed) > len(text)):
            whole = pack(text)
            if packed is None or len(whole) <= len(packed):
                base, depth, packed = None, 0, whole
        cursor.execute(
            "INSERT INTO body (hash, base, depth, text) VALUES (?, ?, ?, ?) ON CONFLICT (hash)"
            " DO UPDATE SET base = excluded.base, depth = excluded.depth, text = excluded.text"
            " RETURNING id",
            (key, base, depth or 0, packed),
        )
        return int(cursor.fetchone()["id"])

    def empty_bodies(self, cursor: Cursor, ids: Collection[int]) -> None:
        """Remove the texts of some bodies for good; their hashes stay."""
        self._free(cursor, ids)
        cursor.executemany(
            "UPDATE body SET text = x'', base = NULL, depth = 0 WHERE id = ?",
            [(number,) for number in ids],
        )

    def delete_bodies(self, cursor: Cursor, ids: Collection[int]) -> None:
        """Delete some bodies that nothing names any more."""
        self._free(cursor, ids)
        cursor.executemany("DELETE FROM body WHERE id = ?", [(number,) for number in ids])

    def bodies(self, holds: Callable[[bytes], bool]) -> frozenset[int]:
        """Return the ids of the texts for which ``holds`` returns true."""
        numbers = [row[0] for row in self.database.read("SELECT id FROM body ORDER BY id")]
        numbers_with_it = set()
        for number in numbers:
            rows = self.database.read("SELECT * FROM body WHERE id = ?", (number,))
            text = self._unpacked(rows[0]) if rows else None
            if text is not None and holds(text):
                numbers_with_it.add(number)
        return frozenset(numbers_with_it)

    def _free(self, cursor: Cursor, ids: Collection[int]) -> None:
        """Pack anew, as whole texts, what was packed against some bodies."""
        for number in ids:
            cursor.execute("SELECT * FROM body WHERE base = ?", (number,))
            for row in cursor.fetchall():
                text = self._unpacked(row)
                cursor.execute(
                    "UPDATE body SET text = ?, base = NULL, depth = 0 WHERE id = ?",
                    (None if text is None else pack(text), row["id"]),
                )

    def _unpacked(self, row: Row) -> bytes | None:
        """Return the text in a row of ``body``, ``None`` if it is gone or damaged."""
        chain = [row]
        while chain[-1]["base"] is not None and len(chain) <= DEPTH:
            rows = self.database.read("SELECT * FROM body WHERE id = ?", (chain[-1]["base"],))
            if not rows:
                return None
            chain.append(rows[0])
        text: bytes | None = b""
        for each in reversed(chain):
            if not isinstance(each["text"], bytes) or not each["text"] or text is None:
                return None
            text = unpack(each["text"], text)
        return text


def _record(row: Row, steps: tuple[Step, ...]) -> ChangeRecord:
    """Return the change in a row; an unknown actor counts as another program."""
    actor = Actor(row["actor"]) if row["actor"] in set(Actor) else Actor.EXTERNAL
    words = (str(row[name]) for name in ("client", "session", "model", "reason", "origin"))
    facts = read_json(row["more"]) or {}
    try:
        more = msgspec.convert(facts, More)
    except msgspec.ValidationError:
        more = More()
    return ChangeRecord(
        row["id"], row["place"], row["state"], row["at"], Provenance(actor, *words), steps, more
    )


def _hash(number: int | None, text_hash: bytes | None) -> str | None:
    """Return the hash of a body in hex, "" if its row is lost; ``None`` stands for no file."""
    return None if number is None else (text_hash or b"").hex()
