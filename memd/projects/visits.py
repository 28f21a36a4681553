"""Store the last client of each memory directory, to find the directory without a client.

A timer that looks for dreams that are due has no client to ask, so the last one's working
directory and forwarded variables (``places.FORWARDED``) are kept for each directory. Functions
block and raise StateUnusableError.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from memd.state import docs
from memd.state.docs import Docs

VISITS_KEPT = 1000  # directories; the timer looks at each of them
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


def remember_visit(table: Docs, directory: str, visit: Visit, at: float) -> None:
    """Store a client's visit without its session, unless an equal one was stored today.

    ``at`` is in seconds since 1970. Beyond ``VISITS_KEPT`` directories the oldest are deleted.
    """
    visit = replace(visit, session="", at=at)
    stored = table.get(Visit, directory)
    if stored == visit and abs(at - stored.at) < _DAY_SECONDS:
        return
    with table.transaction() as cursor:
        docs.put(cursor, visit, directory)
        docs.keep_newest(cursor, Visit, VISITS_KEPT)


def last_visits(table: Docs) -> tuple[Visit, ...]:
    """Return the last visit to each directory, the newest first."""
    return tuple(reversed(table.list_all(Visit).values()))


def visits_by_directory(table: Docs) -> dict[str, Visit]:
    """Return the last visit to each directory by the directory's real path."""
    visits = table.list_all(Visit).items()
    return {os.path.realpath(directory): visit for (directory, _), visit in visits}
