"""Which memories a person wants to keep although nobody uses them, by days that were counted.

``uses.py`` has what else is counted, ``usage.py`` how days are.
"""

from collections.abc import Iterable

from memd.state.database import Cursor

DAYS = "coalesce((SELECT days FROM usage_days), 0)"  # that were counted so far
REFUSED_DAYS = 180  # for so long nobody is asked again
_KEEP = f"""
INSERT INTO uses (kind, session, directory, path, at, counted) VALUES ('kept', '', ?, ?, ?, {DAYS})
"""  # noqa: S608 - our own words


def keep(cursor: Cursor, directory: str, paths: Iterable[str], at: float) -> None:
    """Note inside a transaction that a person wants to keep memories of a directory."""
    cursor.executemany(_KEEP, [(directory, path, at) for path in paths])
