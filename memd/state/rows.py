"""Rows of the state file as objects, and back. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from memd.state.database import Cursor, Row

T = TypeVar("T")
_LATEST_TIME = 253_402_214_400.0  # the last day of the year 9999: later times have no ISO form


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


def text_of(value: Any) -> str:
    """Return a column's value if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def time_of(value: Any) -> float:
    """Return a time in seconds since 1970 that has an ISO form, 0 for an invalid value."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return float(max(0.0, min(value, _LATEST_TIME)))
