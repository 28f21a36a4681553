"""Store which unused memories a person wants to keep.

``uses.py`` counts the uses of memories; ``usage.py`` counts days.
"""

from collections.abc import Iterable

from memd.state.database import Cursor

DAYS = "coalesce((SELECT days FROM usage_days), 0)"  # SQL: the number of days counted so far
REFUSED_DAYS = 180  # counted days until the person may be asked about a memory again
_STORE_KEEPING = f"""
INSERT INTO uses (kind, session, directory, path, at, counted) VALUES ('kept', '', ?, ?, ?, {DAYS})
"""  # noqa: S608 - our own words


def store_keeping(cursor: Cursor, directory: str, paths: Iterable[str], at: float) -> None:
    """Store that a person wants to keep memories of a directory, inside a transaction."""
    cursor.executemany(_STORE_KEEPING, [(directory, path, at) for path in paths])
