"""Query what happened in a span of time: changes of memories, dreams and suggestions.

Memories that a team or an import brought do not count as learnt here, and what an undo did is not
reported. A renamed memory is one memory under its last name.
"""

import os
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from operator import itemgetter

from msgspec import Struct, field
from msgspec.structs import asdict

from memd.base.imports import is_import
from memd.base.names import TEAM, in_catalogue
from memd.base.text import read_object
from memd.base.values import Actor
from memd.state.database import Database, Row
from memd.state.suggestions import DISMISSED, OPEN, SuggestionTable

OTHER_WORDS = "in other words"  # the end of the reason of a suggestion that was edited
_MOST_FILES = 100_000  # of change sets, in one query
_FILES = f"""
SELECT c.id AS change, d.path AS directory, c.at, c.actor, c.origin, f.path, f.before, f.after,
    f.before_mtime_ns, f.after_mtime_ns
FROM change c JOIN change_file f ON f.change = c.id JOIN directory d ON d.id = c.directory
WHERE c.state = 'done' AND c.at >= :since AND c.at <= :until AND NOT f.conflict
    AND (:directory = '' OR d.path = :directory) ORDER BY c.id DESC, f.number LIMIT {_MOST_FILES}
"""  # noqa: S608 - our own words
_DREAMS = """
SELECT directory, ended, result FROM jobs WHERE kind = 'dream' AND state = 'completed'
    AND ended >= :since AND ended <= :until
ORDER BY number DESC
"""
# An accepted suggestion is a change by a client whose reason says so.
_ACCEPTED = """
SELECT count(*) AS accepted, coalesce(sum(reason LIKE :edited), 0) AS edited
FROM change c JOIN directory d ON d.id = c.directory
WHERE state = 'done' AND actor = 'client' AND reason LIKE 'accepted suggestion %'
    AND at >= :since AND at <= :until AND (:directory = '' OR d.path = :directory)
"""


class Span(Struct, frozen=True):
    """A span of time in seconds since 1970, for one directory (its real path) or for all with "".

    Rows that a wrong clock dated in the future are in no span.
    """

    since: float
    until: float
    directory: str = ""


class FileEvent(Struct, frozen=True):
    """A change of one memory, ``at`` in seconds since 1970."""

    directory: str
    path: str
    at: float


class MemoryEvents(Struct):
    """The memories that changed, each in one list, newest first; and the number of dreams."""

    learnt: list[FileEvent] = field(default_factory=list)
    changed: list[FileEvent] = field(default_factory=list)
    merged: list[FileEvent] = field(default_factory=list)
    removed: list[FileEvent] = field(default_factory=list)
    dreams: int = 0


class SuggestionFates(Struct, frozen=True):
    """What happened to suggestions: ``made`` and ``dismissed`` of those stored in the span.

    ``accepted`` were saved as they were, ``edited`` in other words; ``open`` wait now.
    """

    made: int = 0
    accepted: int = 0
    edited: int = 0
    dismissed: int = 0
    open: int = 0


_Place = tuple[str, str]  # directory and path


class _MemoryHistory(Struct):
    """What the span's changes tell about one memory, from its last event to its first.

    The first three fields are of the last event.
    """

    at: float  # seconds since 1970
    exists: bool  # after the last event
    by_us: bool  # neither a team, an import nor an undo made the last event
    existed: bool = True  # before the first event
    learnt: bool = False  # neither these nor a dream made the first event


class Period:
    """Queries about a span of time. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def memories(self, span: Span) -> MemoryEvents:
        """Return which memories were learnt, changed, merged and removed in a span."""
        events = MemoryEvents()
        merged: set[_Place] = set()  # a dream removes what it merges into another memory
        for row in self._database.read(_DREAMS, asdict(span)):
            directory = os.path.realpath(row["directory"])
            if span.directory in ("", directory):
                events.dreams += 1
                for merge in read_object(row["result"]).get("merged", ()):
                    merged.update((directory, path) for path in merge["from"])
        histories: dict[_Place, _MemoryHistory] = {}
        names: dict[_Place, _Place] = {}  # from an old place to the last one
        for _, files in groupby(self._database.read(_FILES, asdict(span)), itemgetter("change")):
            _add_change([row for row in files if in_catalogue(row["path"])], histories, names)
        for place, history in histories.items():
            event = FileEvent(*place, history.at)
            if history.exists and not history.existed:
                events.learnt += [event] if history.learnt else []
            elif history.existed and history.by_us:  # else it came and went, or others did it
                gone = events.merged if place in merged else events.removed
                (events.changed if history.exists else gone).append(event)
        return events

    def fates(self, span: Span) -> SuggestionFates:
        """Return what happened to suggestions in a span."""
        stored = SuggestionTable(self._database).all()
        here = [each for place, each in stored if span.directory in ("", place)]
        made = [each for each in here if span.since <= each.filed <= span.until]
        taken = self._database.read(_ACCEPTED, asdict(span) | {"edited": f"% {OTHER_WORDS}"})[0]
        return SuggestionFates(
            made=len(made),
            accepted=taken["accepted"] - taken["edited"],
            edited=taken["edited"],
            dismissed=sum(each.state == DISMISSED for each in made),
            open=sum(each.state == OPEN for each in here),
        )


def _add_change(
    files: Sequence[Row], histories: dict[_Place, _MemoryHistory], names: dict[_Place, _Place]
) -> None:
    """Add a change's files to the memories' histories; changes come newest first.

    ``names`` maps the earlier places of renamed memories to the last one.
    """
    moves = _renamed_paths(files)
    new_names = set(moves.values())
    for row in files:
        directory, actor = row["directory"], row["actor"]
        place = (directory, row["path"])
        if row["path"] in moves:  # this file is the old name of a renamed memory
            new_place = (directory, moves[row["path"]])
            names[place] = names.get(new_place, new_place)
            continue
        by_us = actor not in (Actor.TEAM, Actor.UNDO) and not is_import(row["origin"])
        last_event = _MemoryHistory(row["at"], exists=row["after"] is not None, by_us=by_us)
        # A history that is there already has a later event as its last one.
        history = histories.setdefault(names.get(place, place), last_event)
        history.existed = row["before"] is not None or row["path"] in new_names
        history.learnt = by_us and actor != Actor.DREAM


def _renamed_paths(files: Sequence[Row]) -> dict[str, str]:
    """Return the new path of each renamed file of a change by its old path.

    A removed and a new file are the same memory if their bytes are equal, if one is the other's
    copy below ``team/``, or if their mtimes are equal, since memd changes the name in the
    frontmatter of a renamed file. Pairs with the same file name are preferred.
    """
    changed = [row for row in files if row["before"] != row["after"]]
    gone = {row["path"]: row for row in changed if row["after"] is None}
    new = {row["path"]: row for row in changed if row["before"] is None}
    result: dict[str, str] = {}
    # Each key is tried on the files that the ones before it did not match.
    for key_of in _KEYS if gone and new else ():
        paths: dict[Hashable, deque[str]] = defaultdict(deque)
        for path, row in new.items():
            paths[key_of(path, row["after"], row["after_mtime_ns"])].append(path)
        for path, row in list(gone.items()):
            key = key_of(path, row["before"], row["before_mtime_ns"])
            if key is not None and paths.get(key):
                result[path] = paths[key].popleft()
                del gone[path], new[result[path]]
    return result


# Keys of a file's path, body and mtime: a removed and a new file with equal keys are one memory.
_KEYS: tuple[Callable[[str, int, int | None], Hashable], ...] = (
    lambda path, body, _mtime_ns: (body, os.path.basename(path)),
    lambda _path, body, _mtime_ns: body,
    lambda path, _body, _mtime_ns: path.removeprefix(TEAM),
    lambda path, _body, mtime_ns: None if mtime_ns is None else (mtime_ns, os.path.basename(path)),
    lambda _path, _body, mtime_ns: mtime_ns,
)
