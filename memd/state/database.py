"""The state file: one connection to SQLite, durable transactions, and what to do when it is lost.

Rules of this file
- One connection, used by one thread at a time: ``transaction`` and ``read`` hold a lock. Both
  block: call them from a worker thread. (A second connection only copies the log.)
- A transaction that returns has been fsynced (``synchronous=FULL``) unless its caller passed
  ``synced=False``; one that raises changed nothing. (If the disk failed during the commit, the
  change may still be there when the file is opened again, as after a crash.)
- A file that SQLite reports as damaged, or that is of another program or format, is renamed with
  its log and a new one is created: that loses history, never a memory.
- The file may be removed or damaged while memd runs. Each transaction first checks that the file
  and its log are the ones that were opened, so that no commit goes where nobody can read it; a
  query does not. The connection is closed after an error of the file, and the next use opens the
  file that is there, or creates one, and adds a sentence to ``notes``; no restart is needed.
- SQLite's own checkpoint runs within the commit that made the log long, and syncs the whole file
  there: one prompt in sixty waited for the disk. Here a thread does it every ``COMMITS`` commits;
  SQLite's own is left for a log that becomes too long nevertheless.
- An error that neither the disk, the file nor a lock caused is a fault of memd's own and logged.
- Each module of this room declares its tables, and opening the file creates them.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from memd.base.errors import MemdError, Storage

Row = sqlite3.Row
Cursor = sqlite3.Cursor
_Identity = list[tuple[int, int] | None]
Values = Sequence[object] | Mapping[str, object]  # for ``?`` and for ``:name``

FORMAT = 4
COMMITS = 64  # some 1,000 pages of 4 KiB, after which SQLite would copy its log by default
# The patterns of what names of files that were put aside append; the last is of earlier versions.
PUT_ASIDE = (".damaged-*", ".other-*", ".format-*")
_LOG = "-wal"  # what the name of SQLite's log appends to the file's name
_LONGEST_PAGES = 8_000  # of the log (32 MiB), after which a commit copies it itself
_BUSY_SECONDS = 5.0  # only a person's own sqlite3 shell can hold the file; wait for it a little
_SYNCED = "PRAGMA synchronous=FULL"
_UNSYNCED = "PRAGMA synchronous=NORMAL"  # in WAL mode: a commit does not wait for the disk
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# A new connection may succeed.
_STUCK = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
_OF_DISK = (  # the next try may succeed
    *(*_DAMAGED, *_STUCK, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
)


class StateUnusableError(Storage):
    """The state file cannot be opened, read or written at the moment.

    It is a class of its own since whoever can do without a small fact goes on after it, and not
    after a failure of the disk that holds memories.
    """

    hint = "free disk space or mend the permissions of the state directory; no restart is needed"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"the state file {path} cannot be used: {cause}", path=path, cause=cause)


class StateFaultError(StateUnusableError):
    """SQLite refused a statement of memd's own; only the log has the cause, under this id.

    The file is as before and can be used, so whoever can do without the statement's result goes on.
    """

    code = -32603
    kind = "internal"
    retryable = False
    of_disk = False
    hint = "memctl logs shows the entry with this error id"
    exit_status = 1

    def __init__(self, error_id: str) -> None:
        sentence = f"memd failed unexpectedly; its log has error {error_id}"
        MemdError.__init__(self, sentence, error=error_id)


class OtherFormatError(sqlite3.DatabaseError):
    """The file is a database, but not of this format."""


class StateFile:
    """The connection to the state file, reopened after the file was lost or damaged.

    Its users hold ``lock``. ``notes`` are sentences about what happened to the file, and ``tell``
    gets each later one. ``log_fault`` logs a fault of memd's own and returns the id of the log's
    entry. ``convert`` carries a file of an older format over and returns a sentence about that.
    """

    def __init__(
        self,
        path: str,
        schemas: Sequence[str],
        convert: Callable[[str, Sequence[str]], str] = lambda *_: "",
    ) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.notes: list[str] = []
        self.tell: Callable[[str], None] = lambda _: None
        self.log_fault: Callable[[Exception], str] = lambda _: "that was not logged"
        self.openings = 0  # how often a file was opened: what was read of an earlier one is old
        self.synced = True  # whether transactions of the connection are
        self._schemas, self._convert = tuple(schemas), convert
        self._connection: sqlite3.Connection | None = None
        self._copier: sqlite3.Connection | None = None  # for copies of the log alone
        self._copy: threading.Thread | None = None  # the last copy of the log
        self.commits = 0  # since the last copy of the log began
        self._identity: _Identity = [None, None]  # of the file that is open
        self.damages = 0  # how often the file was reported as damaged since a commit succeeded
        self._is_lost = False  # it was removed or replaced while it was open
        self._ended = False  # closed for good

    def connection(self, *, writing: bool = False) -> sqlite3.Connection:
        """Return the connection; before ``writing`` check that its file and log are still there.

        Raises StateUnusableError.
        """
        if self._ended:
            raise StateUnusableError(self.path, "it was closed")
        try:
            if writing and self._connection is not None and _identity(self.path) != self._identity:
                self._close_lost()
            if self._connection is None:
                self._connection = self._open()
                self.openings, self.synced = self.openings + 1, True
                self._identity = _identity(self.path)
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StateUnusableError(self.path, str(error)) from error
        return self._connection

    def is_in_place(self) -> bool:
        """Return whether the file that was opened is the one at its path, or none was opened."""
        if self._connection is not None and _identity(self.path)[0] != self._identity[0]:
            self._is_lost = True
        return not self._is_lost

    def begin_copy(self) -> None:
        """Begin a copy of the log into the file, unless one is under way."""
        if self._copy is not None and self._copy.is_alive():
            return
        self.commits = 0
        thread = threading.Thread(target=self._copy_log, name="memd-checkpoint", daemon=True)
        with suppress(RuntimeError):  # no thread can be started: SQLite's own checkpoint follows
            thread.start()
            self._copy = thread

    def wait_for_copy(self) -> None:
        """Wait until the copy of the log that is under way has ended."""
        if self._copy is not None:
            self._copy.join()

    def failure(self, error: sqlite3.Error) -> StateUnusableError:
        """Return the error for the caller of a statement; a fault of memd's own is logged.

        The file is closed if it is damaged or its connection cannot be used any more.
        """
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # SQLite's primary result code
        if code not in _OF_DISK:
            return StateFaultError(self.log_fault(error))
        self.damages += code in _DAMAGED
        if code in (*_DAMAGED, *_STUCK):
            self.close()
        return StateUnusableError(self.path, str(error))

    def note(self, sentence: str) -> None:
        """Add a sentence to ``notes`` and pass it to ``tell``."""
        self.notes.append(sentence)
        self.tell(sentence)

    def close(self, *, for_good: bool = False) -> None:
        """Close the file; the next use opens it again, or raises StateUnusableError."""
        self._ended = self._ended or for_good
        self.wait_for_copy()
        for connection in filter(None, (self._copier, self._connection)):
            with suppress(sqlite3.Error):
                connection.close()
        self._copier = self._connection = None

    def _copy_log(self) -> None:
        """Copy what the log has now into the file, without waiting for readers or writers."""
        # An error is for the commits to report: they use the same file and disk.
        with suppress(sqlite3.Error):
            if self._copier is not None:
                self._copier.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _close_lost(self) -> None:
        """Close a file that was removed or replaced, or whose log was, and add a note."""
        before, now = self._identity, _identity(self.path)
        self.close()
        is_lost = now[0] != before[0]
        self._is_lost = self._is_lost or is_lost
        if is_lost and now[1] == before[1]:
            with suppress(FileNotFoundError):
                os.unlink(self.path + _LOG)  # it belongs to the file that was removed
        lost = "state file" if is_lost else "log of the state file"
        self.note(
            f"the {lost} {self.path} was removed or replaced while memd ran; it goes on with what "
            "is there now: history before now may be missing, no memory is lost"
        )

    def _open(self) -> sqlite3.Connection:
        """Open the file, or a new one after renaming a file that cannot be used."""
        with suppress(sqlite3.Error):  # a file that cannot be carried over is put aside below
            carried_over = self._convert(self.path, self._schemas)
            if carried_over:
                self.note(carried_over)
        ending, cause = "damaged", "it is damaged"
        # A file that was reported as damaged twice is renamed, even if the check finds nothing.
        if self.damages < 2:  # noqa: PLR2004 - once may have been this connection alone
            try:
                return self._connect()
            except sqlite3.OperationalError:
                raise
            except OtherFormatError as error:
                ending, cause = "other", str(error)
            except sqlite3.DatabaseError:
                pass
        number = 1
        while os.path.lexists(new_path := f"{self.path}.{ending}-{number}"):
            number += 1
        for part in ("", _LOG, "-shm"):
            with suppress(FileNotFoundError):
                os.rename(self.path + part, new_path + part)
        self.damages = 0
        self.note(
            f"the state file could not be used, as {cause}; it is now {new_path} and a new one was "
            "begun: history before now is there, no memory is lost"
        )
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
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
            is_new = _check(connection, thorough=self.damages > 0)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_LONGEST_PAGES}")
            connection.execute(_SYNCED)
            # One transaction, and so one wait for the disk.
            format_number = f"PRAGMA user_version={FORMAT};" if is_new else ""
            script = ("BEGIN;", format_number, *self._schemas, "COMMIT;")
            connection.executescript("\n".join(script))
            # Opened now: SQLite keeps the descriptors of a file while any connection has it open.
            self._copier.execute("PRAGMA schema_version")
        except BaseException:
            self._copier.close()
            connection.close()
            raise
        return connection


class Database:
    """The state file as its users see it: durable transactions and queries."""

    def __init__(self, file: StateFile) -> None:
        self.file = file
        self.path = file.path

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[Cursor]:
        """Run the block in one durable transaction; an exception in the block rolls it back.

        One that is not ``synced`` survives the end of the process, but perhaps not a power cut; the
        next synced transaction syncs it too. Raises StateUnusableError if SQLite cannot read or
        write.
        """
        file = self.file
        with file.lock:
            connection = file.connection(writing=True)
            cursor = connection.cursor()
            try:
                if file.synced is not synced:
                    cursor.execute(_SYNCED if synced else _UNSYNCED)
                    file.synced = synced
                cursor.execute("BEGIN IMMEDIATE")
                yield cursor
                cursor.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    connection.rollback()
                if isinstance(error, sqlite3.Error):
                    raise file.failure(error) from error
                raise
            finally:
                with suppress(sqlite3.Error):  # the file may be closed by now
                    cursor.close()  # an error's frames would keep it open, and with it the file
            file.commits, file.damages = file.commits + 1, 0
            if file.commits >= COMMITS:
                file.begin_copy()

    def is_in_place(self) -> bool:
        """Return whether the file that was opened is the one at its path, or none was opened."""
        with self.file.lock:
            return self.file.is_in_place()

    def renewed(self) -> int:
        """Open the file anew if it was lost; return the number of the opening.

        What was read in an earlier opening may be of another file. Raises StateUnusableError.
        """
        with self.file.lock:
            self.file.connection(writing=True)
            return self.file.openings

    def read(self, query: str, values: Values = ()) -> list[Row]:
        """Return all rows of one query. Raises StateUnusableError."""
        with self.file.lock:
            try:
                return self.file.connection().execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise self.file.failure(error) from error

    def write(self, query: str, values: Values = (), *, synced: bool = True) -> int:
        """Run one statement in a transaction and return the number of changed rows."""
        with self.transaction(synced=synced) as cursor:
            return cursor.execute(query, values).rowcount

    def compact(self) -> None:
        """Rewrite the file without its deleted content, and empty its log.

        All other users wait, some seconds for each 100 MiB. Raises StateUnusableError; then deleted
        content may remain in the file or its log until another call succeeds.
        """
        with self.file.lock:
            self.file.wait_for_copy()  # it would keep the log from being emptied
            self.read("VACUUM")
            if self.read("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
                cause = "another program has it open, so its log cannot be emptied"
                raise StateUnusableError(self.path, cause)

    def shrink(self) -> None:
        """Give the unused pages of the file, and its log, back to the system.

        A log that another program reads stays. Raises StateUnusableError.
        """
        with self.file.lock:
            self.file.wait_for_copy()  # it would keep the log from being emptied
            try:
                # As a script: a statement gives one page back for each row that is fetched.
                self.file.connection().executescript("PRAGMA incremental_vacuum")
            except sqlite3.Error as error:
                raise self.file.failure(error) from error
            self.read("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file; the object is of no use afterwards."""
        with self.file.lock:
            self.file.close(for_good=True)


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


def _identity(path: str) -> _Identity:
    """Return device and inode of the state file and of its log, ``None`` for a missing one."""
    inodes: _Identity = [None, None]
    for index, name in enumerate((path, path + _LOG)):
        with suppress(FileNotFoundError):
            status = os.stat(name)
            inodes[index] = status.st_dev, status.st_ino
    return inodes


def _check(connection: sqlite3.Connection, *, thorough: bool) -> bool:
    """Check a file, ``thorough`` also its indexes; return whether it is new.

    Raises OtherFormatError for a file of another format, sqlite3.Error for a damaged one.
    """
    number = connection.execute("PRAGMA user_version").fetchone()[0]
    if number not in (0, FORMAT):
        sentence = f"it has format {number}, and this memd uses format {FORMAT}"
        raise OtherFormatError(sentence)
    if number == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        sentence = "it is of another program"
        raise OtherFormatError(sentence)
    pragma = "integrity_check" if thorough else "quick_check"
    result = connection.execute(f"PRAGMA {pragma}(1)").fetchone()[0]
    if result != "ok":
        raise sqlite3.DatabaseError(result)
    is_new: bool = number == 0
    return is_new
