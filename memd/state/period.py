"""Query what happened in a span of time: changes of memories, dreams and suggestions.

The state file may be damaged: rows with invalid values do not count. Memories that a team or an
import brought do not count as learnt here, and what an undo did is not reported.
"""

import os
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from msgspec import Struct, field
from msgspec.structs import asdict

from memd.base.imports import is_import
from memd.base.names import in_catalogue
from memd.base.text import read_object
from memd.base.values import Actor
from memd.state.database import Database, Row
from memd.state.renames import Move, renamed_paths
from memd.state.rows import text_of, time_of
from memd.state.suggestions import DISMISSED, OPEN, SuggestionTable, state_of

OTHER_WORDS = "in other words"  # the end of the reason of a suggestion that was edited
_ACTORS_WHO_TEACH_NOTHING = (Actor.TEAM, Actor.UNDO)  # what they write does not count as learnt
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
    """What the span's change sets tell about one memory, from its last event to its first.

    Its events are those of the span; the first three fields are of the last event.
    """

    at: float  # seconds since 1970
    exists: bool  # after the last event
    by_us: bool  # neither a team, an import nor an undo made the last event
    existed: bool = True  # before the first event
    learnt: bool = False  # neither these nor a dream made the first event

    @property
    def kind(self) -> str:
        """The list of ``MemoryEvents`` that it belongs to, "" if it is not reported."""
        if self.exists and not self.existed:
            return "learnt" if self.learnt else ""
        if not self.existed or not self.by_us:  # it came and went in the span, or others did it
            return ""
        return "changed" if self.exists else "removed"


class Period:
    """Queries about a span of time. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def memories(self, span: Span) -> MemoryEvents:
        """Return which memories were learnt, changed, merged and removed in a span."""
        dreams = self._dream_merges(span)
        merged_places = {(directory, path) for directory, paths in dreams for path in paths}
        histories: dict[_Place, _MemoryHistory] = {}
        final_names: dict[_Place, _Place] = {}  # from an old place to the last one
        rows = self._database.read(_FILES, asdict(span))
        for _, files in groupby(rows, itemgetter("change")):
            _add_change_set(tuple(files), histories, final_names)
        events = MemoryEvents(dreams=len(dreams))
        for place, history in histories.items():
            kind = history.kind
            if not kind:
                continue
            # A dream removes the memories that it merges into another one.
            if kind == "removed" and place in merged_places:
                kind = "merged"
            getattr(events, kind).append(FileEvent(*place, history.at))
        return events

    def _dream_merges(self, span: Span) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return each completed dream's directory with the paths that it merged into others."""
        result = []
        for row in self._database.read(_DREAMS, asdict(span)):
            directory = os.path.realpath(text_of(row["directory"]))
            if span.directory in ("", directory):
                merges = read_object(row["result"]).get("merged")
                result.append((directory, tuple(_merged_paths(merges))))
        return tuple(result)

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
            dismissed=sum(state_of(each) == DISMISSED for each in made),
            open=sum(state_of(each) == OPEN for each in here),
        )


def _add_change_set(
    files: tuple[Row, ...],
    histories: dict[_Place, _MemoryHistory],
    final_names: dict[_Place, _Place],
) -> None:
    """Add a change set's files to the memories' histories; sets come newest first.

    ``final_names`` maps the earlier places of renamed memories to the last one.
    """
    steps = [
        Move(
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
    moves = renamed_paths(steps)
    new_names = set(moves.values())
    at, is_imported = time_of(files[0]["at"]), is_import(text_of(files[0]["origin"]))
    by_others = is_imported or actor in _ACTORS_WHO_TEACH_NOTHING
    for step in steps:
        place = (directory, step.path)
        if step.path in moves:  # the step that removes the old name of a renamed memory
            new_place = (directory, moves[step.path])
            final_names[place] = final_names.get(new_place, new_place)
            continue
        last_event = _MemoryHistory(at, exists=step.after is not None, by_us=not by_others)
        # A history that is there already has a later event as its last one.
        history = histories.setdefault(final_names.get(place, place), last_event)
        history.existed = step.before is not None or step.path in new_names
        history.learnt = not by_others and actor != Actor.DREAM


def _merged_paths(merges: object) -> Iterator[str]:
    """Yield the paths that were merged into others, from the list in a dream job's result."""
    for merge in _list_or_empty(merges):
        paths = merge.get("from") if isinstance(merge, dict) else None
        yield from (path for path in _list_or_empty(paths) if isinstance(path, str))


def _list_or_empty(value: object) -> list[object]:
    """Return a value that is a list, an empty list for any other."""
    return value if isinstance(value, list) else []
