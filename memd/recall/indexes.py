"""Hold one search index for each directory, and update it from the directory's catalogue.

Rules of this file
- A directory's index is used only under its lock (``hold``), which is waited for with a timeout.
- Recent changes are indexed before the backlog, so that the next prompt finds a new memory even
  while a large directory is still being indexed.
- Removed memories leave the index at once.
- If too many indices are open, the least recently used ones are closed.
All methods block: call them in a worker thread.
"""

import hashlib
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Protocol

from msgspec import Struct, field

from memd.base import limits
from memd.base.errors import Busy
from memd.base.values import Header, MemoryFile
from memd.search.index import Entry, Index

_MOST_INDEXES = 16  # that stay open
_HOLD_SECONDS = 30.0  # that waiting for a lock may take
_CLOSE_SECONDS = 1.0  # that closing waits for another thread
_NO_FINGERPRINT = (0, 0, 0)  # a fingerprint that no file has
_WARM_UP_QUERY = "the first prompt"  # a query that loads what a first query needs


class Reader(Protocol):
    """The methods of the store that indexing uses; they block."""

    def headers(self, directory: str) -> tuple[Header, ...]:
        """Return all headers, newest first; raises the errors of reading a directory."""
        ...

    def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return memories; those that cannot be read are left out."""
        ...


class Lock(Protocol):
    """A lock between threads, as ``threading.Lock`` makes them."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:  # noqa: FBT001 - its shape
        """Take the lock; return whether it was free in time."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...


class Current(Struct, frozen=True):
    """The present state of a directory's index.

    ``left`` of ``count`` memories are not indexed yet. ``busy`` says that there is background work.
    ``notes`` are sentences about problems, for users.
    """

    index: Index
    left: int
    count: int
    busy: bool = False
    notes: tuple[str, ...] = ()


class _OpenIndex(Struct):
    """An open index with the headers of its directory that are not indexed yet."""

    index: Index
    lock: Lock
    known: dict[str, str] | None = None  # hashes by path; ``None`` before the first time
    count: int = 0  # of all memories of the directory
    # By path: memories that changed since the catalogue was read first, and all others.
    recent: dict[str, Header] = field(default_factory=dict)
    backlog: dict[str, Header] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """The number of memories that are not indexed yet."""
        return len(self.recent) + len(self.backlog)


class Indexes:
    """The search indexes of all directories, stored below ``folder``.

    Without a folder they are only in memory. At most ``most`` indices stay open.
    """

    def __init__(
        self,
        reader: Reader,
        lock: Callable[[], Lock],
        folder: str = "",
        *,
        most: int = _MOST_INDEXES,
    ) -> None:
        self._reader = reader
        self._make_lock = lock
        self._folder = folder
        self._most = most
        self._open: OrderedDict[str, _OpenIndex] = OrderedDict()  # by directory, the newest last
        self._open_lock = lock()  # guards ``_open``

    @contextmanager
    def hold(self, directory: str, seconds: float = _HOLD_SECONDS) -> Iterator[None]:
        """Hold the lock of a directory's index during the block. Raises Busy."""
        while True:
            opened = self._open_index(directory)
            if not opened.lock.acquire(timeout=max(seconds, 0.0)):
                raise Busy(f"the index of {directory} is busy", directory=directory)
            if self._open.get(directory) is opened:
                break
            opened.lock.release()  # it was closed meanwhile, so the next one is taken
        try:
            yield
        finally:
            opened.lock.release()

    def current(self, directory: str, allowance: int) -> Current:
        """Return a held directory's index after indexing up to ``allowance`` changed memories.

        Raises the errors of reading a directory.
        """
        opened = self._open_index(directory)
        self._take_delta(directory, opened)
        return self.advance(directory, allowance)

    def advance(self, directory: str, most: int) -> Current:
        """Index up to ``most`` known changes of a held directory; return its state.

        Raises the errors of reading a directory.
        """
        opened = self._open_index(directory)
        headers = _pop_batch(opened.recent, most)
        headers += _pop_batch(opened.backlog, most - len(headers))
        if headers:
            files = self._reader.read_many(directory, [header.path for header in headers])
            bodies = {file.header.path: file for file in files}
            opened.index.update(_entry(header, bodies.get(header.path)) for header in headers)
        busy = opened.left > 0 or opened.index.is_due(more=False)
        notes = opened.problems + opened.index.notes()
        return Current(opened.index, opened.left, opened.count, busy, notes)

    def work(self, directory: str, most: int) -> bool:
        """Do one slice of a directory's background work; return whether more is left.

        A slice indexes up to ``most`` memories and commits changes to the disk. The caller must not
        hold the directory. Raises Busy and the errors of reading a directory.
        """
        with self.hold(directory):
            opened = self._open_index(directory)
            if opened.known is None:
                self._take_delta(directory, opened)
                opened.index.rank(
                    _WARM_UP_QUERY, 1
                )  # so that the first prompt need not wait for it
            busy = self.advance(directory, most).busy
            batch = opened.index.batch(more=opened.left > 0)
        if batch is not None:
            try:
                opened.index.commit(batch)
                with self.hold(directory):
                    opened.index.adopt(batch)
            finally:
                opened.index.give_back(batch)
        return busy

    def close(self) -> None:
        """Close all indices, except those that another thread holds for longer than a second."""
        for directory, opened in list(self._open.items()):
            if opened.lock.acquire(timeout=_CLOSE_SECONDS):
                del self._open[directory]
                opened.index.close()
                opened.lock.release()

    def forget(self) -> None:
        """Close all indices and remove their files.

        An index is built again at its next use. Raises Busy and OSError.
        """
        while self._open:
            directory = next(iter(self._open))
            with self.hold(directory):
                self._open.pop(directory).index.close()
        if self._folder:
            removed = f"{self._folder}.removed"
            with suppress(FileNotFoundError):
                shutil.rmtree(removed)
            with suppress(FileNotFoundError):
                os.rename(self._folder, removed)  # an index that is opened now gets a new folder
                shutil.rmtree(removed)

    def _open_index(self, directory: str) -> _OpenIndex:
        """Return a directory's open index; open it if needed and close the oldest of too many."""
        self._open_lock.acquire()
        try:
            opened = self._open.get(directory)
            if opened is None:
                opened = self._open[directory] = self._new_index(directory)
            self._open.move_to_end(directory)
            oldest = self._pop_oldest()
        finally:
            self._open_lock.release()
        for old_index in oldest:
            old_index.index.close()
            old_index.lock.release()
        return opened

    def _new_index(self, directory: str) -> _OpenIndex:
        """Return a newly opened index of a directory with its lock."""
        folder = f"{self._folder}/{_file_name(directory)}" if self._folder else None
        return _OpenIndex(Index(folder), self._make_lock())

    def _pop_oldest(self) -> list[_OpenIndex]:
        """Remove and return the least recently used indices beyond ``most``, locked.

        Indices in use stay open.
        """
        oldest = []
        excess = max(len(self._open) - self._most, 0)
        for directory, opened in list(self._open.items())[:excess]:
            if not opened.index.is_busy and opened.lock.acquire(blocking=False):
                oldest.append(self._open.pop(directory))
        return oldest

    def _take_delta(self, directory: str, opened: _OpenIndex) -> None:
        """Read the changes of a directory and queue them for indexing.

        The first time, all memories that the index on the disk does not have are the backlog.
        """
        if opened.index.lost():
            opened.known = None
        headers = {header.path: header for header in self._reader.headers(directory)}
        known = opened.known
        if known is None:
            versions = {path: _fingerprint(header) for path, header in headers.items()}
            missing = [headers[path] for path in opened.index.reconcile(versions)]
            missing.sort(key=lambda header: (-header.mtime_ns, header.path))
            opened.recent = {}
            opened.backlog = {header.path: header for header in missing}
        else:
            gone = known.keys() - headers.keys()
            opened.index.remove(gone)
            changed = {p: h for p, h in headers.items() if known.get(p) != h.hash}
            for path in (*gone, *changed):
                opened.recent.pop(path, None)
                opened.backlog.pop(path, None)
            opened.recent.update(changed)
        opened.known = {path: header.hash for path, header in headers.items()}
        opened.count = len(headers)


def _fingerprint(header: Header) -> tuple[int, int, int]:
    """Return a number that changes with the text of a memory."""
    return (int(header.hash[:15], 16), 0, 0)


def _file_name(directory: str) -> str:
    """Return the file name of a directory's index: a hash of its path."""
    return hashlib.sha256(directory.encode(errors="surrogateescape")).hexdigest()[:32]


def _pop_batch(headers: dict[str, Header], most: int) -> list[Header]:
    """Remove the first ``most`` headers from the queue and return them."""
    return [headers.pop(path) for path in tuple(islice(headers, max(most, 0)))]


def _entry(header: Header, file: MemoryFile | None) -> Entry:
    """Return the index entry of a memory; without its file it has only the header's words.

    A file that could not be read gets a fingerprint that does not match, so that it is read again
    later. A file that is too large to be read keeps its own.
    """
    header = header if file is None else file.header
    is_unreadable = file is None and header.size <= limits.READ_BYTES
    return Entry(
        path=header.path,
        fingerprint=_NO_FINGERPRINT if is_unreadable else _fingerprint(header),
        mtime_ns=header.mtime_ns,
        name=header.name,
        description=header.description,
        type="" if header.type is None else header.type.value,
        body="" if file is None else file.body,
    )
