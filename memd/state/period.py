"""What happened in a span of time, for a report: changes of memories, dreams, suggestions, uses.

Rows are input: what makes no sense does not count. What others brought (a team, an import) was not
learnt here, and what an undo did is no news.
"""

import os
from itertools import groupby
from operator import itemgetter

from msgspec import Struct, field

from memd.core.imports import is_import
from memd.core.names import in_catalogue
from memd.core.text import read_object
from memd.core.values import Actor
from memd.state.database import Database, Row
from memd.state.records import Step, text_of, time_of
from memd.state.renames import renamed

OTHER_WORDS = "in other words"  # the end of the reason of a suggestion that was edited
_OTHERS = (Actor.TEAM, Actor.UNDO)
_MOST = 100_000  # files of changes, and uses
_FILES = f"""
SELECT c.id AS change, c.directory, c.at, c.actor, c.origin, f.path, f.before, f.after,
    f.before_mtime_ns, f.after_mtime_ns
FROM changes c JOIN change_files f ON f.change = c.id
WHERE c.state = 'applied' AND c.at >= ?1 AND c.at <= ?2 AND NOT f.conflict
    AND (?3 = '' OR c.directory = ?3) ORDER BY c.id DESC, f.number LIMIT {_MOST}
"""  # noqa: S608 - our own words
_DREAMS = """
SELECT directory, ended, result FROM jobs WHERE kind = 'dream' AND state = 'completed'
    AND ended >= ?1 AND ended <= ?2
ORDER BY number DESC
"""
_FATES = """
SELECT count(*) AS made, coalesce(sum(state = 'dismissed'), 0) AS dismissed,
    (SELECT count(*) FROM suggestions WHERE state = 'open' AND (?3 = '' OR directory = ?3)) AS open
FROM suggestions WHERE filed >= ?1 AND filed <= ?2 AND (?3 = '' OR directory = ?3)
"""
_ACCEPTED = """
SELECT count(*) AS accepted, coalesce(sum(reason LIKE ?4), 0) AS edited FROM changes
WHERE state = 'applied' AND actor = 'client' AND reason LIKE 'accepted suggestion %'
    AND at >= ?1 AND at <= ?2 AND (?3 = '' OR directory = ?3)
"""
_USES = """
SELECT kind, count(*) AS times, count(DISTINCT directory || '/' || path) AS memories,
    count(DISTINCT session) AS sessions
FROM uses WHERE at >= ?1 AND at <= ?2 AND (?3 = '' OR directory = ?3) GROUP BY kind
"""
_OFTEN = """
SELECT directory, path, sum(kind = 'surfaced') AS surfaced, sum(kind = 'read') AS read,
    sum(kind = 'acted') AS acted
FROM uses WHERE kind <> 'kept' AND at >= ?1 AND at <= ?2 AND (?3 = '' OR directory = ?3)
GROUP BY directory, path ORDER BY count(*) DESC, max(at) DESC, path LIMIT ?4
"""


class Span(Struct, frozen=True):
    """From and to when, in seconds since 1970; of one directory (its real path) unless that is "".

    What a clock that was ahead wrote is in no span.
    """

    since: float
    until: float
    directory: str = ""

    @property
    def values(self) -> tuple[float, float, str]:
        """What the queries take."""
        return (self.since, self.until, self.directory)


class FileEvent(Struct, frozen=True):
    """A memory to which something happened, ``at`` in seconds since 1970."""

    directory: str
    path: str
    at: float


class MemoryEvents(Struct):
    """What became of memories, each in one list once, the newest first; and dreams that ended."""

    learnt: list[FileEvent] = field(default_factory=list)
    changed: list[FileEvent] = field(default_factory=list)
    merged: list[FileEvent] = field(default_factory=list)
    removed: list[FileEvent] = field(default_factory=list)
    dreams: int = 0


class UseCounts(Struct, frozen=True):
    """How often memories were used in one way, how many of them, and in how many sessions."""

    times: int = 0
    memories: int = 0
    sessions: int = 0


class OftenUsed(Struct, frozen=True):
    """A memory with how often it was used in each way."""

    directory: str
    path: str
    surfaced: int
    read: int
    acted: int


class SuggestionFates(Struct, frozen=True):
    """What became of suggestions: ``made`` and ``dismissed`` of those that were filed in the span.

    ``accepted`` ones were not ``edited``; ``open`` are those that wait now.
    """

    made: int = 0
    accepted: int = 0
    edited: int = 0
    dismissed: int = 0
    open: int = 0


_Place = tuple[str, str]  # directory and path


class _Life(Struct):
    """What is known of a memory: its last event, whether it is there, and how it began.

    ``ours`` says that the last event, ``learnt`` that the first one was none of others.
    """

    at: float
    there: bool
    ours: bool
    was_there: bool = True
    learnt: bool = False

    @property
    def kind(self) -> str:
        """The list of ``MemoryEvents`` that it belongs to, "" if it is not reported."""
        if self.there and not self.was_there:
            return "learnt" if self.learnt else ""
        if not (self.was_there and self.ours):
            return ""
        return "changed" if self.there else "removed"


class Period:
    """Looks at a span of time. All methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def memories(self, span: Span) -> MemoryEvents:
        """Return what became of memories from the beginning of a span to its end."""
        dreams = self._dreams(span)
        into = {(directory, path) for directory, paths in dreams for path in paths}
        lives: dict[_Place, _Life] = {}
        names: dict[_Place, _Place] = {}  # an old name: the last one
        rows = self._database.read(_FILES, span.values)
        for _, files in groupby(rows, itemgetter("change")):
            _follow(tuple(files), lives, names)
        events = MemoryEvents(dreams=len(dreams))
        for place, life in lives.items():
            kind = life.kind
            if kind:
                kind = "merged" if kind == "removed" and place in into else kind
                getattr(events, kind).append(FileEvent(*place, life.at))
        return events

    def _dreams(self, span: Span) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return each completed dream's directory with the paths that it merged into others."""
        result = []
        for row in self._database.read(_DREAMS, (span.since, span.until)):
            directory = os.path.realpath(text_of(row["directory"]))
            if span.directory in ("", directory):
                merged = read_object(row["result"]).get("merged")
                groups = (one.get("from") for one in _list(merged) if isinstance(one, dict))
                paths = (path for group in groups for path in _list(group))
                result.append((directory, tuple(p for p in paths if isinstance(p, str))))
        return tuple(result)

    def uses(self, span: Span) -> dict[str, UseCounts]:
        """Return how memories were used, by kind: surfaced, read and acted."""
        rows = self._database.read(_USES, span.values)
        return {
            text_of(row["kind"]): UseCounts(row["times"], row["memories"], row["sessions"])
            for row in rows
        }

    def often(self, span: Span, limit: int) -> tuple[OftenUsed, ...]:
        """Return the memories that were used most."""
        rows = self._database.read(_OFTEN, (*span.values, limit))
        return tuple(OftenUsed(*row) for row in rows)

    def fates(self, span: Span) -> SuggestionFates:
        """Return what became of suggestions."""
        made = self._database.read(_FATES, span.values)[0]
        taken = self._database.read(_ACCEPTED, (*span.values, f"% {OTHER_WORDS}"))[0]
        return SuggestionFates(
            made=made["made"],
            accepted=taken["accepted"] - taken["edited"],
            edited=taken["edited"],
            dismissed=made["dismissed"],
            open=made["open"],
        )


def _follow(
    files: tuple[Row, ...], lives: dict[_Place, _Life], names: dict[_Place, _Place]
) -> None:
    """Add a change set's files to ``lives`` and ``names``; sets come newest first."""
    steps = [
        Step(
            row["path"],
            row["before"],
            row["after"],
            before_mtime_ns=row["before_mtime_ns"],
            after_mtime_ns=row["after_mtime_ns"],
        )
        for row in files
        if in_catalogue(text_of(row["path"]))
    ]
    directory, actor = text_of(files[0]["directory"]), text_of(files[0]["actor"])
    moves = renamed(steps)
    came = set(moves.values())
    others = is_import(text_of(files[0]["origin"])) or actor in _OTHERS
    for step in steps:
        place = (directory, step.path)
        if step.path in moves:
            names[place] = names.get((directory, moves[step.path]), (directory, moves[step.path]))
            continue
        life = lives.setdefault(
            names.get(place, place),
            _Life(time_of(files[0]["at"]), there=step.after is not None, ours=not others),
        )
        life.was_there = step.before is not None or step.path in came
        life.learnt = not others and actor != Actor.DREAM


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
