"""report: what was learnt, changed and surfaced in some days, and the cost."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Annotated

import msgspec
from anyio import to_thread

from memd.base.errors import MemdError
from memd.base.text import iso_time
from memd.daemon.core import Daemon
from memd.daemon.portable import known_projects
from memd.methods.method import Result, method
from memd.projects.known import KnownProject
from memd.rpc.call import Call
from memd.state.ledger import Surfacings
from memd.state.period import FileEvent, Period, Span, SuggestionFates
from memd.state.spend import SpendRow, Sum

_MEMORIES_SHOWN = 10  # of each list
_DAY_SECONDS = 24 * 60 * 60.0


class ReportedMemory(Result):
    """A memory with its project's name and working directory ("" where it is unknown).

    ``description`` is its sentence, "" if the memory is gone or cannot be read.
    """

    path: str
    description: str
    project: str
    cwd: str
    directory: str


class DatedMemory(ReportedMemory):
    """A memory and the time of its newest event in this list (ISO 8601)."""

    at: str


class CountedMemories(Result):
    """How many memories a list has, and ten of them."""

    count: int
    memories: list[DatedMemory]


class OftenSurfaced(ReportedMemory):
    """A memory, and how often it was given to a session."""

    surfaced: int


class SurfacedCounts(Result):
    """How often memories were given to sessions, and how many memories that were."""

    times: int
    memories: int


class Spent(Result):
    """What models used and cost on a day or for a kind of work, which is the ``label``."""

    label: str
    requests: int
    tokens: int
    dollars: float


class Report(Result):
    """The events between ``since`` and ``until`` (ISO 8601); ten of each list, newest first.

    ``learnt`` are new memories, ``changed`` are existing ones, and ``merged`` were merged into
    others by a dream. Memories of an import or a team, and changes that were undone, are in none.
    ``surfaced`` counts what went out to sessions of assistants, ``most`` are the memories that did
    most often. ``dreams`` counts those that ended; ``dollars`` and ``tokens`` are those of these
    calendar days, also by day (the newest first) and by kind of work (the dearest first).
    """

    since: str
    until: str
    days: int
    learnt: CountedMemories
    changed: CountedMemories
    merged: CountedMemories
    removed: CountedMemories
    surfaced: SurfacedCounts
    most: list[OftenSurfaced]
    suggestions: SuggestionFates
    dreams: int
    dollars: float
    tokens: int
    spent_by_day: list[Spent]
    spent_by_kind: list[Spent]


@method("report", "read")
async def report(
    daemon: Daemon,
    call: Call,
    *,
    cwd: str | None = None,
    days: Annotated[int, msgspec.Meta(ge=1, le=365)] = 7,
) -> Report:
    """The memories learnt, changed and surfaced in some days, and what models cost.

    It is for the project of ``cwd`` or for all. Changes are stored as long as the history, what was
    surfaced for the 1,000 sessions used last. This request does not count as a use.
    """
    directory = (
        (await to_thread.run_sync(daemon.callers.place, call, cwd)).memory_dir if cwd else ""
    )
    known = await known_projects(daemon)
    now = daemon.clock.now()
    often_surfaced = daemon.recall.ledger.often_surfaced
    surfaced = await to_thread.run_sync(often_surfaced, now - days * _DAY_SECONDS, now)
    make = partial(_report, daemon, known, surfaced, directory)
    return await to_thread.run_sync(partial(make, now, days=days))


def _report(
    daemon: Daemon,
    known: Iterable[KnownProject],
    surfaced: Iterable[Surfacings],
    directory: str,
    now: float,
    *,
    days: int,
) -> Report:
    """Return a report of one memory directory, "" for all. Blocks."""
    real = os.path.realpath(directory) if directory else ""
    span = Span(now - days * _DAY_SECONDS, now, real)
    period = Period(daemon.database)
    events = period.memories(span)
    rows = daemon.spent.rows(days, now)
    spent = [row for row in rows if real in ("", os.path.realpath(row.project))]
    total = sum(spent, Sum())
    projects = {each.directory: each for each in known}
    given = [(place, each) for each in surfaced if (place := _place_of(projects, real, each.path))]
    sentence = partial(_sentence, cache(partial(_sentences, daemon)))
    dated = partial(_counted, partial(_dated, projects, sentence))
    return Report(
        since=iso_time(span.since),
        until=iso_time(now),
        days=days,
        learnt=dated(events.learnt),
        changed=dated(events.changed),
        merged=dated(events.merged),
        removed=dated(events.removed),
        surfaced=SurfacedCounts(times=sum(each.times for _, each in given), memories=len(given)),
        most=[
            OftenSurfaced(
                **_of_project(projects, place),
                path=path,
                description=sentence(place, path),
                surfaced=each.times,
            )
            for (place, path), each in given[:_MEMORIES_SHOWN]
        ],
        suggestions=period.fates(span),
        dreams=events.dreams,
        dollars=round(total.dollars, 6),
        tokens=total.tokens,
        spent_by_day=_spent(spent, "day"),
        spent_by_kind=sorted(_spent(spent, "kind"), key=lambda row: -row.dollars),
    )


def _place_of(projects: Mapping[str, KnownProject], real: str, path: str) -> tuple[str, str] | None:
    """Return the memory directory and the path below it of a surfaced memory.

    ``None`` if it is in another directory than ``real``, "" for all known ones. Blocks.
    """
    folder, name = os.path.realpath(os.path.dirname(path)), os.path.basename(path)
    for place in (real,) if real else projects:
        if folder == place or folder.startswith(f"{place}/"):
            return place, f"{folder}/{name}".removeprefix(f"{place}/")
    return None


def _spent(rows: Iterable[SpendRow], column: str) -> list[Spent]:
    """Return what was spent by ``day`` or ``kind``, in the order of the rows."""
    sums: dict[str, Sum] = {}
    for row in rows:
        label = getattr(row, column)
        sums[label] = sums.get(label, Sum()) + row
    return [
        Spent(
            label=label,
            requests=used.requests,
            tokens=used.tokens,
            dollars=round(used.dollars, 6),
        )
        for label, used in sums.items()
    ]


def _counted(
    shape: Callable[[FileEvent], DatedMemory], events: Iterable[FileEvent]
) -> CountedMemories:
    """Return the number of events, and the first ten as memories that ``shape`` makes."""
    every = list(events)
    return CountedMemories(
        count=len(every), memories=[shape(event) for event in every[:_MEMORIES_SHOWN]]
    )


def _dated(
    projects: Mapping[str, KnownProject], sentence: Callable[[str, str], str], event: FileEvent
) -> DatedMemory:
    """Return an event's memory with its sentence, project and time."""
    return DatedMemory(
        **_of_project(projects, event.directory),
        path=event.path,
        description=sentence(event.directory, event.path),
        at=iso_time(event.at),
    )


def _sentence(of_directory: Callable[[str], Mapping[str, str]], directory: str, path: str) -> str:
    """Return the description of a memory, "" if there is none."""
    return of_directory(directory).get(path, "")


def _sentences(daemon: Daemon, directory: str) -> Mapping[str, str]:
    """Return the descriptions of a directory's memories by path, none if it cannot be read."""
    with suppress(MemdError, OSError):
        headers = daemon.store.reading.snapshot(directory).headers
        return {header.path: header.description for header in headers}
    return {}


def _of_project(projects: Mapping[str, KnownProject], directory: str) -> dict[str, str]:
    """Return the members of a row that name a project: its name and its two directories."""
    known = projects.get(directory) or KnownProject(directory, "", (), "")
    return {"project": known.name, "cwd": known.cwd or known.root, "directory": directory}
