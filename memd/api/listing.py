"""memory.list: the memories of a project in pages, each of which fits an answer."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Literal

import msgspec
from anyio import to_thread

from memd.api.memory import MemoryFacts, facts_of
from memd.api.services import Services
from memd.base import limits
from memd.base.errors import Invalid
from memd.base.names import TEAM
from memd.base.values import Header, newest_first
from memd.methods.callers import AgentName, AnyScope
from memd.methods.method import Limit, Result, method, shaped
from memd.prompt.service import IndexFacts
from memd.rpc.call import Call
from memd.store.index import load

PAGE_BYTES = limits.FRAME_BYTES * 3 // 4  # of memories; the rest of the frame is for other members
PROBLEMS = 100  # sentences on one page; the others are only counted
_NO_TYPE = "none"  # the type that selects memories without one
Words = Annotated[str, msgspec.Meta(max_length=1000)]
AnyType = Literal["", "user", "feedback", "project", "reference", "none"]


class Listed(Result):
    """A page of the memories of a project, newest first; ``next`` is the cursor of the next page.

    ``next`` is null on the last page. ``count`` is the number of memories on all pages. A memory
    that changes while pages are read moves to the front, so a later page lacks it.
    """

    memory_dir: str
    memories: list[MemoryFacts]
    count: int
    next: str | None
    index: IndexFacts
    problems: list[str]


@method("memory.list", "read")
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

    ``after`` is the ``next`` of the previous page. With ``agent`` the memories of that sub-agent
    are listed, in the ``scope`` user, project or local (by default user). ``contains`` selects
    memories with each of its words in their path, name or description, without regard to case.
    ``type`` selects those of a type, and ``none`` those without one.
    """
    start = _sort_key(after) if after else None
    project = await services.callers.readable(call, cwd, agent, scope)
    snapshot = await services.store.snapshot(project.memory_dir)
    headers = list(snapshot.headers)
    if scope is not None and not agent:
        wants_team = scope == "team"
        headers = [h for h in headers if h.path.startswith(TEAM) == wants_team]
    if contains or type_:
        # 10,000 headers take some 10 ms: too long for the event loop.
        headers = await to_thread.run_sync(_filtered, headers, contains, type_)
    count = len(headers)
    if start is not None:
        first = bisect_right(headers, start, key=newest_first)
        headers = headers[first:]
    page = _page(headers, limit, services.clock.now())
    has_more = len(page) < len(headers)
    cursor = _cursor(headers[len(page) - 1]) if has_more else None
    return Listed(
        memory_dir=project.memory_dir,
        memories=page,
        count=count,
        next=cursor,
        index=shaped(load(snapshot.index), IndexFacts),
        problems=_first_problems(snapshot.problems),
    )


def _filtered(headers: Sequence[Header], contains: str, kind: str) -> list[Header]:
    """Return the headers that have all words of ``contains`` and the type ``kind``, "" for any."""
    words = contains.casefold().split()

    def matches(header: Header) -> bool:
        """Return whether a header has all words and the type."""
        text = f"{header.path}\n{header.name}\n{header.description}".casefold()
        return kind in ("", header.type or _NO_TYPE) and all(word in text for word in words)

    return [header for header in headers if matches(header)]


def _page(headers: Sequence[Header], limit: int | None, now: float) -> list[MemoryFacts]:
    """Return the facts of as many of the first headers as an answer has room for, at least one."""
    page: list[MemoryFacts] = []
    bytes_left = PAGE_BYTES
    for header in islice(headers, limit):
        facts = facts_of(header, now)
        bytes_left -= len(msgspec.json.encode(facts))
        if bytes_left < 0 and page:
            break
        page.append(facts)
    return page


def _first_problems(problems: Sequence[str]) -> list[str]:
    """Return the first problems, and a sentence that counts the others."""
    more = len(problems) - PROBLEMS
    if more <= 0:
        return list(problems)
    return [*problems[:PROBLEMS], f"and {more:,} more problems"]


def _cursor(header: Header) -> str:
    """Return the cursor of the page that begins after a memory."""
    return f"{header.mtime_ns}:{header.path}"


def _sort_key(cursor: str) -> tuple[int, str]:
    """Return the ``newest_first`` key of the memory in a cursor. Raises Invalid."""
    mtime_ns, _, path = cursor.partition(":")
    try:
        return -int(mtime_ns), path
    except ValueError:
        raise Invalid(
            "after is not what a page has as next",
            hint="give what the page before has as next, or leave after out",
        ) from None
