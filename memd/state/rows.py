"""Rows of the state file as objects, and back. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from memd.state.database import Cursor, Row

T = TypeVar("T")


def read_rows(rows: Iterable[Row | Mapping[str, object]], shape: type[T]) -> Iterator[T]:
    """Yield rows as objects of a class with the columns' names; invalid rows are left out."""
    for row in rows:
        with suppress(msgspec.ValidationError):
            yield msgspec.convert(dict(row), shape, strict=False)  # SQLite's booleans are numbers


def insert_row(
    cursor: Cursor, table: str, row: Mapping[str, object], *, replace: bool = False
) -> int:
    """Insert a row, given by column names, inside a transaction and return its row id."""
    verb, slots = "INSERT OR REPLACE" if replace else "INSERT", ", ".join("?" * len(row))
    query = f"{verb} INTO {table} ({', '.join(row)}) VALUES ({slots})"
    cursor.execute(query, tuple(row.values()))
    return int(cursor.lastrowid or 0)
