"""What the syncs of team memory remember: bases, the batch that is out, what a person decides.

Rules of this file
- A base moves in two places: with the change set that wrote what was pulled (``pulled``), and with
  the answer to a batch (``end``). A base that moves ends what was held or left out of its key.
- A body is one of the journal's blobs; ``team_bodies`` names those that pruning leaves alone.
- Rows are input: one that memd did not write is as if it were not there.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from memd.core.names import TEAM
from memd.core.team import REMOVED, Author, Base, Conflict, HeldEntry, LeftOut, PushBatch, SyncState
from memd.core.values import TeamMoved
from memd.state import blobs
from memd.state.database import Cursor, Database

# One row is one noun of core/team.py as JSON, beneath its name and its key ("" if it has none).
SCHEMA = """
CREATE TABLE IF NOT EXISTS team_rows (
    directory TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (directory, kind, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS team_bodies (
    hash TEXT NOT NULL,
    directory TEXT NOT NULL,
    PRIMARY KEY (hash, directory)
) WITHOUT ROWID;
"""
# As bytes: one text that is no UTF-8 would spoil the reading of all.
_ROWS = """
SELECT CAST(key AS BLOB) AS key, CAST(value AS BLOB) AS value FROM team_rows
WHERE (directory, kind) = (?, ?)
"""
_Row = SyncState | PushBatch | Base | HeldEntry | Conflict | LeftOut
_Noun = TypeVar("_Noun", SyncState, PushBatch, Base, HeldEntry, Conflict, LeftOut)
_Item = TypeVar("_Item")


class TeamTable:
    """The syncs of all directories. All methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def state(self, directory: str) -> SyncState:
        """Return the state of a directory's sync, or a new one if none is stored."""
        return self._rows(directory, SyncState).get("", SyncState())

    def save(self, directory: str, *rows: SyncState | HeldEntry | LeftOut) -> None:
        """Write down what a directory's sync knows, holds (it is not sent) or leaves out.

        An entry that the door here refuses is left out until its base moves.
        """
        with self._database.transaction() as cursor:
            _save(cursor, os.path.realpath(directory), rows)

    def drop(self, directory: str, kind: type[HeldEntry | Conflict], key: str) -> None:
        """Delete the row of a held file or of a conflict."""
        with self._database.transaction() as cursor:
            _drop(cursor, os.path.realpath(directory), kind, [key])

    def bases(self, directory: str) -> dict[str, Base]:
        """Return the bases of a directory by key, tombstones among them."""
        return self._rows(directory, Base)

    def batch(self, directory: str) -> PushBatch | None:
        """Return the batch that is out, ``None`` if there is none."""
        return self._rows(directory, PushBatch).get("")

    def begin(self, directory: str, batch: PushBatch, bodies: Mapping[str, bytes]) -> None:
        """Write down a batch and its bodies by hash: from now on it is out."""
        real = os.path.realpath(directory)
        with self._database.transaction() as cursor:
            _keep(cursor, real, bodies)
            _save(cursor, real, [batch])

    def end(
        self, directory: str, bases: Iterable[Base], held: Iterable[HeldEntry] = (), *, batch: str
    ) -> None:
        """End the pushed batch with this id and store the server's answer; ignore other ids."""
        real = os.path.realpath(directory)
        with self._database.transaction() as cursor:
            out = self.batch(directory)
            if out is not None and out.id == batch:
                _drop(cursor, real, PushBatch, [""])
                _move(cursor, real, bases, ())
                _save(cursor, real, held)

    def held(self, directory: str) -> dict[str, HeldEntry]:
        """Return by key what stands in a directory and is not sent."""
        return self._rows(directory, HeldEntry)

    def conflicts(self, directory: str) -> dict[str, Conflict]:
        """Return by key the conflicts that nobody has resolved."""
        return self._rows(directory, Conflict)

    def left_out(self, directory: str) -> dict[str, LeftOut]:
        """Return by key the server's entries that the door here refuses."""
        return self._rows(directory, LeftOut)

    def keep(self, directory: str, bodies: Mapping[str, bytes]) -> None:
        """Keep bodies by hash until nothing names them: those of a pull, before its change set."""
        with self._database.transaction() as cursor:
            _keep(cursor, os.path.realpath(directory), bodies)

    def body(self, directory: str, key: str) -> bytes | None:
        """Return the body with this hash, ``None`` where it is not kept here or was purged."""
        wanted = (key, os.path.realpath(directory))
        query = "SELECT 1 FROM team_bodies WHERE (hash, directory) = (?, ?)"
        return blobs.read(self._database, key) if self._database.read(query, wanted) else None

    def recorded(self, directory: str, key: str, body_hash: str) -> bytes | None:
        """Return a text that a file had, by its hash; ``None`` where the journal has none."""
        query = (
            "SELECT 1 FROM change_files JOIN changes ON id = change"
            " WHERE directory = ? AND path = ? AND ? IN (before, after)"
        )
        wanted = (os.path.realpath(directory), f"{TEAM}{key}", body_hash)
        there = self._database.read(query, wanted)
        return blobs.read(self._database, body_hash) if there else None

    def prune(self, directory: str) -> None:
        """Delete the names of bodies without a base, batch or conflict; retention does the rest."""
        real, named = os.path.realpath(directory), {body for _, body in self._named(directory)}
        rows = self._database.read("SELECT hash FROM team_bodies WHERE directory = ?", (real,))
        unused = [(row["hash"], real) for row in rows if row["hash"] not in named]
        if unused:
            query = "DELETE FROM team_bodies WHERE (hash, directory) = (?, ?)"
            with self._database.transaction() as cursor:
                cursor.executemany(query, unused)

    def hashes(self, directory: str, path: str) -> frozenset[str]:
        """Return the hashes of the bodies of one file that bases, batch and conflicts name."""
        named = self._named(directory)
        return frozenset(h for key, h in named if TEAM + key == path)

    def forget(self, directory: str) -> None:
        """Forget all of a directory's sync."""
        real = (os.path.realpath(directory),)
        with self._database.transaction() as cursor:
            cursor.execute("DELETE FROM team_rows WHERE directory = ?", real)
            cursor.execute("DELETE FROM team_bodies WHERE directory = ?", real)

    def author(self, directory: str, path: str, body: str = "") -> Author | None:
        """Return whose words a file below ``team/`` is, by its path in the memory directory.

        ``body`` is the hash of its text: one that is not the member's was changed here since.
        """
        if not path.startswith(TEAM):
            return None
        base = next(iter(self._rows(directory, Base, path.removeprefix(TEAM)).values()), None)
        if base is None or base.hash == REMOVED or body not in ("", base.hash):
            return None
        return Author(base.member, base.device, base.at, base.revision)

    def _named(self, directory: str) -> Iterator[tuple[str, str]]:
        """Yield key and hash of each body that a base, the batch or a conflict names."""
        yield from ((base.key, base.hash) for base in self.bases(directory).values())
        out = self.batch(directory)
        yield from ((entry.key, entry.hash) for entry in (out.entries if out else ()))
        for item in self.conflicts(directory).values():
            yield from ((item.key, body) for body in (item.ours, item.theirs, item.base))

    def _rows(self, directory: str, noun: type[_Noun], *keys: str) -> dict[str, _Noun]:
        """Return the rows of a kind, or the one of a key."""
        query = f"{_ROWS} AND key = ?" if keys else _ROWS
        rows = self._database.read(query, (os.path.realpath(directory), noun.__name__, *keys))
        read = msgspec.json.Decoder(noun).decode
        result = {}
        for row in rows:
            with suppress(ValueError):  # msgspec's errors and those of UTF-8 are
                result[row["key"].decode()] = read(row["value"])
        return result


def pulled(cursor: Cursor, directory: str, effect: TeamMoved, change: str | None) -> None:
    """Store the results of a pull, in the transaction that applies its change set."""
    _move(cursor, directory, _list(effect.bases, Base), _list(effect.gone, str))
    _save(cursor, directory, _list(effect.held, HeldEntry))
    conflicts = _list(effect.conflicts, Conflict)
    _save(cursor, directory, [replace(c, change=c.change or change or "") for c in conflicts])


def _list(text: str, of: type[_Item]) -> list[_Item]:
    try:
        return msgspec.json.decode(text, type=list[of])  # type: ignore[valid-type]
    except ValueError:
        return []


def _move(cursor: Cursor, directory: str, bases: Iterable[Base], gone: Iterable[str]) -> None:
    bases, gone = list(bases), list(gone)
    for noun in (HeldEntry, LeftOut):
        _drop(cursor, directory, noun, [*(base.key for base in bases), *gone])
    _drop(cursor, directory, Base, gone)
    _save(cursor, directory, bases)
    _name(cursor, directory, [base.hash for base in bases if base.hash != REMOVED])


def _save(cursor: Cursor, directory: str, nouns: Iterable[_Row]) -> None:
    cursor.executemany(
        "INSERT OR REPLACE INTO team_rows VALUES (?, ?, ?, ?)",
        [
            (directory, type(n).__name__, getattr(n, "key", ""), msgspec.json.encode(n).decode())
            for n in nouns
        ],
    )


def _drop(cursor: Cursor, directory: str, noun: type, keys: Iterable[str]) -> None:
    cursor.executemany(
        "DELETE FROM team_rows WHERE (directory, kind, key) = (?, ?, ?)",
        [(directory, noun.__name__, key) for key in keys],
    )


def _keep(cursor: Cursor, directory: str, bodies: Mapping[str, bytes]) -> None:
    blobs.save(cursor, bodies)
    _name(cursor, directory, bodies)


def _name(cursor: Cursor, directory: str, hashes: Iterable[str]) -> None:
    cursor.executemany(
        "INSERT OR IGNORE INTO team_bodies VALUES (?, ?)", [(key, directory) for key in hashes]
    )
