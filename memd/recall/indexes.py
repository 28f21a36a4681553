"""One index a directory, kept in step with its catalogue.

Rules of this file
- Whoever uses a directory's index holds it (``hold``); nobody waits for that longer than it says.
- What changed since the last use is indexed before what was there from the beginning, so a memory
  that was just written is found by the next prompt while a large directory is still being indexed.
- What is gone leaves the index at once.
- The indices of directories that were not used for longest go first when there are too many.
All methods block: call them in a worker thread.
"""

import hashlib
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Protocol

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.histogram import CacheHits
from memd.core.values import Catalogue, Header, MemoryFile
from memd.search.index import Entry, Index, mark, text
from memd.search.meaning import Meaning, Neighbours, VectorText

_PROJECTS = 16  # directories whose index stays open
_HOLD_SECONDS = 30.0
_CLOSE_SECONDS = 1.0
_UNREAD = (0, 0, 0)  # a fingerprint that no file has
_REHEARSAL = "the first prompt"


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

    def headers(self, directory: str) -> Mapping[str, Header]:
        """Return what the last catalogue found, by path, without another look."""
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
    has something to do. ``notes`` are sentences for users.
    """

    index: Index
    left: int
    count: int
    busy: bool = False
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _OpenIndex:
    """An index in use: what of its directory it does not hold yet, the newest first."""

    index: Index
    lock: Lock
    mark: int = -1
    count: int = 0
    fresh: dict[str, Header] = field(default_factory=dict)  # changed since the first look
    backlog: dict[str, Header] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """How many memories are not indexed yet."""
        return len(self.fresh) + len(self.backlog)


class Indexes:
    """The indices of one daemon, kept below ``folder``; ``lock`` makes a lock.

    Without a folder they are in memory alone. With ``meaning`` each also ranks by vectors.
    """

    def __init__(
        self,
        reader: Reader,
        lock: Callable[[], Lock],
        folder: str = "",
        *,
        most: int = _PROJECTS,
        meaning: Meaning | None = None,
    ) -> None:
        self._reader = reader
        self._make_lock = lock
        self._folder = folder
        self._most = most
        self._meaning = meaning
        self._open: OrderedDict[str, _OpenIndex] = OrderedDict()
        self._table = lock()
        self.cache = CacheHits()  # a hit is an index in which nothing is missing

    @contextmanager
    def hold(self, directory: str, seconds: float = _HOLD_SECONDS) -> Iterator[None]:
        """Use a directory's index alone for the length of the block. Raises IndexBusyError."""
        while True:
            one = self._of(directory)
            if not one.lock.acquire(timeout=max(seconds, 0.0)):
                raise IndexBusyError(directory)
            if self._open.get(directory) is one:
                break
            one.lock.release()  # it was closed meanwhile
        try:
            yield
        finally:
            one.lock.release()

    def current(self, directory: str, allowance: int) -> Current:
        """Return a held directory's index with what changed, ``allowance`` memories at most.

        Raises what reading a directory raises.
        """
        one = self._of(directory)
        self._take_delta(directory, one)
        self.cache.add(hit=not one.left)
        return self.advance(directory, allowance)

    def advance(self, directory: str, most: int) -> Current:
        """Index so many memories at most of a held directory, without another look at it.

        Raises what reading a directory raises.
        """
        one = self._of(directory)
        headers = _pop_batch(one.fresh, most)
        headers += _pop_batch(one.backlog, most - len(headers))
        if headers:
            files = self._reader.read_many(directory, [header.path for header in headers])
            bodies = {file.header.path: file for file in files}
            one.index.update(_entry(header, bodies.get(header.path)) for header in headers)
        busy = one.left > 0 or one.index.is_due(more=False)
        notes = one.problems + one.index.notes()
        return Current(one.index, one.left, one.count, busy, notes)

    def work(self, directory: str, most: int) -> bool:
        """Do one slice of what a directory needs; return whether more is to be done.

        A slice indexes ``most`` memories at most, commits what waits for the disk, and computes
        some vectors. The caller does not hold the directory. Raises what reading a directory
        raises, and IndexBusyError.
        """
        with self.hold(directory):
            one = self._of(directory)
            if one.mark < 0:
                self._take_delta(directory, one)
                one.index.rank(_REHEARSAL, 1)  # loads what the first prompt would wait for
            busy = self.advance(directory, most).busy
            batch = one.index.batch(more=one.left > 0)
        if batch is not None:
            try:
                one.index.commit(batch)
                with self.hold(directory):
                    one.index.adopt(batch)
            finally:
                one.index.give_back(batch)
        return busy or self._learn(directory, one, most)

    def use(self, model_folder: str) -> bool:
        """Note which semantic model the settings name; return whether ``work`` has to look."""
        return self._meaning is not None and self._meaning.use(model_folder)

    def close(self) -> None:
        """Close all of them; one that is held is left as it is."""
        for directory, one in list(self._open.items()):
            if one.lock.acquire(timeout=_CLOSE_SECONDS):
                del self._open[directory]
                one.index.close()
                one.lock.release()

    def forget(self) -> None:
        """Close all indices and remove what they keep on disk, words and vectors.

        Each is made anew at its next use. Raises IndexBusyError and OSError.
        """
        while self._open:
            directory = next(iter(self._open))
            with self.hold(directory):
                self._open.pop(directory).index.close()
        if self._folder:
            aside = f"{self._folder}.removed"
            with suppress(FileNotFoundError):
                shutil.rmtree(aside)
            with suppress(FileNotFoundError):
                os.rename(self._folder, aside)  # what is opened from now on lies elsewhere
                shutil.rmtree(aside)

    def _of(self, directory: str) -> _OpenIndex:
        self._table.acquire()
        try:
            one = self._open.get(directory)
            if one is None:
                one = self._open[directory] = self._opened(directory)
            self._open.move_to_end(directory)
            oldest = self._pop_oldest()
        finally:
            self._table.release()
        for unused in oldest:
            unused.index.close()
            unused.lock.release()
        return one

    def _opened(self, directory: str) -> _OpenIndex:
        place = f"{self._folder}/{_name(directory)}" if self._folder else None
        near = None
        if self._meaning is not None and place is not None:
            near = Neighbours(self._meaning, f"{place}.vectors")
        return _OpenIndex(Index(place, near), self._make_lock())

    def _pop_oldest(self) -> list[_OpenIndex]:
        """Remove and return what was not used for longest and is not in use now, locked."""
        oldest = []
        for directory, one in list(self._open.items())[: max(len(self._open) - self._most, 0)]:
            if not one.index.is_busy and one.lock.acquire(blocking=False):
                oldest.append(self._open.pop(directory))
        return oldest

    def _take_delta(self, directory: str, one: _OpenIndex) -> None:
        if one.index.lost():
            one.mark = -1
        result = self._reader.catalogue(directory, one.mark)
        changed = {header.path: header for header in result.changed}
        if result.whole:
            known = {path: header.fingerprint for path, header in changed.items()}
            missing = [changed[path] for path in one.index.reconcile(known)]
            missing.sort(key=lambda header: (-header.mtime_ns, header.path))
            one.fresh = {}
            one.backlog = {header.path: header for header in missing}
        else:
            one.index.remove(result.gone)
            for path in result.gone:
                one.fresh.pop(path, None)
                one.backlog.pop(path, None)
            for path in changed:
                one.backlog.pop(path, None)
            one.fresh.update(changed)
        one.mark, one.count, one.problems = result.mark, result.count, result.problems

    def _learn(self, directory: str, one: _OpenIndex, most: int) -> bool:
        """Compute some vectors without holding the directory; return whether more are left."""
        near = one.index.near
        known, read = partial(self._versions, directory), partial(self._texts, directory)
        return near is not None and near.work(known, read, most)

    def _versions(self, directory: str) -> dict[str, int]:
        headers = self._reader.headers(directory)
        return {path: mark(path, header.fingerprint) for path, header in headers.items()}

    def _texts(self, directory: str, paths: Sequence[str]) -> list[VectorText]:
        with self.hold(directory):
            files = self._reader.read_many(directory, paths)
        return [text(_entry(file.header, file)) for file in files]


def _name(directory: str) -> str:
    """Return the name of the files that belong to a directory."""
    return hashlib.sha256(directory.encode(errors="surrogateescape")).hexdigest()[:32]


def _pop_batch(headers: dict[str, Header], most: int) -> list[Header]:
    """Remove and return the first ``most`` headers, to be indexed together."""
    return [headers.pop(path) for path in tuple(islice(headers, max(most, 0)))]


def _entry(header: Header, file: MemoryFile | None) -> Entry:
    """Return what is searched of a memory; one without its file is found by its header.

    One that is too large is never loaded. Any other is to be read again when the directory is next
    compared, so its version is none that the directory has.
    """
    header = header if file is None else file.header
    unread = file is None and header.size <= limits.READ_BYTES
    return Entry(
        path=header.path,
        fingerprint=_UNREAD if unread else header.fingerprint,
        mtime_ns=header.mtime_ns,
        name=header.name,
        description=header.description,
        type="" if header.type is None else header.type.value,
        body="" if file is None else file.body,
    )
