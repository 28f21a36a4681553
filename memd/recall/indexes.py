"""One index a directory, kept in step with its catalogue.

Rules of this file
- Whoever uses a directory's index holds it (``hold``); nobody waits for that longer than it says.
- What changed since the last use is indexed before what was there from the beginning, so a memory
  that was just written is found by the next prompt while a large directory is still being indexed.
- What is gone leaves the index at once.
- The indices of directories that were not used for longest go first when there are too many.
All methods block: call them in a worker thread.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from memd.core.errors import MemdError
from memd.core.values import Catalogue, Header, MemoryFile
from memd.state.fused import Fused, place
from memd.state.meaning import Meaning
from memd.state.search import Entry, Ranker, SearchIndex

_PROJECTS = 16  # directories whose index stays open
_HOLD_SECONDS = 30.0


class IndexBusyError(MemdError):
    """Another request uses this directory's index and did not let go in time."""

    code = 1021
    kind = "index_busy"
    retryable = True
    exit_status = 75

    def __init__(self, directory: str) -> None:
        super().__init__(f"the index of {directory} is busy", directory=directory)


class Reader(Protocol):
    """The part of the store that indexing reads; all of it blocks."""

    def catalogue(self, directory: str, since: int = -1) -> Catalogue:
        """Return what changed since a mark; raises what reading a directory raises."""
        ...

    def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return memories; those that cannot be read are left out."""
        ...


class Lock(Protocol):
    """A lock between threads, as ``threading.Lock`` makes them."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:  # noqa: FBT001 - its shape
        """Take the lock; return whether that was possible in time."""
        ...

    def release(self) -> None:
        """Let it go."""
        ...


@dataclass(frozen=True, slots=True)
class Current:
    """A directory's index as it is now.

    ``left`` memories are not indexed yet, of ``count`` in all; ``notes`` are sentences for users.
    """

    ranker: Ranker
    left: int
    count: int
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Kept:
    ranker: Ranker
    lock: Lock
    mark: int = -1
    count: int = 0
    fresh: dict[str, Header] = field(default_factory=dict)
    backlog: dict[str, Header] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        return len(self.fresh) + len(self.backlog)


class Indexes:
    """The indices of one daemon. ``make`` opens one, ``lock`` makes a lock.

    With ``meaning`` each also ranks by vectors, which are kept in the folder ``vectors``.
    """

    def __init__(
        self,
        reader: Reader,
        lock: Callable[[], Lock],
        make: Callable[[str], Ranker] = lambda _: SearchIndex(),
        *,
        most: int = _PROJECTS,
        meaning: Meaning | None = None,
        vectors: str = "",
    ) -> None:
        self._reader = reader
        self._make_lock = lock
        self._make = make
        self._most = most
        self._meaning = meaning
        self._vectors = vectors
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._table = lock()

    @contextmanager
    def hold(self, directory: str, seconds: float = _HOLD_SECONDS) -> Iterator[None]:
        """Use a directory's index alone for the length of the block. Raises IndexBusyError."""
        lock = self._of(directory).lock
        if not lock.acquire(timeout=max(seconds, 0.0)):
            raise IndexBusyError(directory)
        try:
            yield
        finally:
            lock.release()

    def current(self, directory: str, allowance: int) -> Current:
        """Return a held directory's index with what changed, ``allowance`` memories at most.

        Raises what reading a directory raises.
        """
        kept = self._of(directory)
        self._take_delta(directory, kept)
        if kept.left:
            self._index(directory, kept, allowance)
        return Current(kept.ranker, kept.left, kept.count, kept.problems)

    def work(self, directory: str, most: int) -> bool:
        """Index so many memories of a held directory at most; return whether more are left.

        Raises what reading a directory raises.
        """
        kept = self._of(directory)
        if kept.mark < 0:
            self._take_delta(directory, kept)
        self._index(directory, kept, most)
        return kept.left > 0

    def use(self, model_folder: str) -> bool:
        """Note which semantic model the settings name; return whether ``learn`` has to look."""
        if self._meaning is None:
            return False
        before = self._meaning.model
        self._meaning.use(model_folder)
        return bool(model_folder) or before is not None  # what was learnt is to be let go

    def learn(self, directory: str, most: int) -> bool:
        """Compute so many vectors at most of a directory that the caller does not hold.

        Returns whether more are left. Raises what reading a directory raises, and IndexBusyError.
        """
        ranker = self._of(directory).ranker
        if not isinstance(ranker, Fused):
            return False
        return ranker.work(partial(self._entries, directory), most, self.hold(directory))

    def close(self) -> None:
        """Close all of them."""
        self._kept.clear()

    def _of(self, directory: str) -> _Kept:
        self._table.acquire()
        try:
            kept = self._kept.get(directory)
            if kept is None:
                kept = self._kept[directory] = _Kept(self._open(directory), self._make_lock())
            self._kept.move_to_end(directory)
            self._close_oldest()
        finally:
            self._table.release()
        return kept

    def _open(self, directory: str) -> Ranker:
        index = self._make(directory)
        if self._meaning is None:
            return index
        return Fused(index, self._meaning, place(self._vectors, directory))

    def _entries(self, directory: str, paths: Sequence[str]) -> Iterable[Entry]:
        files = self._reader.read_many(directory, paths)
        return [_entry(file.header, file) for file in files]

    def _close_oldest(self) -> None:
        """Close what was not used for longest and is not in use now."""
        for directory, kept in list(self._kept.items())[: max(len(self._kept) - self._most, 0)]:
            if kept.lock.acquire(blocking=False):
                del self._kept[directory]
                kept.lock.release()

    def _take_delta(self, directory: str, kept: _Kept) -> None:
        found = self._reader.catalogue(directory, kept.mark)
        if found.whole:
            self._compare(kept, found)
        else:
            kept.ranker.remove(found.gone)
            for path in found.gone:
                kept.fresh.pop(path, None)
                kept.backlog.pop(path, None)
            kept.fresh.update((header.path, header) for header in found.changed)
        kept.mark, kept.count, kept.problems = found.mark, found.count, found.problems

    def _compare(self, kept: _Kept, found: Catalogue) -> None:
        known = kept.ranker.known()
        paths = {header.path for header in found.changed}
        kept.ranker.remove([path for path in known if path not in paths])
        changed = [item for item in found.changed if known.get(item.path) != item.fingerprint]
        changed.sort(key=lambda header: (-header.mtime_ns, header.path))
        kept.fresh.clear()
        kept.backlog = {header.path: header for header in changed}

    def _index(self, directory: str, kept: _Kept, most: int) -> None:
        headers = _first(kept.fresh, most)
        headers += _first(kept.backlog, most - len(headers))
        files = self._reader.read_many(directory, [header.path for header in headers])
        bodies = {file.header.path: file for file in files}
        kept.ranker.update(_entry(header, bodies.get(header.path)) for header in headers)


def _first(headers: dict[str, Header], most: int) -> list[Header]:
    """Take so many headers out, in their order."""
    paths = [path for path, _ in zip(headers, range(most), strict=False)]
    return [headers.pop(path) for path in paths]


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
