"""What the methods about memories answer. Pure."""

from collections.abc import Sequence
from itertools import islice

import msgspec
from msgspec import Struct

from memd.base import limits
from memd.base.errors import Invalid
from memd.base.text import age, iso_time
from memd.base.values import Header, IndexFacts

PAGE_BYTES = limits.FRAME_BYTES * 3 // 4  # of memories; the rest of the frame is for other members
PROBLEMS = 100  # sentences on one page; the others are only counted
_NO_TYPE = "none"  # the type that selects memories without one


class MemoryFacts(Struct, frozen=True, kw_only=True):
    """A memory without its content; ``mtime`` is ISO 8601 in UTC.

    ``origin`` says whose words it holds: user, assistant, outside, team or import, or "" where the
    memory does not say.
    """

    path: str
    name: str
    description: str
    type: str | None
    mtime: str
    age: str
    damaged: bool
    size: int
    origin: str


class MemoryRead(MemoryFacts, frozen=True, kw_only=True):
    """One memory whole; ``hash`` is the SHA-256 of the file's bytes."""

    content: str
    hash: str


class ChangeMade(Struct, frozen=True, kw_only=True):
    """The id of the change that was made."""

    change: str | None


class Listed(Struct, frozen=True, kw_only=True):
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


class Shared(ChangeMade, frozen=True, kw_only=True):
    """The change that moved a memory, and its new path."""

    path: str


def facts_of(header: Header, now: float) -> MemoryFacts:
    """Return the facts about a memory that callers get."""
    return MemoryFacts(
        path=header.path,
        name=header.name,
        description=header.description,
        type=header.type,
        mtime=iso_time(header.mtime_ns / 1e9),  # nanoseconds to seconds
        age=age(header.mtime_ns, now),
        damaged=header.damaged,
        size=header.size,
        origin=header.origin,
    )


def filtered(headers: Sequence[Header], contains: str, kind: str) -> list[Header]:
    """Return the headers that have all words of ``contains`` and the type ``kind``, "" for any."""
    words = contains.casefold().split()

    def matches(header: Header) -> bool:
        """Return whether a header has all words and the type."""
        text = f"{header.path}\n{header.name}\n{header.description}".casefold()
        return kind in ("", header.type or _NO_TYPE) and all(word in text for word in words)

    return [header for header in headers if matches(header)]


def page_of(headers: Sequence[Header], limit: int | None, now: float) -> list[MemoryFacts]:
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


def first_problems(problems: Sequence[str]) -> list[str]:
    """Return the first problems, and a sentence that counts the others."""
    more = len(problems) - PROBLEMS
    if more <= 0:
        return list(problems)
    return [*problems[:PROBLEMS], f"and {more:,} more problems"]


def cursor(header: Header) -> str:
    """Return the cursor of the page that begins after a memory."""
    return f"{header.mtime_ns}:{header.path}"


def sort_key(cursor: str) -> tuple[int, str]:
    """Return the ``newest_first`` key of the memory in a cursor. Raises Invalid."""
    mtime_ns, _, path = cursor.partition(":")
    try:
        return -int(mtime_ns), path
    except ValueError:
        raise Invalid(
            "after is not what a page has as next",
            hint="give what the page before has as next, or leave after out",
        ) from None
