"""project.list, usage.list and usage.recent: where memories are, and which of them are used.

None of these methods counts as a use of a memory, nor does a search or an explanation.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from os.path import basename
from typing import Annotated, Literal, TypeVar

import msgspec
from anyio import to_thread
from msgspec import Struct

from memd.api.listing import PAGE_BYTES, CursorRefusedError
from memd.api.memory import project_of
from memd.api.method import Limit, Result, SessionId, method
from memd.api.services import Services
from memd.core.errors import MemdError
from memd.core.text import iso_time
from memd.core.values import Header
from memd.projects.project import NoProjectError
from memd.projects.projects import KnownProject, working_directory
from memd.rpc.connection import Call
from memd.state.tables import DirectoryUse, MemoryUse

T = TypeVar("T")
R = TypeVar("R")
UseId = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # what SQLite can compare
_SortKey = tuple[float, float, str]  # of a row; a cursor is such a key as text


class _WorkingPlace(Struct, frozen=True):
    """A project: its working directory, and when it was last used, in seconds since 1970."""

    cwd: str
    name: str
    directory: str
    at: float | None


class ListedProject(Result):
    """A project: its working directory, its name, and how much it has.

    ``last_at`` is when somebody last worked there (ISO 8601), null where memd does not know.
    ``team`` says whether it joined one. ``proposals`` and ``suggestions`` count open ones.
    """

    cwd: str
    name: str
    directory: str
    memories: int
    bytes: int
    last_at: str | None
    team: bool
    proposals: int
    suggestions: int


class ListedProjects(Result):
    """Projects, the last used first; ``next`` is the cursor of the next page, if any."""

    projects: list[ListedProject]
    next: str | None = None


class UsedMemory(Result):
    """A memory and how it was used; times are ISO 8601 or null for never.

    ``sessions`` counts those that it was surfaced to. ``unused``: it is older than 90 days and was
    not used in 90 days in which memd counted uses. A team's memory is never ``unused``.
    """

    path: str
    name: str
    description: str
    type: str | None
    size: int
    mtime: str
    surfaced: int
    sessions: int
    read: int
    acted: int
    last_surfaced: str | None
    last_read: str | None
    last_acted: str | None
    unused: bool


class UsedMemories(Result):
    """How memories were used ``since`` counting began there (null where it has not begun)."""

    since: str | None
    memories: list[UsedMemory]
    next: str | None = None


class Surfacing(Result):
    """A memory that was given to a prompt; ``cwd`` is the project's working directory, or ""."""

    id: int
    at: str
    session_id: str
    cwd: str
    directory: str
    path: str


class Surfacings(Result):
    """Memories that were given to prompts, newest first."""

    surfacings: list[Surfacing]


@method("project.list", "read", CursorRefusedError)
async def project_list(
    services: Services, _call: Call, *, limit: Limit = 50, after: str = ""
) -> ListedProjects:
    """All projects with memories whose working directory is known, the last used first.

    ``after`` is the ``next`` of the previous page.
    """
    known = await services.exports.projects()
    waiting = await services.reviews.waiting()

    def project_page() -> tuple[list[ListedProject], str | None]:
        """Return a page of projects and the cursor of the next one. Blocks."""
        joined = {os.path.realpath(each.directory) for each in services.memberships.all()}
        measured = services.store.reading.count_and_bytes
        shape = partial(_listed_project, measured=measured, joined=joined, waiting=waiting)
        rows = sorted(((-each.at, 0.0, each.directory), each) for each in known)
        return _page(_working_places(_after(rows, after)), limit, shape)

    projects, cursor = await to_thread.run_sync(project_page)
    for each in projects:
        each.suggestions = len(await services.suggestions.waiting(each.directory))
    return ListedProjects(projects=projects, next=cursor)


@method("usage.list", "read", NoProjectError, CursorRefusedError)
async def usage_list(
    services: Services,
    call: Call,
    *,
    cwd: str,
    order: Literal["least", "most", "recent"] = "least",
    unused: bool = False,
    paths: Annotated[tuple[str, ...], msgspec.Meta(max_length=1000)] | None = None,
    limit: Limit | None = None,
    after: str = "",
) -> UsedMemories:
    """How the memories of a project are used; this request does not count as a use.

    ``paths`` selects some memories, and ``unused`` those that are not used. The ``order`` is least
    used, most used or most recently used first. ``after`` is the ``next`` of the previous page.
    """
    project = await project_of(services, call, cwd)
    snapshot = await services.store.snapshot(project.memory_dir)

    def memory_page() -> UsedMemories:
        """Return a page of memories. Blocks."""
        counted = services.usage.of(os.path.realpath(project.memory_dir), paths)
        headers = list(snapshot.headers)
        if paths is not None:
            selected = frozenset(paths)
            headers = [header for header in headers if header.path in selected]
        if unused:
            headers = [header for header in headers if header.path in counted.unused]
        keys = [_sort_key(order, _use(counted, header.path), header.path) for header in headers]
        rows = sorted(zip(keys, headers, strict=True))
        page, cursor = _page(_after(rows, after), limit, partial(_used_memory, counted))
        return UsedMemories(since=_iso(counted.since), memories=page, next=cursor)

    return await to_thread.run_sync(memory_page)


@method("usage.recent", "read", NoProjectError)
async def usage_recent(
    services: Services,
    call: Call,
    *,
    cwd: str | None = None,
    session_id: SessionId = "",
    path: str = "",
    limit: Limit = 50,
    before: UseId = 0,
) -> Surfacings:
    """The memories that were given to prompts, when and to which session, of the last 90 days.

    The newest come first. ``cwd``, ``session_id`` and ``path`` select those of a project, a session
    and a memory. ``before`` is the ``id`` of the last one on the previous page.
    """
    directory = (await project_of(services, call, cwd)).memory_dir if cwd else ""
    known = await services.exports.projects()
    find = partial(
        _surfacings, services, known, directory, path, session_id, limit=limit, before=before
    )
    return Surfacings(surfacings=await to_thread.run_sync(find))


def _working_places(
    rows: Iterable[tuple[_SortKey, KnownProject]],
) -> Iterator[tuple[_SortKey, _WorkingPlace]]:
    """Yield each project with its working directory, which is looked up only now. Blocks.

    A project whose working directory cannot be found is left out.
    """
    for key, each in rows:
        cwd = working_directory(each)
        if cwd:
            name = each.name if each.root else basename(cwd)
            yield key, _WorkingPlace(cwd, name, each.directory, each.at or None)


def _listed_project(
    place: _WorkingPlace,
    *,
    measured: Callable[[str], tuple[int, int]],
    joined: Collection[str],
    waiting: Mapping[str, int],
) -> ListedProject:
    """Return the row of a project, its suggestions not counted yet. Blocks."""
    count = size = 0
    with suppress(MemdError):  # a directory that cannot be read counts 0; memory.list says why
        count, size = measured(place.directory)
    return ListedProject(
        cwd=place.cwd,
        name=place.name,
        directory=place.directory,
        memories=count,
        bytes=size,
        last_at=_iso(place.at),
        team=place.directory in joined,
        proposals=waiting.get(place.directory, 0),
        suggestions=0,
    )


def _surfacings(
    services: Services,
    known: Sequence[KnownProject],
    directory: str,
    path: str,
    session: str,
    *,
    limit: int,
    before: int,
) -> list[Surfacing]:
    """Return the memories that were given to prompts, newest first. Blocks.

    An empty ``directory``, ``path`` or ``session`` selects all.
    """
    real = os.path.realpath(directory) if directory else ""
    selected = {"directory": real, "path": path, "session": session}
    cwds = {each.directory: each.cwd or each.root for each in known}
    uses = services.usage.uses(limit, kind="surfaced", before=before, **selected)
    return [
        Surfacing(
            id=use.id,
            at=iso_time(use.at),
            session_id=use.session,
            cwd=cwds.get(use.directory, ""),
            directory=use.directory,
            path=use.path,
        )
        for use in uses
    ]


def _sort_key(order: str, use: MemoryUse, path: str) -> _SortKey:
    """Return the sort key of a memory in an order ("least", "most" or "recent").

    The order is ascending, so larger numbers that come first are negative.
    """
    match order:
        case "most":
            return (-use.times, -use.last, path)
        case "recent":
            return (-use.last, -use.times, path)
    return (use.times, use.last, path)


def _use(counted: DirectoryUse, path: str) -> MemoryUse:
    """Return how a memory was used; one that was never used has the number 0."""
    return counted.memories.get(path, MemoryUse())


def _used_memory(counted: DirectoryUse, header: Header) -> UsedMemory:
    """Return a memory and how it was used."""
    use = _use(counted, header.path)
    return UsedMemory(
        path=header.path,
        name=header.name,
        description=header.description,
        type=header.type,
        size=header.size,
        mtime=iso_time(header.mtime_ns / 1e9),
        surfaced=use.surfaced,
        sessions=use.sessions,
        read=use.read,
        acted=use.acted,
        last_surfaced=_iso(use.last_surfaced),
        last_read=_iso(use.last_read),
        last_acted=_iso(use.last_acted),
        unused=header.path in counted.unused,
    )


def _iso(at: float | None) -> str | None:
    """Return a time in seconds since 1970 as ISO 8601, ``None`` for ``None``."""
    return None if at is None else iso_time(at)


def _after(rows: list[tuple[_SortKey, T]], cursor: str) -> list[tuple[_SortKey, T]]:
    """Return the sorted rows after a cursor, all for "". Raises CursorRefusedError."""
    if not cursor:
        return rows
    start = bisect_right(rows, _key_of(cursor), key=itemgetter(0))
    return rows[start:]


def _page(
    rows: Iterable[tuple[_SortKey, T]], limit: int | None, shape: Callable[[T], R]
) -> tuple[list[R], str | None]:
    """Return the first rows that fit into an answer, and the next cursor or ``None``.

    ``shape`` makes of a row what the answer has. ``limit`` is the largest number of rows.
    """
    page: list[R] = []
    bytes_left, cursor = PAGE_BYTES, ""
    for key, row in rows:
        if len(page) == limit:
            return page, cursor
        shown = shape(row)
        bytes_left -= len(msgspec.json.encode(shown))
        if bytes_left < 0 and page:  # one row goes out whatever its size
            return page, cursor
        page.append(shown)
        cursor = " ".join(map(str, key))
    return page, None


def _key_of(cursor: str) -> _SortKey:
    """Return the key that a cursor names. Raises CursorRefusedError."""
    try:
        first, second, path = cursor.split(" ", 2)
        return float(first), float(second), path
    except ValueError:
        raise CursorRefusedError from None


METHODS = (project_list, usage_list, usage_recent)
