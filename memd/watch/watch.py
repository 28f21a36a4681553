"""The door of watchdog: which paths of a directory may have changed, as the system reports them.

This file only reports paths; ``external.py`` finds out by content what happened to them. Rules:

- On Linux the kernel's queue is read here, through watchdog's bindings of inotify: by a thread of
  our own, and by each caller of ``catch_up``. The kernel queues an event before the call that made
  the change returns; so ``catch_up`` reports all changes made before it. watchdog's own observer
  has one more queue in each directory's thread, holds events back for half a second, and loses
  what is in that queue when the kernel's overflows.
- A path of ``None`` means: compare everything. It is reported after an overflow, when a folder
  appears, disappears or moves, and when a watch ends.
- ``add`` returns a number that stays the same as long as no change can have been missed, and
  ``None`` where changes can always be missed: on other systems (there watchdog's observer only
  hints), on file systems shared with other machines, and where no watch is possible.
- A folder is watched before it is listed: code that lists a directory calls ``enter`` first.

watchdog is imported with the first watch, to keep the start fast.
"""

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from memd.base.names import concerns
from memd.base.recent import Recent
from memd.watch.inotify import Inotify, reports_all_changes

DIRECTORIES = 64  # each costs kernel memory; the least recently used one is dropped first
PATHS = 4096  # of one directory; with more of them, comparing everything is cheaper
Paths = frozenset[str] | None  # None: any path may have changed
Report = Callable[[str, str | None], None]  # gets a directory and a path, or None for all paths
_NUMBERS = count()  # of all watches of this process


class Dirty:
    """Directories (real paths) with the paths below them that may have changed. Thread-safe."""

    def __init__(self, most: int = PATHS) -> None:
        self._most = most  # paths of one directory
        self._noted: dict[str, set[str] | None] = {}  # by directory; None: any path
        self._lock = threading.Lock()  # guards ``_noted``

    def note(self, directory: str, *paths: str | None) -> None:
        """Note a directory and paths below it; ``None`` stands for everything below it."""
        with self._lock:
            noted = self._noted.setdefault(directory, set())
            if noted is None:
                return
            noted |= {path for path in paths if path is not None}
            if None in paths or len(noted) > self._most:
                self._noted[directory] = None

    def take(self, directory: str) -> Paths:
        """Return the paths noted since the last call, ``None`` for all; often the empty set."""
        with self._lock:
            paths = self._noted.pop(directory, set())
        return None if paths is None else frozenset(paths)

    def directories(self) -> frozenset[str]:
        """Return the directories that were noted since their last ``take``."""
        with self._lock:
            return frozenset(self._noted)


class Source(Protocol):
    """Reports changes below the directories (real paths) that were added."""

    exact: bool  # no change is missed

    def add(self, directory: str) -> None:
        """Watch a directory; raises OSError and ImportError."""
        ...

    def enter(self, directory: str, folder: str) -> None:
        """Watch a folder below a watched directory; raises OSError."""
        ...

    def is_watched(self, directory: str) -> bool:
        """Say whether a directory that was added is still watched."""
        ...

    def drop(self, directory: str) -> None:
        """Stop watching a directory."""
        ...

    def catch_up(self) -> None:
        """Report all changes made before this call."""
        ...

    def close(self) -> None:
        """Stop watching everything; nothing is reported after that."""
        ...


class _Watched(Struct, frozen=True):
    """A watched directory."""

    identity: tuple[int, int]  # its device and inode when the watch began
    number: int  # of the watch
    exact: bool  # no change is missed


class Watch:
    """Watches directories by their real paths. All methods may be called in any thread and block.

    ``report`` is called with a directory and a path below it, in any thread; ``wake`` in a thread
    of the watch after such calls. ``directories`` is how many are watched at most; ``source`` makes
    the source of changes, by default the best one of this system.
    """

    def __init__(
        self,
        report: Report,
        wake: Callable[[], None],
        *,
        directories: int = DIRECTORIES,
        source: Callable[[Report, Callable[[], None]], Source] | None = None,
    ) -> None:
        self._report = report
        self._wake = wake
        self._most_directories = directories
        source_of_system = inotify if sys.platform.startswith("linux") else observer
        self._make_source = source or source_of_system
        self._source: Source | None = None  # made with the first watch
        self._problems: Recent[str, str] = Recent()  # by directory: a sentence
        # By directory; the directory that was used last comes last.
        self._watched: OrderedDict[str, _Watched] = OrderedDict()
        self._lock = threading.Lock()  # held while watches begin and end
        self._closed = False  # no watch begins any more

    def add(self, directory: str) -> int | None:
        """Watch a directory if possible, and return the number of the watch.

        The number changes as soon as a change may have been missed. ``None`` means that changes
        can be missed at any time: the directory is missing or cannot be watched reliably.
        """
        with self._lock:
            try:
                watched = self._add(directory)
            except FileNotFoundError:
                self._drop(directory)
            except (OSError, ImportError) as error:
                self._drop(directory)
                self._problems[directory] = f"{directory} is not watched: {error}"
            else:
                return watched.number if watched and watched.exact else None
            return None

    def enter(self, directory: str, folder: str) -> None:
        """Watch a folder below a watched directory; it will be listed after this."""
        if not folder:  # the directory itself is watched already
            return
        with self._lock:
            watched = self._watched.get(directory)
            if watched is None or self._source is None:
                return
            try:
                self._source.enter(directory, folder)
            except FileNotFoundError:
                return  # the parent's watch reports that it is gone
            except OSError as error:
                self._problems[directory] = f"{directory}/{folder} is not watched: {error}"
                self._watched[directory] = replace(watched, exact=False)

    def catch_up(self) -> None:
        """Report all changes made before this call, if the source can know them."""
        source = self._source
        if source is not None:
            source.catch_up()

    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each directory that cannot be watched."""
        return tuple(self._problems.values())

    def close(self) -> None:
        """End every watch and wait for the threads; nothing is reported after that."""
        with self._lock:
            self._closed = True
            self._watched.clear()
            if self._source is not None:
                self._source.close()
                self._source = None

    def _add(self, directory: str) -> _Watched | None:
        """Return the watch of a directory, made if needed; ``None`` after ``close``.

        Raises OSError and ImportError.
        """
        status = os.stat(directory)
        identity = (status.st_dev, status.st_ino)
        watched = self._watched.get(directory)
        if watched is not None and self._source is not None:
            is_same_directory = watched.identity == identity
            if is_same_directory and self._source.is_watched(directory):
                self._watched.move_to_end(directory)
                return watched
            self._drop(directory)
        if self._closed:
            return None
        if self._source is None:
            self._source = self._make_source(self._report, self._wake)
        self._source.add(directory)
        exact = self._source.exact and reports_all_changes(directory)
        watched = self._watched[directory] = _Watched(identity, next(_NUMBERS), exact)
        self._problems.pop(directory, None)
        while len(self._watched) > self._most_directories:
            least_recently_used = next(iter(self._watched))
            self._drop(least_recently_used)
        return watched

    def _drop(self, directory: str) -> None:
        """Stop watching a directory; an unknown one is ignored."""
        if self._watched.pop(directory, None) is not None and self._source is not None:
            self._source.drop(directory)


def inotify(report: Report, wake: Callable[[], None]) -> Source:
    """Return the source of changes on Linux. Raises OSError and ImportError."""
    from watchdog.observers import inotify_c  # noqa: PLC0415 - costs a start 30 ms; few need it then

    return Inotify(inotify_c, report, wake, concerns)


def observer(report: Report, wake: Callable[[], None]) -> Source:
    """Return watchdog's observer as the source. Raises OSError and ImportError."""
    return ObserverSource(report, wake)


class ObserverSource:
    """The source on other systems: watchdog's observer, which is late and may miss changes."""

    exact = False

    def __init__(self, report: Report, wake: Callable[[], None]) -> None:
        from watchdog.observers import Observer  # noqa: PLC0415 - see above

        self._report = report
        self._wake = wake
        self._watches: dict[str, Any] = {}  # watchdog's watch by directory
        self._observer = Observer()
        self._observer.start()

    def add(self, directory: str) -> None:
        """Watch a directory; raises OSError."""
        handler: Any = _Handler(directory, self._report, self._wake)
        self._watches[directory] = self._observer.schedule(
            handler, directory, recursive=True, event_filter=_events()
        )

    def enter(self, directory: str, folder: str) -> None:
        """Do nothing: the observer watches folders itself."""

    def is_watched(self, directory: str) -> bool:
        """Say whether a directory was added."""
        return directory in self._watches

    def drop(self, directory: str) -> None:
        """Stop watching a directory."""
        with suppress(KeyError, OSError):  # the observer has already dropped a deleted directory
            self._observer.unschedule(self._watches.pop(directory))

    def catch_up(self) -> None:
        """Do nothing: the observer cannot be asked for pending events."""

    def close(self) -> None:
        """Stop watching everything and wait for the threads."""
        self._observer.stop()
        self._observer.join()


class _Handler:
    """The handler that watchdog calls with each event below one directory."""

    def __init__(self, directory: str, report: Report, wake: Callable[[], None]) -> None:
        self._directory = directory
        self._report = report
        self._wake = wake

    def dispatch(self, event: Any) -> None:
        """Report the paths of an event that may be memories, and then wake the reader."""
        names = [os.fsdecode(name) for name in (event.src_path, event.dest_path or "") if name]
        paths = [os.path.relpath(name, self._directory) for name in names]
        memory_paths = [path for path in paths if concerns(path)]
        reported = [None] if event.is_directory else memory_paths
        for path in reported:
            self._report(self._directory, path)
        if reported:
            self._wake()


def _events() -> list[type[Any]]:
    """Return the kinds of events that change a file or folder, so not those of reading."""
    from watchdog import events  # noqa: PLC0415 - see above

    return [
        events.FileCreatedEvent,
        events.FileModifiedEvent,
        events.FileMovedEvent,
        events.FileDeletedEvent,
        events.FileClosedEvent,
        events.DirCreatedEvent,
        events.DirMovedEvent,
        events.DirDeletedEvent,
    ]
