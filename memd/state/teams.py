"""Store the state of team syncs: bases, the pushed batch, and what a person has to decide.

A base is the last version of a file that is equal here and on the team's server; a batch is a group
of changed files that is being sent.

Rules of this file
- A base changes in two places: with the change that writes pulled files (``bases_moved``), and
  with the server's answer to a batch (``end``). A new base deletes the held or left-out row of its
  key.
- ``team_bodies`` names the texts of bases, batches and conflicts. Of a base that the log has by a
  change it has no text, and only keeps the log from pruning that.
- The state file may be damaged: documents that memd did not write are skipped.
"""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from memd.base.names import TEAM
from memd.base.team import REMOVED, Author, Base, Conflict, HeldEntry, LeftOut, PushBatch, SyncState
from memd.base.text import sha256
from memd.base.values import Effect
from memd.state import docs
from memd.state.database import Cursor, Database
from memd.state.docs import Docs

SCHEMA = """
CREATE TABLE IF NOT EXISTS team_bodies (
    hash TEXT NOT NULL,
    directory TEXT NOT NULL,
    body BLOB,
    PRIMARY KEY (hash, directory)
) WITHOUT ROWID;
"""
_Noun = TypeVar("_Noun", Base, HeldEntry, Conflict, LeftOut)


class TeamTable:
    """The sync states of all directories. Methods block and raise StateUnusableError.

    ``recorded`` returns a text that a change brought below ``team/``, by directory (its real path)
    and hash.
    """

    def __init__(
        self, database: Database, recorded: Callable[[str, str], bytes | None] = lambda *_: None
    ) -> None:
        self._database, self._docs = database, Docs(database)
        self._recorded = recorded

    def state(self, directory: str) -> SyncState:
        """Return the state of a directory's sync, or a new one if none is stored."""
        return self._docs.get(SyncState, os.path.realpath(directory)) or SyncState()

    def save(self, directory: str, *rows: SyncState | HeldEntry | LeftOut) -> None:
        """Store rows of a directory's sync: its state, held files and left-out entries.

        A held file is not sent. A left-out entry was refused here and waits until its base changes.
        """
        with self._database.transaction() as cursor:
            _insert_rows(cursor, os.path.realpath(directory), rows)

    def drop(self, directory: str, kind: type[HeldEntry | Conflict], key: str) -> None:
        """Delete the row of a held file or of a conflict."""
        self._docs.delete(kind, os.path.realpath(directory), key)

    def bases(self, directory: str) -> dict[str, Base]:
        """Return the bases of a directory by key, with tombstones of removed files."""
        return self._rows(directory, Base)

    def batch(self, directory: str) -> PushBatch | None:
        """Return the batch that is being sent, ``None`` if there is none."""
        return self._docs.get(PushBatch, os.path.realpath(directory))

    def begin(self, directory: str, batch: PushBatch, bodies: Mapping[str, bytes]) -> None:
        """Store a batch with its bodies by hash before it is sent."""
        real = os.path.realpath(directory)
        with self._database.transaction() as cursor:
            _store_bodies(cursor, real, bodies)
            _insert_rows(cursor, real, [batch])

    def end(
        self, directory: str, bases: Iterable[Base], held: Iterable[HeldEntry] = (), *, batch: str
    ) -> None:
        """End the pushed batch with this id and store the server's answer; ignore other ids."""
        real = os.path.realpath(directory)
        with self._database.transaction() as cursor:
            current = self.batch(directory)
            # The answer to an older batch comes too late and is ignored.
            if current is not None and current.id == batch:
                docs.delete(cursor, PushBatch, real)
                _replace_bases(cursor, real, bases, ())
                _insert_rows(cursor, real, held)

    def held(self, directory: str) -> dict[str, HeldEntry]:
        """Return the files of a directory that are not sent, by key."""
        return self._rows(directory, HeldEntry)

    def conflicts(self, directory: str) -> dict[str, Conflict]:
        """Return the unresolved conflicts of a directory by key."""
        return self._rows(directory, Conflict)

    def left_out(self, directory: str) -> dict[str, LeftOut]:
        """Return the server's entries that were refused here, by key."""
        return self._rows(directory, LeftOut)

    def keep(self, directory: str, bodies: Mapping[str, bytes]) -> None:
        """Store the bodies of a pull by hash, before its change set is recorded."""
        with self._database.transaction() as cursor:
            _store_bodies(cursor, os.path.realpath(directory), bodies)

    def body(self, directory: str, body_hash: str) -> bytes | None:
        """Return the body with this hash, ``None`` if the directory has none or it was purged."""
        values = (body_hash, os.path.realpath(directory))
        query = "SELECT body FROM team_bodies WHERE (hash, directory) = (?, ?)"
        rows = self._database.read(query, values)
        if not rows:
            return None
        if rows[0]["body"] is None:
            return self.recorded(directory, body_hash)
        with suppress(zlib.error):
            body = zlib.decompress(rows[0]["body"])
            return body if sha256(body) == body_hash else None
        return None

    def recorded(self, directory: str, body_hash: str) -> bytes | None:
        """Return an earlier text below ``team/`` by its hash, ``None`` if the log has none."""
        return self._recorded(os.path.realpath(directory), body_hash)

    def prune(self, directory: str) -> None:
        """Delete the names of bodies without a base, batch or conflict; retention does the rest."""
        real = os.path.realpath(directory)
        named = {body_hash for _, body_hash in self._named_bodies(directory)}
        rows = self._database.read("SELECT hash FROM team_bodies WHERE directory = ?", (real,))
        unused = [(row["hash"], real) for row in rows if row["hash"] not in named]
        if unused:
            query = "DELETE FROM team_bodies WHERE (hash, directory) = (?, ?)"
            with self._database.transaction() as cursor:
                cursor.executemany(query, unused)

    def hashes(self, directory: str, path: str) -> frozenset[str]:
        """Return the hashes of one file's bodies that bases, the batch or conflicts name."""
        named = self._named_bodies(directory)
        return frozenset(body_hash for key, body_hash in named if TEAM + key == path)

    def forget(self, directory: str) -> None:
        """Delete all rows of a directory's sync."""
        real = os.path.realpath(directory)
        with self._database.transaction() as cursor:
            for noun in (SyncState, PushBatch, Base, HeldEntry, Conflict, LeftOut):
                docs.delete_all(cursor, noun, real)
            cursor.execute("DELETE FROM team_bodies WHERE directory = ?", (real,))

    def author(self, directory: str, path: str, body: str = "") -> Author | None:
        """Return which member wrote a file below ``team/``, by its path in the memory directory.

        With ``body``, the hash of its text, ``None`` if the text was changed here since.
        """
        if not path.startswith(TEAM):
            return None
        key = path.removeprefix(TEAM)
        base = self._docs.get(Base, os.path.realpath(directory), key)
        if base is None or base.hash == REMOVED or body not in ("", base.hash):
            return None
        return Author(base.member, base.device, base.at, base.revision)

    def _named_bodies(self, directory: str) -> Iterator[tuple[str, str]]:
        """Yield key and hash of each body that a base, the batch or a conflict names."""
        for base in self.bases(directory).values():
            yield base.key, base.hash
        batch = self.batch(directory)
        for entry in batch.entries if batch else ():
            yield entry.key, entry.hash
        for conflict in self.conflicts(directory).values():
            for body_hash in (conflict.ours, conflict.theirs, conflict.base):
                yield conflict.key, body_hash

    def _rows(self, directory: str, noun: type[_Noun]) -> dict[str, _Noun]:
        """Return a directory's objects of a class by key."""
        return self._docs.list_in(noun, os.path.realpath(directory))


def bases_moved(
    directory: str,
    bases: Iterable[Base] = (),
    gone: Iterable[str] = (),
    held: Iterable[HeldEntry] = (),
    conflicts: Iterable[Conflict] = (),
) -> Effect:
    """Return the effect that stores the results of a pull together with its change.

    ``gone`` are keys whose base is deleted. A conflict without a change gets that of the pull.
    """
    real = os.path.realpath(directory)
    bases, gone, held, conflicts = list(bases), list(gone), list(held), list(conflicts)

    def move(cursor: Any, change: str | None) -> None:
        _replace_bases(cursor, real, bases, gone)
        _insert_rows(cursor, real, held)
        new = [replace(each, change=each.change or change or "") for each in conflicts]
        _insert_rows(cursor, real, new)

    return move


def _replace_bases(
    cursor: Cursor, directory: str, bases: Iterable[Base], gone: Iterable[str]
) -> None:
    """Store new bases and delete those of the keys ``gone``, with their held and left-out rows."""
    bases, gone = list(bases), list(gone)
    # A new base ends what was held back or refused for its key.
    for key in (*(base.key for base in bases), *gone):
        docs.delete(cursor, HeldEntry, directory, key)
        docs.delete(cursor, LeftOut, directory, key)
    for key in gone:
        docs.delete(cursor, Base, directory, key)
    _insert_rows(cursor, directory, bases)
    cursor.executemany(
        "INSERT OR IGNORE INTO team_bodies VALUES (?, ?, NULL)",
        [(base.hash, directory) for base in bases if base.hash != REMOVED],
    )


def _insert_rows(cursor: Cursor, directory: str, nouns: Iterable[object]) -> None:
    """Store objects as documents under their key, "" if they have none."""
    for noun in nouns:
        docs.put(cursor, noun, directory, getattr(noun, "key", ""))


def _store_bodies(cursor: Cursor, directory: str, bodies: Mapping[str, bytes]) -> None:
    """Store bodies by hash."""
    cursor.executemany(
        "INSERT OR REPLACE INTO team_bodies VALUES (?, ?, ?)",
        [(each, directory, zlib.compress(body)) for each, body in bodies.items()],
    )


def forget_bodies(
    cursor: Cursor, hashes: Iterable[str], holds: Callable[[bytes], bool] | None
) -> None:
    """Remove the texts with these hashes, and those for which ``holds`` returns true."""
    chosen = {*hashes}
    cursor.execute("SELECT hash, directory, body FROM team_bodies WHERE body IS NOT NULL")
    for text_hash, directory, body in cursor.fetchall():
        with suppress(zlib.error):
            if text_hash in chosen or (holds and holds(zlib.decompress(body))):
                cursor.execute(
                    "UPDATE team_bodies SET body = NULL WHERE (hash, directory) = (?, ?)",
                    (text_hash, directory),
                )
