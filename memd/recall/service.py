"""prefetch, search and the end of a session: the part of recall that waits.

Filter first, mark after: a memory is marked in the ledger as the last step, when it is certain to
be in the answer, and the mark is taken back when the request is cancelled in that instant.
"""

import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import anyio
import anyio.lowlevel

from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.settings import Settings
from memd.core.values import Header, MemoryFile, Project, Snapshot
from memd.recall import block, select
from memd.recall.select import SurfacedMemory
from memd.state.database import StateUnusableError
from memd.state.ledger import Item, Ledger, Sighting, Surfaced
from memd.state.scoring import Ranked
from memd.state.search import Entry, Ranker, SearchIndex

LOCAL = "local"
MODEL = "model"
_NO_MODEL = "no model is configured; the local ranker answered"

_PROJECTS = 16  # directories whose index stays in memory; the least recently used one goes first
_CHUNK = 200  # files indexed between two points where a cancelled request lets go (some 40 ms)
_SEARCH_MOST = 100


class Reader(Protocol):
    """The part of the store that recall uses."""

    async def snapshot(self, directory: str) -> Snapshot:
        """Return a memory directory at one instant; a missing one is empty."""
        ...

    async def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return memories; missing ones are left out."""
        ...


@dataclass(frozen=True, slots=True)
class Prefetched:
    """The answer of prefetch.

    ``skipped`` names the gate that closed ("" when none did; no memories then means that none
    fits). ``note`` says why another strategy answered than the one asked for, or what could not be
    read. ``session_bytes``
    is what the session has been given so far, this answer included.
    """

    memories: tuple[SurfacedMemory, ...]
    skipped: str
    strategy: str
    session_bytes: int
    block: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that a search found; ``path`` is relative to the memory directory."""

    path: str
    name: str
    description: str
    score: float
    snippet: str


@dataclass(slots=True)
class _Indexed:
    ranker: Ranker
    lock: anyio.Lock = field(default_factory=anyio.Lock)


@dataclass(frozen=True, slots=True)
class _Request:
    directory: str
    query: str
    recent_tools: Sequence[str]
    read_paths: Sequence[str]
    team: bool


_Picked = tuple[Ranked, ...] | None  # None: there was nothing to choose from


class Recall:
    """The memories that fit a prompt, each once per session."""

    def __init__(
        self,
        store: Reader,
        ledger: Ledger,
        clock: Clock,
        ranker: Callable[[], Ranker] = SearchIndex,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._make_ranker = ranker
        self._indexed: OrderedDict[str, _Indexed] = OrderedDict()

    async def prefetch(
        self,
        project: Project,
        settings: Settings,
        *,
        session: str,
        query: str,
        recent_tools: Sequence[str] = (),
        read_paths: Sequence[str] = (),
        limit: int | None = None,
        strategy: str = "auto",
    ) -> Prefetched:
        """Return the few memories that matter for a prompt and mark them as surfaced.

        Cancelled, it has marked nothing. It never fails a client's turn: where the directory cannot
        be read, or the ledger cannot be used (neither "once" nor the budget could be kept), it
        brings nothing and says why.
        """
        note = _NO_MODEL if strategy == MODEL else ""
        session = _sayable(session)
        reason = select.gate(project, settings, query)
        cap = settings.recall.session_bytes
        try:
            before = await anyio.to_thread.run_sync(self._ledger.surfaced, session)
            if not reason and before.bytes >= cap:
                reason = select.SESSION_BUDGET
            if reason:
                return Prefetched((), reason, LOCAL, before.bytes, "", note)
            team = settings.team.enabled
            request = _Request(project.memory_dir, query, recent_tools, read_paths, team=team)
            most = select.wanted(limit, settings)
            files = await self._choose(project.memory_dir, most, _picker(request, before, most))
            if files is None:
                return Prefetched((), select.NO_CANDIDATES, LOCAL, before.bytes, "", note)
            memories, total, text = await self._send(project.memory_dir, session, files, cap)
        except StateUnusableError as error:
            skipped = reason or select.LEDGER_UNAVAILABLE
            return Prefetched((), skipped, LOCAL, 0, "", error.sentence)
        except MemdError as error:  # a directory that cannot be read costs memories, not the turn
            return Prefetched((), select.UNREADABLE, LOCAL, 0, "", error.sentence)
        return Prefetched(memories, "", LOCAL, total, text, note)

    async def search(self, project: Project, query: str, limit: int) -> tuple[Hit, ...]:
        """Return the memories that hold a word of the query, the best first; nothing is marked."""
        directory = project.memory_dir
        most = min(max(limit, 1), _SEARCH_MOST)
        async with self._current(directory) as (ranker, _):
            scored = await anyio.to_thread.run_sync(_rank_all, ranker, query, most)
        files = await self._store.read_many(directory, [hit.path for hit in scored])
        return await anyio.to_thread.run_sync(_hits, scored, files)

    async def reset(self, session: str) -> None:
        """Forget what a session was given: it was compacted or has ended."""
        await anyio.to_thread.run_sync(self._ledger.reset, _sayable(session))

    async def last_surfaced(self, directory: str, path: str) -> Sighting | None:
        """Return when a memory last went out and to which session, or ``None``.

        Raises StateUnusableError.
        """
        return await anyio.to_thread.run_sync(self._ledger.last_surfaced, directory, path)

    async def _choose(
        self, directory: str, limit: int, pick: Callable[[Ranker, Sequence[Header]], _Picked]
    ) -> tuple[MemoryFile, ...] | None:
        """Return the memories that fit best, or ``None`` when there is none to choose from."""
        async with self._current(directory) as (ranker, headers):
            scored = await anyio.to_thread.run_sync(pick, ranker, headers)
        if scored is None:
            return None
        files = await self._store.read_many(directory, [hit.path for hit in scored])
        by_path = {file.header.path: file for file in files}
        return tuple(by_path[hit.path] for hit in scored if hit.path in by_path)[:limit]

    async def _send(
        self, directory: str, session: str, files: Sequence[MemoryFile], cap: int
    ) -> tuple[tuple[SurfacedMemory, ...], int, str]:
        """Mark what goes out; return it, the session's bytes with it, and the block."""
        now = self._clock.now()
        memories = [select.surface(directory, file, now) for file in files]
        _, fitting = block.render(memories)
        items = {
            Item(memory.path, select.mark_of(file.header), memory.bytes): memory
            for memory, file in zip(memories[:fitting], files, strict=False)
        }
        marked, total = await anyio.to_thread.run_sync(
            self._ledger.mark, session, tuple(items), cap, now
        )
        try:
            await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._ledger.unmark, session, marked)
            raise
        sent = tuple(items[item] for item in marked)
        return sent, total, block.render(sent)[0]

    @asynccontextmanager
    async def _current(self, directory: str) -> AsyncIterator[tuple[Ranker, tuple[Header, ...]]]:
        """Hold a directory's ranker, brought up to what the directory holds now."""
        indexed = self._indexed.setdefault(directory, _Indexed(self._make_ranker()))
        self._indexed.move_to_end(directory)
        while len(self._indexed) > _PROJECTS:
            self._indexed.popitem(last=False)
        async with indexed.lock:
            snapshot = await self._store.snapshot(directory)
            await self._refresh(indexed.ranker, directory, snapshot.headers)
            yield indexed.ranker, snapshot.headers

    async def _refresh(self, ranker: Ranker, directory: str, headers: Sequence[Header]) -> None:
        known = ranker.known()
        gone = tuple(known.keys() - {header.path for header in headers})
        changed = [header for header in headers if known.get(header.path) != header.fingerprint]
        ranker.remove(gone)
        for start in range(0, len(changed), _CHUNK):
            part = changed[start : start + _CHUNK]
            files = await self._store.read_many(directory, [header.path for header in part])
            bodies = {file.header.path: file for file in files}
            entries = [_entry(header, bodies.get(header.path)) for header in part]
            await anyio.to_thread.run_sync(ranker.update, entries)


def _entry(header: Header, file: MemoryFile | None) -> Entry:
    """Return what is searched of a memory; one too large to load is found by its header."""
    header = header if file is None else file.header
    return Entry(
        path=header.path,
        fingerprint=header.fingerprint,
        mtime_ns=header.mtime_ns,
        name=header.name,
        description=header.description,
        type="" if header.type is None else header.type.value,
        body="" if file is None else file.body,
    )


def _picker(
    request: _Request, surfaced: Surfaced, limit: int
) -> Callable[[Ranker, Sequence[Header]], _Picked]:
    """Return the choice of a request, to be made in a worker thread."""

    def pick(ranker: Ranker, headers: Sequence[Header]) -> _Picked:
        directory = request.directory
        roots = (directory, os.path.realpath(directory)) if request.read_paths else ()
        read = select.relative(request.read_paths, roots)
        candidates = select.candidates(
            directory, headers, surfaced.paths, read, request.recent_tools, team=request.team
        )
        if not candidates:
            return None
        closed = {header.path for header in headers} - {header.path for header in candidates}
        return ranker.rank(request.query, limit, closed.__contains__)

    return pick


def _rank_all(ranker: Ranker, query: str, limit: int) -> tuple[Ranked, ...]:
    return ranker.rank(query, limit, floor=False)


def _hits(scored: Sequence[Ranked], files: Sequence[MemoryFile]) -> tuple[Hit, ...]:
    by_path = {file.header.path: file for file in files}
    return tuple(
        Hit(
            path=hit.path,
            name=by_path[hit.path].header.name,
            description=by_path[hit.path].header.description,
            score=hit.score,
            snippet=select.snippet(by_path[hit.path].body, hit.terms),
        )
        for hit in scored
        if hit.path in by_path
    )


def _sayable(session: str) -> str:
    """Return a session's name as UTF-8 can hold it."""
    return session.encode(errors="replace").decode()
