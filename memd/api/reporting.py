"""report: the memories learnt, changed and used in some days, the cost, and open questions."""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated

import msgspec
from anyio import to_thread

from memd.api.memory import project_of
from memd.api.method import Result, method
from memd.api.services import Services
from memd.core.clock_check import DAY_SECONDS
from memd.core.text import iso_time
from memd.projects.project import NoProjectError
from memd.projects.projects import KnownProject
from memd.rpc.connection import Call
from memd.state.tables import FileEvent, OftenUsed, Span, SuggestionFates, Sum, UseCounts

_MEMORIES_SHOWN = 10  # of each list


class ReportedMemory(Result):
    """A memory with its project's name and working directory ("" where it is unknown)."""

    path: str
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


class OftenUsedMemory(ReportedMemory):
    """A memory, and how often it was used in the time of the report."""

    surfaced: int
    read: int
    acted: int


class WaitingProposals(Result):
    """How many proposals of a project wait for a person."""

    project: str
    cwd: str
    directory: str
    proposals: int


class Report(Result):
    """The events between ``since`` and ``until`` (ISO 8601); ten of each list, newest first.

    ``learnt`` are new memories, ``changed`` are existing ones, and ``merged`` were merged into
    others by a dream. Memories of an import or a team, and changes that were undone, are in none.
    ``read`` and ``acted`` count uses; ``most`` are the memories with the most uses. ``unused`` are
    those without a use in 90 counted days, the longest unused first; their ``at`` is their last
    event or when counting began. ``dreams`` counts those that ended, ``dollars`` and ``tokens`` are
    those of these calendar days, and ``questions`` are proposals that wait for a person.
    """

    since: str
    until: str
    days: int
    learnt: CountedMemories
    changed: CountedMemories
    merged: CountedMemories
    removed: CountedMemories
    surfaced: UseCounts
    read: int
    acted: int
    most: list[OftenUsedMemory]
    unused: CountedMemories
    suggestions: SuggestionFates
    dreams: int
    dollars: float
    tokens: int
    questions: list[WaitingProposals]


@method("report", "read", NoProjectError)
async def report(
    services: Services,
    call: Call,
    *,
    cwd: str | None = None,
    days: Annotated[int, msgspec.Meta(ge=1, le=365)] = 7,
) -> Report:
    """The memories learnt, merged and used in some days, the unused ones, and the cost.

    It is for the project of ``cwd`` or for all. Uses are stored for 90 days, changes as long as the
    history. This request does not count as a use.
    """
    directory = (await project_of(services, call, cwd)).memory_dir if cwd else ""
    known = await services.exports.projects()
    waiting = await services.reviews.waiting()
    return await to_thread.run_sync(
        partial(_report, services, known, waiting, directory, days=days)
    )


def _report(
    services: Services,
    known: Iterable[KnownProject],
    waiting: Mapping[str, int],
    directory: str,
    *,
    days: int,
) -> Report:
    """Return a report of one memory directory, "" for all. Blocks."""
    now, real = services.clock.now(), os.path.realpath(directory) if directory else ""
    span = Span(now - days * DAY_SECONDS, now, real)
    period = services.usage.period()
    events, uses = period.memories(span), period.uses(span)
    rows = services.spent.summary(days, "project", now)
    spent = sum((row for row in rows if real in ("", os.path.realpath(row.label))), Sum())
    projects = {each.directory: each for each in known}
    dated = partial(_counted, partial(_dated, projects))
    return Report(
        since=iso_time(span.since),
        until=iso_time(now),
        days=days,
        learnt=dated(events.learnt),
        changed=dated(events.changed),
        merged=dated(events.merged),
        removed=dated(events.removed),
        surfaced=uses.get("surfaced", UseCounts()),
        read=uses.get("read", UseCounts()).times,
        acted=uses.get("acted", UseCounts()).times,
        most=[_often_used(projects, used) for used in period.often(span, _MEMORIES_SHOWN)],
        unused=dated(e for e in services.usage.unused(real) if real or e.directory in projects),
        suggestions=period.fates(span),
        dreams=events.dreams,
        dollars=round(spent.dollars, 6),
        tokens=spent.tokens,
        questions=[
            WaitingProposals(**_of_project(projects, place), proposals=count)
            for place, count in sorted(waiting.items())
            if real in ("", place) and os.path.isdir(place)
        ],
    )


def _counted(
    shape: Callable[[FileEvent], DatedMemory], events: Iterable[FileEvent]
) -> CountedMemories:
    """Return the number of events, and the first ten as memories that ``shape`` makes."""
    every = list(events)
    return CountedMemories(
        count=len(every), memories=[shape(event) for event in every[:_MEMORIES_SHOWN]]
    )


def _dated(projects: Mapping[str, KnownProject], event: FileEvent) -> DatedMemory:
    """Return an event's memory with its project and time."""
    project = _of_project(projects, event.directory)
    return DatedMemory(**project, path=event.path, at=iso_time(event.at))


def _often_used(projects: Mapping[str, KnownProject], used: OftenUsed) -> OftenUsedMemory:
    """Return an often used memory with its project and its uses."""
    return OftenUsedMemory(
        **_of_project(projects, used.directory),
        path=used.path,
        surfaced=used.surfaced,
        read=used.read,
        acted=used.acted,
    )


def _of_project(projects: Mapping[str, KnownProject], directory: str) -> dict[str, str]:
    """Return the members of a row that name a project: its name and its two directories."""
    known = projects.get(directory) or KnownProject(directory, "", (), "")
    return {"project": known.name, "cwd": known.cwd or known.root, "directory": directory}


METHODS = (report,)
