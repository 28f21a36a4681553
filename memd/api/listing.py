"""memory.list: the memories of a project in pages, each of which fits an answer."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Literal

import msgspec
from anyio import to_thread

from memd.api.memory import AgentName, AnyScope, MemoryFacts, facts_of, project_of
from memd.api.method import Limit, Result, method, shaped
from memd.api.services import Services
from memd.core import limits
from memd.core.errors import WrongParameterError
from memd.core.names import TEAM
from memd.core.values import Header, newest_first
from memd.documents.index import load
from memd.projects.project import NoProjectError
from memd.prompt.service import IndexFacts
from memd.rpc.connection import Call

PAGE_BYTES = limits.FRAME_BYTES * 3 // 4  # of memories; the rest is room for all else in the frame
PROBLEMS = 100
_NO_TYPE = "none"
Words = Annotated[str, msgspec.Meta(max_length=1000)]
AnyType = Literal["", "user", "feedback", "project", "reference", "none"]


class CursorRefusedError(WrongParameterError):
    """A page is asked for with something that no page has named."""

    hint = "give what the page before has as next, or leave after out"

    def __init__(self) -> None:
        super().__init__("after is not what a page has as next")


class Listed(Result):
    """The memories of a project, newest first; ``next`` names the page after this one, if any.

    ``count`` is the number of memories that are listed, on all pages together. A memory that
    changes while pages are read moves to the front, so a later page lacks it.
    """

    memory_dir: str
    memories: list[MemoryFacts]
    count: int
    next: str | None
    index: IndexFacts
    problems: list[str]


@method("memory.list", "read", NoProjectError, CursorRefusedError)
async def memory_list(
    services: Services,
    call: Call,
    *,
    cwd: str,
    scope: AnyScope | None = None,
    limit: Limit | None = None,
    after: str | None = None,
    agent: AgentName = "",
    contains: Words = "",
    type_: AnyType = "",
) -> Listed:
    """The memories of a project, newest first, a page at a time.

    ``after`` is the ``next`` of the page before. With ``agent`` they are those of that sub-agent,
    the ``scope`` then user, project or local: user unless given. With
    ``contains`` they are those with each of its words in their path, name or description, in any
    case; with ``type`` those of that type, ``none`` being those without.
    """
    start = _place(after) if after else None
    project = await project_of(services, call, cwd, agent, scope)
    snapshot = await services.store.snapshot(project.memory_dir)
    headers = [
        header
        for header in snapshot.headers
        if agent or scope is None or (scope == "team") == header.path.startswith(TEAM)
    ]
    if contains or type_:
        headers = await to_thread.run_sync(_filtered, headers, contains, type_)
    count = len(headers)
    if start is not None:
        headers = headers[bisect_right(headers, start, key=newest_first) :]
    page = _page(headers, limit, services.clock.now())
    return Listed(
        memory_dir=project.memory_dir,
        memories=page,
        count=count,
        next=_cursor(headers[len(page) - 1]) if len(page) < len(headers) else None,
        index=shaped(load(snapshot.index), IndexFacts),
        problems=_first(snapshot.problems),
    )


def _filtered(headers: Sequence[Header], contains: str, kind: str) -> list[Header]:
    """Return the headers that have all words and the type; 10,000 take some 10 ms."""
    words = contains.casefold().split()
    return [
        header
        for header in headers
        if kind in ("", header.type or _NO_TYPE)
        for text in (f"{header.path}\n{header.name}\n{header.description}".casefold(),)
        if all(word in text for word in words)
    ]


def _page(headers: Sequence[Header], limit: int | None, now: float) -> list[MemoryFacts]:
    """Return as many of the first headers as an answer has room for, one at least."""
    page: list[MemoryFacts] = []
    room = PAGE_BYTES
    for header in islice(headers, limit):
        facts = facts_of(header, now)
        room -= len(msgspec.json.encode(facts))
        if room < 0 and page:
            break
        page.append(facts)
    return page


def _first(problems: Sequence[str]) -> list[str]:
    more = len(problems) - PROBLEMS
    return [*problems[:PROBLEMS], *([f"and {more:,} more problems"] if more > 0 else [])]


def _cursor(header: Header) -> str:
    return f"{header.mtime_ns}:{header.path}"


def _place(cursor: str) -> tuple[int, str]:
    """Return the place that a cursor names. Raises CursorRefusedError."""
    mtime_ns, _, path = cursor.partition(":")
    try:
        return -int(mtime_ns), path
    except ValueError:
        raise CursorRefusedError from None


METHODS = (memory_list,)
