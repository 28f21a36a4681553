"""report: what memd learnt, changed and surfaced in some days, what it cost, and what waits."""

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

_NAMED = 10  # of each list


class ReportedMemory(Result):
    """A memory with its project: a name, and where it is worked in ("" where nobody knows)."""

    path: str
    project: str
    cwd: str
    directory: str


class DatedMemory(ReportedMemory):
    """A memory, and when the last thing happened to it that this list is about (ISO 8601)."""

    at: str


class CountedMemories(Result):
    """How many memories, and ten of them."""

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
    """What happened ``since`` a time, ``until`` now (ISO 8601); ten of each list, newest first.

    ``learnt`` are memories that are new, ``changed`` those that are not; ``merged`` went into
    others by a dream. What an import or a team brought, and what was taken back, is in none.
    ``read`` and ``acted`` are times; ``most`` were used most. ``unused`` are those that nobody used
    in 90 days in which memd counted, the longest unused first; ``at`` is when it began to count or
    something last happened to them. ``dreams`` ended, ``dollars`` and ``tokens`` are those of these
    calendar days, ``questions`` are proposals that wait.
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
    """What memd learnt, merged, surfaced and cost in some days, and what nobody uses.

    Of one project or of all. What is used is known for 90 days, changes as long as the history is
    kept. Asking counts as no use.
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
    """Put a report together. Blocks."""
    now, real = services.clock.now(), os.path.realpath(directory) if directory else ""
    span = Span(now - days * DAY_SECONDS, now, real)
    period = services.usage.period()
    events, uses = period.memories(span), period.uses(span)
    used = sum(
        (
            row
            for row in services.spent.summary(days, "project", now)
            if real in ("", os.path.realpath(row.label))
        ),
        Sum(),
    )
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
        most=[_often(projects, one) for one in period.often(span, _NAMED)],
        unused=dated(e for e in services.usage.unused(real) if real or e.directory in projects),
        suggestions=period.fates(span),
        dreams=events.dreams,
        dollars=round(used.dollars, 6),
        tokens=used.tokens,
        questions=[
            WaitingProposals(**_of_project(projects, place), proposals=count)
            for place, count in sorted(waiting.items())
            if real in ("", place) and os.path.isdir(place)
        ],
    )


def _counted(
    shape: Callable[[FileEvent], DatedMemory], events: Iterable[FileEvent]
) -> CountedMemories:
    every = list(events)
    return CountedMemories(count=len(every), memories=[shape(one) for one in every[:_NAMED]])


def _dated(projects: Mapping[str, KnownProject], event: FileEvent) -> DatedMemory:
    project = _of_project(projects, event.directory)
    return DatedMemory(**project, path=event.path, at=iso_time(event.at))


def _often(projects: Mapping[str, KnownProject], used: OftenUsed) -> OftenUsedMemory:
    return OftenUsedMemory(
        **_of_project(projects, used.directory),
        path=used.path,
        surfaced=used.surfaced,
        read=used.read,
        acted=used.acted,
    )


def _of_project(projects: Mapping[str, KnownProject], directory: str) -> dict[str, str]:
    """Return what a row says of the project of a memory directory."""
    known = projects.get(directory) or KnownProject(directory, "", (), "")
    return {"project": known.name, "cwd": known.cwd or known.root, "directory": directory}


METHODS = (report,)
