"""Store the last client of each memory directory, to find the directory without a client.

A timer that looks for dreams that are due has no client to ask, so the last one's working
directory and forwarded variables (``places.FORWARDED``) are kept for each directory.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from memd.base.recent import Recent
from memd.base.text import read_object
from memd.state.database import Database
from memd.state.records import time_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS visits (
    directory TEXT PRIMARY KEY,
    cwd TEXT NOT NULL,
    client TEXT NOT NULL,
    environment TEXT NOT NULL,
    at REAL NOT NULL
) STRICT, WITHOUT ROWID;
"""
ROWS_KEPT = 1000  # directories; the timer looks at each of them
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Visit:
    """A client's last contact: its working directory, name and forwarded variables.

    ``session`` is its session or "". ``at`` is the time of a stored visit in seconds since 1970.
    """

    cwd: str
    client: str
    environment: Mapping[str, str]
    session: str = ""
    at: float = field(default=0.0, compare=False)

    @property
    def caller(self) -> tuple[str, Mapping[str, str], str]:
        """The working directory, variables and name, as ``Store.where`` takes them."""
        return self.cwd, self.environment, self.client


class Visits:
    """The last visit to each memory directory. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # By directory: the visit that was stored last, as JSON, and when.
        self._stored: Recent[str, tuple[str, float]] = Recent(ROWS_KEPT)

    def remember(self, directory: str, visit: Visit, at: float) -> None:
        """Store a client's visit without its session, unless an equal one was stored today.

        ``at`` is in seconds since 1970. Beyond ``ROWS_KEPT`` directories the oldest are deleted.
        """
        environment = json.dumps(dict(visit.environment), sort_keys=True)
        visit_text = json.dumps([visit.cwd, visit.client, environment])
        stored_text, stored_at = self._stored.get(directory, ("", at))
        if stored_text == visit_text and abs(at - stored_at) < _DAY_SECONDS:
            return
        with self._database.transaction() as cursor:
            cursor.execute(
                "INSERT OR REPLACE INTO visits VALUES (?, ?, ?, ?, ?)",
                (directory, visit.cwd, visit.client, environment, at),
            )
            cursor.execute(
                # Sorted so that this visit is kept even if the clock was set back.
                "DELETE FROM visits WHERE directory IN"
                " (SELECT directory FROM visits ORDER BY directory = ? DESC, at DESC"
                " LIMIT -1 OFFSET ?)",
                (directory, ROWS_KEPT),
            )
        self._stored[directory] = (visit_text, at)

    def all(self) -> tuple[Visit, ...]:
        """Return the last visit to each directory, the newest first."""
        return tuple(visit for _, visit in self._rows())

    def by_directory(self) -> dict[str, Visit]:
        """Return the last visit to each directory by the directory's real path."""
        return {os.path.realpath(directory): visit for directory, visit in self._rows()}

    def _rows(self) -> Iterator[tuple[str, Visit]]:
        """Yield each directory with its last visit, newest first."""
        for row in self._database.read("SELECT * FROM visits ORDER BY at DESC, directory"):
            environment = _environment(row["environment"])
            visit = Visit(row["cwd"], row["client"], environment, at=time_of(row["at"]))
            yield row["directory"], visit


def _environment(text: str) -> dict[str, str]:
    """Return the forwarded variables in a row, none if it is damaged."""
    return {name: value for name, value in read_object(text).items() if isinstance(value, str)}
