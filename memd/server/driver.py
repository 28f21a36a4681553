"""The interface of a database: transactions, and the SQL that differs between databases.

Rules of this file
- SQL stands once, with ``?`` for values and in the words of SQLite, with ``FOR UPDATE`` behind
  what a write locks; a driver says what is called otherwise.
- A transaction that returns is durable. One that raises changed nothing; only one whose very end
  failed may have come true all the same, and a request is therefore repeated under its id.
- After a failure of the database no open connection is used again.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from memd.server.errors import StorageBusyError, TeamServerError

CONNECTIONS = 8
BUSY_SECONDS = 10.0
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

    def renumber(self, table: str) -> None:
        """Give the next row of a table, which was filled from elsewhere, the next number."""
        self._driver.renumber(self, table)


class Driver(ABC):
    """A database: a few connections, and transactions on them. Every method blocks."""

    errors: ClassVar[type[Exception]]  # what the library raises
    begin_reading: ClassVar[str]  # one snapshot for the whole transaction
    begin_writing: ClassVar[str]

    def __init__(self) -> None:
        self._idle: list[Any] = []
        self._places = threading.BoundedSemaphore(CONNECTIONS)

    @abstractmethod
    def connect(self) -> Any:
        """Return a new connection, on which each statement is a transaction of its own."""

    @abstractmethod
    def words(self, sql: str) -> str:
        """Return SQL in the database's words."""

    @abstractmethod
    def failure(self, error: Exception) -> TeamServerError:
        """Return what an error of the library means."""

    @abstractmethod
    def lock(self, transaction: Transaction) -> None:
        """Keep all other processes from creating tables until the transaction ends."""

    @abstractmethod
    def renumber(self, transaction: Transaction, table: str) -> None:
        """Give the next row of a table, which was filled from elsewhere, the next number."""

    def damage(self, transaction: Transaction) -> list[str]:  # noqa: ARG002 - most know none
        """Return what the database itself finds wrong with its tables."""
        return []

    @abstractmethod
    def compact(self) -> None:
        """Write the tables anew, without what was deleted from them."""

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
        """Lend a connection. Raises StorageBusyError, and the library's errors as our own."""
        if not self._places.acquire(timeout=BUSY_SECONDS):
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
            self._places.release()

    def close(self) -> None:
        """Close the connections that nobody uses; the next use opens new ones."""
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
