"""The door of watchdog: hints that something below a directory was changed. Nothing more.

A hint names a directory that is worth a look; what happened there, the look finds out by content
(``external.py``). So a queue that overflows loses nothing: what is still in it when it is full is
read after the loss, and the look that it leads to sees everything. Where no watch can be had, the
look at each use is enough, and ``problems`` says so. watchdog is imported with the first watch: a
daemon that nobody uses needs none.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

DIRECTORIES = 64  # each has a thread; the one that was not used for longest goes first
_MEMORY = ".md"


@dataclass(frozen=True, slots=True)
class _Watched:
    """A directory that is watched: watchdog's own object, and which directory it was then."""

    watch: Any
    identity: tuple[int, int]


class Watch:
    """Watches directories. ``wake`` is called in a thread of its own for the first of some hints.

    All methods may be called in any thread; ``add`` and ``close`` block.
    """

    def __init__(self, wake: Callable[[], None], *, directories: int = DIRECTORIES) -> None:
        self._wake = wake
        self._limit = directories
        self._hints: set[str] = set()
        self._problems: dict[str, str] = {}
        self._watched: OrderedDict[str, _Watched] = OrderedDict()
        self._hinting = threading.Lock()
        self._adding = threading.Lock()
        self._observer: Any = None
        self._closed = False

    def add(self, directory: str) -> None:
        """Watch a directory (its real path), if that can be; one that is not there is not."""
        with self._adding:
            try:
                self._add(directory)
            except FileNotFoundError:
                self._drop(directory)
            except (OSError, ImportError) as error:
                self._drop(directory)
                self._problems[directory] = f"{directory} is not watched: {error}"

    def take(self) -> frozenset[str]:
        """Return the directories that there were hints of since the last call."""
        with self._hinting:
            hints = frozenset(self._hints)
            self._hints.clear()
        return hints

    def hint(self, directory: str) -> None:
        """Note that a directory is worth a look."""
        with self._hinting:
            first = not self._hints
            self._hints.add(directory)
        if first:
            self._wake()

    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each directory that cannot be watched."""
        return tuple(self._problems.values())

    def close(self) -> None:
        """End every watch and wait for the threads; no hint comes after that."""
        with self._adding:
            self._closed = True
            if self._observer is not None:
                self._observer.stop()
                self._observer.join()

    def _add(self, directory: str) -> None:
        status = os.stat(directory)
        identity = (status.st_dev, status.st_ino)
        watched = self._watched.get(directory)
        if watched is not None and watched.identity == identity:
            self._watched.move_to_end(directory)
            return
        self._drop(directory)
        if self._closed:
            return
        if self._observer is None:
            self._observer = _observer()
        watch = self._observer.schedule(
            _Handler(self, directory), directory, recursive=True, event_filter=_events()
        )
        self._watched[directory] = _Watched(watch, identity)
        self._problems.pop(directory, None)
        while len(self._watched) > self._limit:
            self._drop(next(iter(self._watched)))

    def _drop(self, directory: str) -> None:
        watched = self._watched.pop(directory, None)
        if watched is not None:
            with suppress(KeyError, OSError):  # one whose directory went away is gone already
                self._observer.unschedule(watched.watch)


class _Handler:
    """What watchdog calls with each event below one directory."""

    def __init__(self, watch: Watch, directory: str) -> None:
        self._watch = watch
        self._directory = directory

    def dispatch(self, event: Any) -> None:
        """Hint at the directory when the event can concern a memory."""
        names = (os.fsdecode(event.src_path), os.fsdecode(event.dest_path or ""))
        if event.is_directory or any(name.endswith(_MEMORY) for name in names):
            self._watch.hint(self._directory)


def _observer() -> Any:
    from watchdog.observers import Observer  # noqa: PLC0415 - costs a start 30 ms; few need it then

    observer = Observer()
    observer.start()
    return observer


def _events() -> list[type[Any]]:
    """Return the kinds of event that change something; reading is none."""
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
