"""The interface of a database: transactions, and the SQL that differs between databases.

Rules of this file
- SQL is written once, in the words of SQLite, with ``?`` for values and ``FOR UPDATE`` at the end
  of a query whose rows a write locks. A driver translates it.
- A transaction that returns is durable. One that raises changed nothing, except that a COMMIT that
  failed may have taken effect. So a request is repeated under its id.
- After a failure of the database no open connection is used again.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from memd.server.errors import StorageBusyError, TeamServerError

CONNECTIONS = 8  # the most at once
BUSY_SECONDS = 10.0  # how long a call waits for a lock or a connection
Row = tuple[Any, ...]


class Transaction:
    """One transaction, in which SQL is run."""

    def __init__(self, cursor: Any, driver: "Driver") -> None:
        self._cursor = cursor
        self._driver = driver

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Return all rows of a query."""
        rows: list[Row] = self._cursor.execute(self._driver.words(sql), values).fetchall()
        return rows

    def row(self, sql: str, *values: object) -> Row | None:
        """Return the first row of a query, ``None`` if there is none."""
        row: Row | None = self._cursor.execute(self._driver.words(sql), values).fetchone()
        return row

    def run(self, sql: str, *values: object) -> int:
        """Run a statement and return how many rows it changed."""
        return int(self._cursor.execute(self._driver.words(sql), values).rowcount)

    def run_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each row of values."""
        self._cursor.executemany(self._driver.words(sql), rows)


class Driver(ABC):
    """A database: a few connections, and transactions on them. Every method blocks."""

    errors: ClassVar[type[Exception]]  # the class of the library's errors
    begin_reading: ClassVar[str]  # the statement that begins a transaction on one snapshot
    begin_writing: ClassVar[str]  # the statement that begins a transaction that writes

    def __init__(self) -> None:
        self._idle: list[Any] = []  # open connections that no thread uses
        self._free_places = threading.BoundedSemaphore(CONNECTIONS)  # one for each connection

    @abstractmethod
    def connect(self) -> Any:
        """Return a new connection, on which each statement is a transaction of its own."""

    @abstractmethod
    def words(self, sql: str) -> str:
        """Return a statement in the SQL of this database."""

    @abstractmethod
    def failure(self, error: Exception) -> TeamServerError:
        """Return the server's error for an error of the library."""

    @abstractmethod
    def lock(self, transaction: Transaction) -> None:
        """Keep all other processes from creating tables until the transaction ends."""

    @abstractmethod
    def compact(self) -> None:
        """Write the tables again, so that deleted rows are not on the disk any more."""

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Run queries on one snapshot."""
        with self._transaction(self.begin_reading) as transaction:
            yield transaction

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Run one durable transaction; an exception in the block undoes it."""
        with self._transaction(self.begin_writing) as transaction:
            yield transaction

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """Lend a connection. Raises StorageBusyError and the errors of ``failure``."""
        if not self._free_places.acquire(timeout=BUSY_SECONDS):
            raise StorageBusyError
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self.connect()
            try:
                yield connection
            finally:
                self._idle.append(connection)
        except self.errors as error:
            self.close()
            raise self.failure(error) from error
        finally:
            self._free_places.release()

    def close(self) -> None:
        """Close the connections that no thread uses; the next use opens new ones."""
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                with suppress(self.errors):
                    connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        """Run the block in a transaction begun by a statement; an exception rolls it back."""
        with self.connection() as connection:
            cursor = connection.cursor()
            cursor.execute(begin)
            try:
                yield Transaction(cursor, self)
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")
