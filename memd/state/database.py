"""Open the state file with SQLite and run durable transactions on it, over one connection.

Rules of this file
- One connection, used by one thread at a time: ``transaction`` and ``read`` hold a lock. Both
  block: call them from a worker thread. (``checkpoints.py`` has a second one, which only copies.)
- A transaction that returns has been fsynced (``synchronous=FULL``) unless its caller passed
  ``synced=False``; one that raises changed nothing. (If the disk failed during the commit, the
  change may still be there when the file is opened again, as after a crash.)
- A file that SQLite reports as damaged, or that is of another program or format, is renamed and a
  new one is created (``formats.py``): that loses history, never a memory.
- The file may be removed or damaged while memd runs: each use first checks that the file and its
  log are the ones that were opened, and closes what SQLite cannot read. The next use opens the file
  that is there, or creates one, and adds a sentence to ``notes``; no restart is needed.
- An error that neither the disk, the file nor a lock caused is a fault of memd's own and logged.
- Each module of this room declares its tables, and opening the file creates them.
"""

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from memd.state import formats
from memd.state.checkpoints import LONGEST_PAGES, Checkpoints
from memd.state.errors import StateFaultError as StateFaultError
from memd.state.errors import StateUnusableError as StateUnusableError
from memd.state.formats import FileIdentity, identity_of

Row = sqlite3.Row

_SYNCED = "PRAGMA synchronous=FULL"
_UNSYNCED = "PRAGMA synchronous=NORMAL"  # in WAL mode: a commit does not wait for the disk
_SETTINGS = (
    "PRAGMA journal_mode=WAL",
    f"PRAGMA wal_autocheckpoint={LONGEST_PAGES}",
    _SYNCED,
)
_BUSY_SECONDS = 5.0  # only a person's own sqlite3 shell can hold the file; wait for it a little
_ENDED = "it was closed"
_READ_BY_OTHERS = "another program has it open, so its log cannot be emptied"


class Cursor(sqlite3.Cursor):
    """A cursor that takes a sequence of values for ``?`` or for ``?1``, not both in a statement.

    Python 3.12 deprecates and 3.14 refuses a sequence for ``?1``; a mapping is always taken.
    """

    def execute(self, query: str, values: Any = (), /) -> "Cursor":
        """Run one statement. Raises sqlite3.Error."""
        super().execute(query, _by_number(values) if "?1" in query else values)
        return self

    def executemany(self, query: str, rows: Iterable[Any], /) -> "Cursor":
        """Run a statement once for each row of values. Raises sqlite3.Error."""
        super().executemany(query, map(_by_number, rows) if "?1" in query else rows)
        return self


class StateFile:
    """The connection to the state file, reopened after the file was lost or damaged.

    Its users hold ``lock``. ``notes`` are sentences about what happened to the file. ``log_fault``
    logs a fault of memd's own and returns the id of the log's entry.
    """

    def __init__(
        self,
        path: str,
        schemas: Sequence[str],
        convert: Callable[[str, Sequence[str]], str] = lambda *_: "",
    ) -> None:
        self.path = path
        self._convert = convert  # carries a file of an older format over; returns a sentence
        self.lock = threading.RLock()  # whoever uses the file holds it
        self.notes: list[str] = []
        self.tell: Callable[[str], None] | None = None  # gets each later note
        self.log_fault: Callable[[Exception], str] = lambda _: "that was not logged"
        self._schemas = tuple(schemas)
        self._connection: sqlite3.Connection | None = None
        self._identity = FileIdentity(None, None)  # of the file that is open
        self.synced = True  # whether transactions of the connection are
        self.openings = 0  # how often a file was opened: what was read of an earlier one is old
        self._damages = 0  # how often the file was reported as damaged since a commit succeeded
        self.checkpoints = Checkpoints(self._copy_log)
        self._copier: sqlite3.Connection | None = None  # for checkpoints alone
        self._ended = False  # closed for good

    def connection(self) -> sqlite3.Connection:
        """Return a connection to the file that is there now. Raises StateUnusableError."""
        if self._ended:
            raise StateUnusableError(self.path, _ENDED)
        try:
            result = self._connection
            if result is not None and not result.in_transaction:
                self._close_if_replaced(identity_of(self.path))
            if self._connection is None:
                self._connection = self._open()
                self.openings, self.synced = self.openings + 1, True
                self._identity = identity_of(self.path)
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StateUnusableError(self.path, str(error)) from error
        return self._connection

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self.checkpoints.wait()
        connections = (self._copier, self._connection)
        self._copier = self._connection = None
        for connection in filter(None, connections):
            with suppress(sqlite3.Error):
                connection.close()

    def end(self) -> None:
        """Close the file for good: a later use raises StateUnusableError."""
        self._ended = True
        self.close()

    def note(self, sentence: str) -> None:
        """Add a sentence to ``notes`` and pass it to ``tell``, if that is set."""
        self.notes.append(sentence)
        if self.tell is not None:
            self.tell(sentence)

    def note_success(self) -> None:
        """Reset the count of damages, and count the commit that succeeded."""
        self._damages = 0
        self.checkpoints.count_commit()

    def failure(self, error: sqlite3.Error) -> StateUnusableError:
        """Return the error for the caller of a statement; a fault of memd's own is logged.

        The file is closed if it is damaged or its connection cannot be used any more.
        """
        if not formats.is_of_disk(error):
            return StateFaultError(self.log_fault(error))
        code = formats.code_of(error)
        if code in formats.DAMAGED:
            self._damages += 1
        if code in (*formats.DAMAGED, *formats.STUCK):
            self.close()
        return StateUnusableError(self.path, str(error))

    def _copy_log(self) -> None:
        """Copy what the log has now into the file, without waiting for readers or writers."""
        # An error is for the commits to report: they use the same file and disk.
        with suppress(sqlite3.Error):
            if self._copier is not None:
                self._copier.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _open(self) -> sqlite3.Connection:
        """Open the file, or a new one after renaming a file that cannot be used."""
        ending, cause = "damaged", "it is damaged"
        with suppress(sqlite3.Error):  # a file that cannot be carried over is put aside below
            carried_over = self._convert(self.path, self._schemas)
            if carried_over:
                self.note(carried_over)
        # A file that was reported as damaged twice is renamed, even if the check finds nothing.
        if self._damages < 2:  # noqa: PLR2004 - once may have been this connection alone
            try:
                return self._connect(thorough=self._damages > 0)
            except sqlite3.OperationalError:
                raise
            except formats.OtherFormatError as error:
                ending, cause = "other", str(error)
            except sqlite3.DatabaseError:
                pass
        new_path = formats.put_aside(self.path, ending)
        self._damages = 0
        self.note(
            f"the state file could not be used, as {cause}; it is now {new_path} and a new one was "
            "begun: history before now is there, no memory is lost"
        )
        return self._connect()

    def _connect(self, *, thorough: bool = False) -> sqlite3.Connection:
        """Open or create the file, check it, and create missing tables."""
        # SQLite creates with the umask; the mode must be right from the first instant.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection, self._copier = (
            sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            for _ in range(2)
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # counts before the first table
            formats.check_format(connection)
            for setting in _SETTINGS:
                connection.execute(setting)
            formats.check(connection, thorough=thorough)
            for schema in self._schemas:
                connection.executescript(schema)
            # Opened now: SQLite keeps the descriptors of a file while any connection has it open.
            self._copier.execute("PRAGMA schema_version")
        except BaseException:
            self._copier.close()
            connection.close()
            raise
        return connection

    def _close_if_replaced(self, now: FileIdentity) -> None:
        """Close the connection and add a note if the file or its log was removed or replaced."""
        if now == self._identity:
            return
        before = self._identity
        file_replaced = now.file != before.file
        self.close()
        is_old_log = now.log == before.log
        if file_replaced and is_old_log:
            with suppress(FileNotFoundError):
                os.unlink(self.path + formats.LOG)  # it belongs to the file that was removed
        lost = "state file" if file_replaced else "log of the state file"
        self.note(
            f"the {lost} {self.path} was removed or replaced while memd ran; it goes on with what "
            "is there now: history before now may be missing, no memory is lost"
        )


class Database:
    """The state file as its users see it: durable transactions and queries."""

    def __init__(self, file: StateFile) -> None:
        self.file = file
        self.path = file.path

    def on_note(self, tell: Callable[[str], None]) -> None:
        """Call ``tell`` with each later warning about the file, in the thread that meets it."""
        self.file.tell = tell

    def close(self) -> None:
        """Close the file; the object is of no use afterwards."""
        with self.file.lock:
            self.file.end()

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[Cursor]:
        """Run the block in one durable transaction; an exception in the block rolls it back.

        One that is not ``synced`` survives the end of the process, but perhaps not a power cut; the
        next synced transaction syncs it too. Raises StateUnusableError if SQLite cannot read or
        write.
        """
        with self.file.lock, self._transaction(synced=synced) as cursor:
            yield cursor

    def read(self, query: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Return all rows of one query. Raises StateUnusableError."""
        with self.file.lock:
            connection = self.file.connection()
            try:
                rows: list[Row] = connection.cursor(Cursor).execute(query, parameters).fetchall()
            except sqlite3.Error as error:
                raise self.file.failure(error) from error
            return rows

    def write(self, query: str, parameters: Sequence[object] = (), *, synced: bool = True) -> int:
        """Run one statement in a transaction and return the number of changed rows."""
        with self.transaction(synced=synced) as cursor:
            return cursor.execute(query, parameters).rowcount

    def compact(self) -> None:
        """Rewrite the file without its deleted content, and empty its log.

        All other users wait, some seconds for each 100 MiB. Raises StateUnusableError; then deleted
        content may remain in the file or its log until another call succeeds.
        """
        with self.file.lock:
            self.file.checkpoints.wait()  # it would keep the log from being emptied
            self.read("VACUUM")
            if self.read("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
                raise StateUnusableError(self.path, _READ_BY_OTHERS)

    def shrink(self) -> None:
        """Give the unused pages of the file back to the system. Raises StateUnusableError."""
        self.read("PRAGMA incremental_vacuum")

    def begin(self, cursor: Cursor) -> None:
        """Begin a transaction. Tests override this method to make it fail."""
        cursor.execute("BEGIN IMMEDIATE")

    def commit(self, cursor: Cursor) -> None:
        """Commit a transaction. Tests override this method to make it fail."""
        cursor.execute("COMMIT")

    @contextmanager
    def _transaction(self, *, synced: bool = True) -> Iterator[Cursor]:
        """Run the block in one transaction; the caller holds the lock."""
        connection = self.file.connection()
        cursor = connection.cursor(Cursor)
        try:
            with _as_sqlite():
                if self.file.synced is not synced:
                    cursor.execute(_SYNCED if synced else _UNSYNCED)
                    self.file.synced = synced
                self.begin(cursor)
            try:
                yield cursor
            except BaseException:
                with suppress(sqlite3.Error):
                    cursor.execute("ROLLBACK")
                raise
            with _as_sqlite():
                self.commit(cursor)
            self.file.note_success()
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                connection.rollback()
            raise self.file.failure(error) from error
        finally:
            with suppress(sqlite3.Error):  # the file may be closed by now
                cursor.close()  # an error's frames would keep it open, and with it the file


def open_database(
    path: str,
    schemas: Sequence[str],
    *,
    later: bool = False,
    convert: Callable[[str, Sequence[str]], str] = lambda *_: "",
) -> Database:
    """Open or create the state file (mode 0600) with all tables of ``schemas``, and return it.

    Each schema is ``CREATE … IF NOT EXISTS``. ``convert`` carries a file of an older format over,
    and returns a sentence about that or "". A file that cannot be used is renamed first. Raises
    StateUnusableError; with ``later`` it only becomes a note, and the file is opened at its next
    use.
    """
    file = StateFile(path, schemas, convert)
    try:
        file.connection()
    except StateUnusableError as error:
        if not later:
            raise
        file.note(f"{error.sentence}: memories are served, history and jobs wait for it")
    return Database(file)


def _by_number(values: Sequence[Any]) -> dict[str, Any]:
    """Return the values with their positions as keys, beginning with "1"."""
    return {str(number): value for number, value in enumerate(values, 1)}


@contextmanager
def _as_sqlite() -> Iterator[None]:
    """Raise an OSError of the block, which a test injects, as the error that SQLite would raise."""
    try:
        yield
    except OSError as error:
        converted = sqlite3.OperationalError(str(error))
        converted.sqlite_errorcode = (
            sqlite3.SQLITE_FULL if error.errno == errno.ENOSPC else sqlite3.SQLITE_IOERR
        )
        raise converted from error
