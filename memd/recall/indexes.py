"""One index a directory, kept in step with its catalogue.

Rules of this file
- Whoever uses a directory's index holds it (``hold``); nobody waits for that longer than it says.
- What changed since the last use is indexed before what was there from the beginning, so a memory
  that was just written is found by the next prompt while a large directory is still being indexed.
- What is gone leaves the index at once.
- The indices of directories that were not used for longest go first when there are too many.
All methods block: call them in a worker thread.
"""

import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from memd.core.errors import MemdError
from memd.core.values import Catalogue, Header, MemoryFile
from memd.state.fused import Fused, place
from memd.state.index import Index
from memd.state.meaning import Meaning
from memd.state.search import Entry, Ranker
from memd.state.stored import same

_PROJECTS = 16  # directories whose index stays open
_HOLD_SECONDS = 30.0
_CLOSE_SECONDS = 1.0
_REHEARSAL = "the first prompt"
_FOLD = 10  # to put a memory on disk costs so much less than to read and index it


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

    ``left`` memories are not indexed yet, of ``count`` in all; ``busy`` says that the background
    has something to do, for them or to bring what is indexed to disk. ``notes`` are sentences for
    users.
    """

    ranker: Ranker
    left: int
    count: int
    busy: bool = False
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Kept:
    index: Index
    ranker: Ranker  # the index, or what asks it and a model
    lock: Lock
    mark: int = -1
    count: int = 0
    fresh: dict[str, Header] = field(default_factory=dict)
    backlog: dict[str, Header] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """How many memories are not indexed yet."""
        return len(self.fresh) + len(self.backlog)

    @property
    def busy(self) -> bool:
        """Whether the background has something to do."""
        self.index.eager = not self.left
        return self.left > 0 or self.index.pending


class Indexes:
    """The indices of one daemon. ``make`` opens one, ``lock`` makes a lock.

    ``folder`` is where ``make`` puts what they keep. With ``meaning`` each also ranks by vectors,
    which are kept in the folder ``vectors``.
    """

    def __init__(
        self,
        reader: Reader,
        lock: Callable[[], Lock],
        make: Callable[[str], Index] = lambda _: Index(None),
        *,
        most: int = _PROJECTS,
        meaning: Meaning | None = None,
        folder: str = "",
        vectors: str = "",
    ) -> None:
        self._reader = reader
        self._make_lock = lock
        self._make = make
        self._most = most
        self._meaning = meaning
        self._folder = folder
        self._vectors = vectors
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._table = lock()

    @contextmanager
    def hold(self, directory: str, seconds: float = _HOLD_SECONDS) -> Iterator[None]:
        """Use a directory's index alone for the length of the block. Raises IndexBusyError."""
        while True:
            kept = self._of(directory)
            if not kept.lock.acquire(timeout=max(seconds, 0.0)):
                raise IndexBusyError(directory)
            if self._kept.get(directory) is kept:
                break
            kept.lock.release()  # it was closed meanwhile
        try:
            yield
        finally:
            kept.lock.release()

    def current(self, directory: str, allowance: int) -> Current:
        """Return a held directory's index with what changed, ``allowance`` memories at most.

        Raises what reading a directory raises.
        """
        kept = self._of(directory)
        self._take_delta(directory, kept)
        if kept.left:
            self._advance(directory, kept, allowance)
        return self.indexed(directory)

    def indexed(self, directory: str) -> Current:
        """Return a held directory's index as it is, without another look at the directory."""
        kept = self._of(directory)
        notes = kept.problems + kept.index.notes()
        return Current(kept.ranker, kept.left, kept.count, kept.busy, notes)

    def work(self, directory: str, most: int) -> bool:
        """Do one slice of what a held directory needs; return whether more is to be done.

        A slice indexes ``most`` memories at most, or brings some that are indexed to disk. Raises
        what reading a directory raises.
        """
        kept = self._of(directory)
        if kept.mark < 0:
            self._take_delta(directory, kept)
            kept.ranker.rank(_REHEARSAL, 1)  # loads what the first prompt would wait for
        self._advance(directory, kept, most)
        return kept.busy

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
        """Close all of them; one that is held is left as it is."""
        for directory, kept in list(self._kept.items()):
            if kept.lock.acquire(timeout=_CLOSE_SECONDS):
                del self._kept[directory]
                kept.index.close()
                kept.lock.release()

    def drop(self, directory: str) -> None:
        """Close the index of a directory that nobody uses for now. Raises IndexBusyError."""
        with self.hold(directory):
            self._kept.pop(directory).index.close()

    def forget(self) -> None:
        """Close all indices and remove what they keep on disk, words and vectors.

        Each is made anew at its next use. Raises IndexBusyError and OSError.
        """
        while self._kept:
            self.drop(next(iter(self._kept)))
        for folder in filter(None, (self._folder, self._vectors)):
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)

    def _of(self, directory: str) -> _Kept:
        self._table.acquire()
        try:
            kept = self._kept.get(directory)
            if kept is None:
                kept = self._kept[directory] = self._open(directory)
            self._kept.move_to_end(directory)
            self._close_oldest()
        finally:
            self._table.release()
        return kept

    def _open(self, directory: str) -> _Kept:
        index = self._make(directory)
        if self._meaning is None:
            return _Kept(index, index, self._make_lock())
        fused = Fused(index, self._meaning, place(self._vectors, directory))
        return _Kept(index, fused, self._make_lock())

    def _entries(self, directory: str, paths: Sequence[str]) -> Iterable[Entry]:
        files = self._reader.read_many(directory, paths)
        return [_entry(file.header, file) for file in files]

    def _close_oldest(self) -> None:
        """Close what was not used for longest and is not in use now."""
        for directory, kept in list(self._kept.items())[: max(len(self._kept) - self._most, 0)]:
            if kept.lock.acquire(blocking=False):
                del self._kept[directory]
                kept.index.close()
                kept.lock.release()

    def _take_delta(self, directory: str, kept: _Kept) -> None:
        found = self._reader.catalogue(directory, -1 if kept.index.lost() else kept.mark)
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
        changed = [
            item for item in found.changed if not same(known.get(item.path), item.fingerprint)
        ]
        changed.sort(key=lambda header: (-header.mtime_ns, header.path))
        kept.fresh.clear()
        kept.backlog = {header.path: header for header in changed}

    def _advance(self, directory: str, kept: _Kept, most: int) -> None:
        """Index, or fold what was indexed before it is too much for memory."""
        kept.index.eager = not kept.left
        if kept.index.pending and not (kept.left and kept.index.sealing):
            kept.index.fold(most * _FOLD)
        else:
            self._index(directory, kept, most)

    def _index(self, directory: str, kept: _Kept, most: int) -> None:
        headers = _first(kept.fresh, most)
        headers += _first(kept.backlog, most - len(headers))
        files = self._reader.read_many(directory, [header.path for header in headers])
        bodies = {file.header.path: file for file in files}
        kept.ranker.update(_entry(header, bodies.get(header.path)) for header in headers)


def opener(folder: str) -> Callable[[str], Index]:
    """Return what opens the index of a directory below a folder of the state directory."""
    return lambda directory: Index(place(folder, directory).removesuffix(".vectors"))


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
