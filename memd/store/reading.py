"""Reading memory directories: headers, the index, and single memories as they are on the disk.

The catalogue of each directory in use stays in memory under the directory's real path, so that
unchanged files cost no system call. Rules of this file:
- While a watch is in force (``watch/watch.py``) only the paths that it names are read again; it
  begins before the first scan. Without a watch each use scans the directory.
- A path that is named while a read runs is read again by the next use.
- A catalogue is dropped after half an hour without use, or when too many others are in memory. Its
  headers stay in a file, and one is used only if the status of its memory is unchanged.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from msgspec import Struct

from memd.base.clock import Clock
from memd.base.errors import MemdError, Refused
from memd.base.names import check_name
from memd.base.values import Catalogue, Header, MemoryFile, Snapshot
from memd.files.directory import Directory, DirectoryMissingError
from memd.store.headers_file import HeadersFiles
from memd.store.live import LiveCatalogue
from memd.store.recent_texts import RecentTexts
from memd.store.tree import Listing, LiveTree, StoredFile, memory_file, read_file
from memd.watch.watch import Dirty, Watch

# Directories whose catalogue is in memory; the one that was not used for longest is dropped first.
DIRECTORIES = 16
UNUSED_SECONDS = 30 * 60.0  # after which a catalogue is dropped


class MemoryNotFoundError(MemdError):
    """There is no memory of this name."""

    code = 1001
    kind = "not_found"
    hint = "list the memories to see their paths"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no memory {path}", path=path)


class CurrentSnapshot(Struct, frozen=True):
    """A snapshot of a directory, and whether it differs from the last one (``changed``)."""

    snapshot: Snapshot
    real_path: str
    changed: bool


class DirectoryReader:
    """Reads below any memory directory. All methods block and may run in any thread.

    ``on_change`` is called, in the reading thread, with the real path of a directory that changed
    and with the path that the caller used. ``files`` stores headers on the disk, if given.
    """

    def __init__(
        self,
        clock: Clock,
        on_change: Callable[[str, str], None] = lambda _real_path, _directory: None,
        files: HeadersFiles | None = None,
    ) -> None:
        self._clock = clock
        self._on_change = on_change
        self._headers_files = files
        # By real path; the directory that was used last comes last.
        self._catalogues: OrderedDict[str, LiveCatalogue] = OrderedDict()
        self._lock = threading.Lock()  # guards ``_catalogues``; each catalogue has its own lock
        self._watch: Watch | None = None  # names the paths that changed
        self.dirty = Dirty()  # paths to read again, by directory
        self.recent = RecentTexts()

    def use_watch(self, watch: Watch | None) -> None:
        """Reread only what this watch reports as changed; with ``None`` scan at each use."""
        self._watch = watch

    def catalogue(self, directory: str, since: int = -1) -> Catalogue:
        """Return the headers of a directory that changed since an earlier mark.

        A missing directory counts as empty. Raises PathRefusedError and
        DirectoryUnusableError.
        """
        with self._current_catalogue(directory) as (live, _):
            return live.since(directory, since)

    def headers(self, directory: str) -> Mapping[str, Header]:
        """Return a directory's headers as last read, by path, without reading anything now."""
        live = self._catalogues.get(os.path.realpath(directory))
        return live.headers if live else {}

    def listed(self, directory: str) -> tuple[Header, ...]:
        """Return all headers, newest first; raises what ``catalogue`` does."""
        with self._current_catalogue(directory) as (live, _):
            return live.listed()

    def files(self, directory: str) -> tuple[frozenset[str], bool]:
        """Return the paths of all memories, and whether some may be missing.

        Raises what ``catalogue`` does.
        """
        with self._current_catalogue(directory) as (live, _):
            return live.files()

    def listing(self, directory: str) -> Listing:
        """Return the functions through which a plan lists a directory."""
        return Listing(partial(self.listed, directory), partial(self.files, directory))

    def snapshot(self, directory: str) -> CurrentSnapshot:
        """Return headers and index; raises PathRefusedError and DirectoryUnusableError."""
        real_path = os.path.realpath(directory)
        index_changed = False
        with self._current_catalogue(directory) as (live, headers_changed):
            # Without a watch nothing reports a change of the index.
            if live.watch_number is None or not live.index_known:
                try:
                    with Directory(real_path) as opened:
                        index_changed = live.read_index(opened)
                except DirectoryMissingError:
                    index_changed = live.clear()
            snapshot = Snapshot(directory, live.listed(), live.index, live.problems)
        return CurrentSnapshot(snapshot, real_path, headers_changed or index_changed)

    def tend(self) -> None:
        """Write changed headers to the disk, and drop catalogues unused for half an hour."""
        oldest = self._clock.monotonic() - UNUSED_SECONDS
        for real_path, live in list(self._catalogues.items()):
            self._save(real_path, live)
            if live.used <= oldest:
                self._drop(real_path)

    def forget(self) -> None:
        """Drop all cached headers, in memory and on disk. Raises OSError."""
        self.recent.clear()
        for real_path in list(self._catalogues):
            self._drop(real_path)
        if self._headers_files is not None:
            self._headers_files.clear()

    def in_use(self) -> tuple[str, ...]:
        """Return the directories whose catalogue is in memory."""
        return tuple(self._catalogues)

    def read(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return those of the memories that exist; raises what reading a file raises."""
        try:
            with Directory(directory) as opened:
                files = [(path, self._read_file(opened, path)) for path in paths]
        except DirectoryMissingError:
            return ()
        existing = [(path, file) for path, file in files if file is not None]
        for _, file in existing:
            self.recent.add(file.hash, file.content)  # the caller may edit this very text
        return tuple(memory_file(path, file) for path, file in existing)

    def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return those of the memories that exist and can be read."""
        with suppress(MemdError):  # mostly all of them can, and then one opening is enough
            return self.read(directory, paths)
        result: list[MemoryFile] = []
        for path in paths:
            try:
                result += self.read(directory, (path,))
            except MemdError:
                continue
        return tuple(result)

    @contextmanager
    def tree(self, directory: str) -> Iterator[LiveTree]:
        """Open a directory as a plan sees it, for reading only; writers do not wait for it.

        Raises PathRefusedError, DirectoryMissingError and DirectoryUnusableError.
        """
        with Directory(directory) as opened:
            yield LiveTree(opened, self.listing(os.path.realpath(directory)))

    def live_bytes(self, directory: str, path: str) -> bytes | None:
        """Return the bytes of a memory, or ``None``; raises what reading raises."""
        memories = self.read(directory, (path,))
        return memories[0].content if memories else None

    def _read_file(self, directory: Directory, path: str) -> StoredFile | None:
        """Return one file, if its name is allowed or a scan found it. Raises Refused."""
        try:
            check_name(path, index=True)
        except Refused:
            # A person's own file may have any name, if it is one that a scan meets.
            with self._current_catalogue(directory.path) as (live, _):
                if path not in live.headers:
                    raise
        return read_file(directory, path)

    @contextmanager
    def _current_catalogue(self, directory: str) -> Iterator[tuple[LiveCatalogue, bool]]:
        """Yield a directory's current catalogue, locked, and whether it has just changed."""
        if not directory.startswith("/"):
            Directory(directory)  # raises PathRefusedError
        real_path = os.path.realpath(directory)
        with self._locked_catalogue(real_path) as live:
            try:
                changed = self._refresh(real_path, live)
            except BaseException:
                # The paths that the watch named were taken but perhaps not read.
                self.dirty.note(real_path, None)
                raise
            yield live, changed
        if changed:
            self._on_change(real_path, directory)

    @contextmanager
    def _locked_catalogue(self, real_path: str) -> Iterator[LiveCatalogue]:
        """Yield a directory's catalogue, locked and in memory; made if there is none."""
        while True:  # until no other thread has dropped it before it was locked
            with self._lock:
                live = self._catalogues.setdefault(real_path, LiveCatalogue())
                live.used = self._clock.monotonic()
                self._catalogues.move_to_end(real_path)
                unused = list(self._catalogues)[:-DIRECTORIES]
            for other in unused:
                self._drop(other)
            with live.lock:
                if self._catalogues.get(real_path) is live:
                    yield live
                    return

    def _drop(self, real_path: str) -> None:
        """Drop a catalogue from memory, unless another thread is using it."""
        with self._lock:
            live = self._catalogues.get(real_path)
            if live is not None and live.lock.acquire(blocking=False):
                del self._catalogues[real_path]
                live.lock.release()

    def _save(self, real_path: str, live: LiveCatalogue) -> None:
        """Write the headers of a catalogue to the disk if they changed."""
        if self._headers_files is None or not live.unsaved:
            return
        with live.lock:
            # The status of a young file says too little: the next process must read it again.
            headers = [header for path, header in live.headers.items() if path not in live.young]
            live.unsaved = False
        self._headers_files.save(real_path, headers)

    def _refresh(self, real_path: str, live: LiveCatalogue) -> bool:
        """Read again what may have changed in a directory; return whether anything did.

        The caller holds the lock of the catalogue ``live``.
        """
        watch, at = self._watch, self._clock.now()
        watch_number = watch.add(real_path) if watch else None
        if watch:
            watch.catch_up()  # a change made before this call must be seen by it
        paths = self.dirty.take(real_path)
        is_watched = watch_number is not None and watch_number == live.watch_number
        must_scan = not is_watched or paths is None
        live.watch_number = None  # until all went well
        if not must_scan and not paths:
            live.watch_number = watch_number
            return False
        try:
            with Directory(real_path) as opened:
                if must_scan:
                    changed = self._scan(real_path, live, opened, paths or frozenset(), at)
                else:
                    changed = live.check(opened, paths or (), at)
        except DirectoryMissingError:
            return live.clear()
        # The catalogue is trusted only if the watch missed nothing while it was read.
        unbroken = watch is not None and watch.add(real_path) == watch_number
        live.watch_number = watch_number if unbroken else None
        return changed

    def _scan(
        self,
        real_path: str,
        live: LiveCatalogue,
        opened: Directory,
        doubted_paths: frozenset[str],
        at: float,
    ) -> bool:
        """Scan a directory and say whether it changed; ``doubted_paths`` are read in any case.

        The first scan starts from the stored headers of an earlier process.
        """
        watch = self._watch
        stored = (
            self._headers_files.load(real_path)
            if self._headers_files and not live.headers
            else None
        )

        def watch_folder(folder: str) -> None:
            """Watch a folder before it is listed, so that no change is missed."""
            if watch:
                watch.enter(real_path, folder)

        return live.scan(opened, doubted_paths, at, watch_folder, stored)
