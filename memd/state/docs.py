"""Small facts as JSON documents, in one table of the state file.

The room that owns a fact declares a struct for it and reads and writes it here; the name of its
class is the document's kind. ``place`` is what the fact belongs to, mostly the real path of a
memory directory, and "" for the whole daemon; ``key`` names one of several there.

Rules of this file
- Documents are listed in the order in which they were last put, the oldest first. No clock is
  involved, so ``keep_newest`` is right whatever the clock says.
- The state file may be damaged: a document that is no value of its class is skipped.
- Within a transaction call the functions that take its cursor; ``Docs`` begins its own.
"""

import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from memd.state.database import Cursor, Database, Row

SCHEMA = """
CREATE TABLE IF NOT EXISTS docs (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    place TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (kind, place, key)
) STRICT;
"""
# As bytes, because one text that is not UTF-8 would make the whole query fail.
_SELECT = (
    "SELECT CAST(place AS BLOB) AS place, CAST(key AS BLOB) AS key, CAST(value AS BLOB) AS value"
    " FROM docs WHERE kind = ?"
)
_GET = f"{_SELECT} AND place = ? AND key = ?"
_LIST_IN = f"{_SELECT} AND place = ? ORDER BY number"
_LIST_ALL = f"{_SELECT} ORDER BY number"

T = TypeVar("T")


class Docs:
    """The documents of a state file. Methods block and raise StateUnusableError.

    A write that is not ``synced`` survives the end of the process, but perhaps not a power cut.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def transaction(self, *, synced: bool = True) -> AbstractContextManager[Cursor]:
        """Return a transaction for the functions of this file."""
        return self._database.transaction(synced=synced)

    def get(self, kind: type[T], place: str = "", key: str = "") -> T | None:
        """Return a document, ``None`` if there is none."""
        rows = self._database.read(_GET, (kind.__name__, place, key))
        return next(iter(_read(rows, kind).values()), None)

    def list_in(self, kind: type[T], place: str = "") -> dict[str, T]:
        """Return the documents of a kind in one place by key."""
        rows = self._database.read(_LIST_IN, (kind.__name__, place))
        return {key: value for (_, key), value in _read(rows, kind).items()}

    def list_all(self, kind: type[T]) -> dict[tuple[str, str], T]:
        """Return all documents of a kind by place and key."""
        return _read(self._database.read(_LIST_ALL, (kind.__name__,)), kind)

    def put(self, value: object, place: str = "", key: str = "", *, synced: bool = True) -> None:
        """Store a struct, in place of an earlier one of its class."""
        with self.transaction(synced=synced) as cursor:
            put(cursor, value, place, key)

    def delete(self, kind: type, place: str = "", key: str = "", *, synced: bool = True) -> bool:
        """Delete a document; return whether there was one."""
        with self.transaction(synced=synced) as cursor:
            return delete(cursor, kind, place, key)


class LastNumber(Struct, frozen=True):
    """The last number that ``next_number`` returned for a kind, which is the key."""

    number: int


def get(cursor: Cursor, kind: type[T], place: str = "", key: str = "") -> T | None:
    """Return a document, ``None`` if there is none."""
    rows = cursor.execute(_GET, (kind.__name__, place, key))
    return next(iter(_read(rows, kind).values()), None)


def list_in(cursor: Cursor, kind: type[T], place: str = "") -> dict[str, T]:
    """Return the documents of a kind in one place by key."""
    rows = cursor.execute(_LIST_IN, (kind.__name__, place))
    return {key: value for (_, key), value in _read(rows, kind).items()}


def put(cursor: Cursor, value: object, place: str = "", key: str = "") -> None:
    """Store a struct, in place of an earlier one of its class; it becomes the newest."""
    cursor.execute(
        "INSERT OR REPLACE INTO docs (kind, place, key, value) VALUES (?, ?, ?, ?)",
        (type(value).__name__, place, key, _to_text(value)),
    )


def delete(cursor: Cursor, kind: type, place: str = "", key: str = "") -> bool:
    """Delete a document; return whether there was one."""
    query = "DELETE FROM docs WHERE kind = ? AND place = ? AND key = ?"
    return cursor.execute(query, (kind.__name__, place, key)).rowcount == 1


def delete_all(cursor: Cursor, kind: type, place: str | None = None) -> None:
    """Delete the documents of a kind in one place, ``None`` for all places."""
    query = "DELETE FROM docs WHERE kind = ? AND place = coalesce(?, place)"
    cursor.execute(query, (kind.__name__, place))


def keep_newest(cursor: Cursor, kind: type, most: int, place: str | None = None) -> None:
    """Delete all but the newest documents of a kind in one place, ``None`` for all places."""
    cursor.execute(
        "DELETE FROM docs WHERE number IN (SELECT number FROM docs"
        " WHERE kind = ? AND place = coalesce(?, place) ORDER BY number DESC LIMIT -1 OFFSET ?)",
        (kind.__name__, place, most),
    )


def next_number(cursor: Cursor, kind: type) -> int:
    """Return a number for a new document of a kind that none had before it."""
    last = get(cursor, LastNumber, key=kind.__name__)
    number = last.number + 1 if last else 1
    put(cursor, LastNumber(number), key=kind.__name__)
    return number


def clean(cursor: Cursor, clean_text: Callable[[str], str]) -> int:
    """Rewrite keys and values by ``clean_text``; return how many documents changed.

    Of two documents with the same key afterwards, the newer one is left.
    """
    changed = 0
    cursor.execute("SELECT number, key, value FROM docs ORDER BY number")
    for number, key, value in cursor.fetchall():
        cleaned = clean_text(key), clean_text(value)
        if cleaned != (key, value):
            query = "UPDATE OR REPLACE docs SET key = ?, value = ? WHERE number = ?"
            cursor.execute(query, (*cleaned, number))
            changed += 1
    return changed


def _read(rows: Iterable[Row], kind: type[T]) -> dict[tuple[str, str], T]:
    """Return the documents in rows by place and key, without damaged ones."""
    decode = msgspec.json.Decoder(kind).decode
    result = {}
    for row in rows:
        with suppress(ValueError, RecursionError):  # msgspec's errors and those of UTF-8 are
            result[row["place"].decode(), row["key"].decode()] = decode(row["value"])
    return result


def _to_text(value: Any) -> str:
    """Return a struct as JSON; characters that UTF-8 cannot encode become ``?``."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return text.encode(errors="replace").decode()
