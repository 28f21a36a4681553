"""Which directories other programs may have changed, as the system tells: a hint, never the truth.

watchdog's observer flags the directory of each event and wakes whoever waits; what happened there
is found out by ``sync.py``, which looks at the files. An event may be late or missing. Events of
memd's own temporary files are no hint, so a change of memd flags nothing; but the end of a save
into a replaced file that a program still has open is one. The observer calls ``changed``
under its own lock, so that takes none of ours: whoever adds a watch has ours and waits for the
observer's.
"""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from memd.base.names import concerns, is_temporary

_DIRECTORIES = 64  # each costs kernel memory; the one used longest ago is dropped first
_EVENTS = ("FileCreated", "FileMoved", "FileDeleted", "FileClosed")
_FOLDER_EVENTS = ("DirCreated", "DirMoved", "DirDeleted")
# Linux tells when a written file is closed. Elsewhere only that it was modified.
_WRITTEN = () if sys.platform == "linux" else ("FileModified",)


class Watch:
    """Watches directories by their real paths; ``wake`` is called in a thread of the observer."""

    def __init__(self) -> None:
        self._held: dict[str, frozenset[str]] = {}  # by directory: replaced files that are open
        self._observer: Any = None  # ``None`` until a directory is watched
        self._wake: Callable[[], None] | None = None  # ``None`` while nobody listens
        self._watches: OrderedDict[str, Any] = OrderedDict()
        self._flagged: set[str] = set()
        self._gone: set[str] = set()  # removed or moved since they were watched
        self._woke = False  # since the flags were read
        self._problems: dict[str, str] = {}
        self._lock = threading.Lock()

    def start(self, wake: Callable[[], None]) -> None:
        """Begin to watch the directories that are added from now on."""
        self._wake = wake

    def stop(self) -> None:
        """End every watch and wait for the threads."""
        with self._lock:
            observer, self._observer = self._observer, None
            self._wake = None
            self._watches.clear()
        if observer is not None:
            observer.stop()
            observer.join()

    def add(self, directory: str) -> bool:
        """Watch a directory if that is possible; say whether it is watched."""
        with self._lock:
            if self._wake is None:
                return False
            if directory in self._gone:
                self._gone.discard(directory)
                self._forget(directory)
            if directory in self._watches:
                self._watches.move_to_end(directory)
                return True
            # 0.9 MB and 10 ms, for which neither a start waits nor a prompt over up to 500 files.
            from watchdog import events  # noqa: PLC0415 - see above
            from watchdog.observers import Observer  # noqa: PLC0415 - see above

            if self._observer is None:
                self._observer = Observer()
                self._observer.start()
            names = (*_EVENTS, *_FOLDER_EVENTS, *_WRITTEN)
            try:
                watch = self._observer.schedule(
                    _Handler(directory, self),
                    directory,
                    recursive=True,
                    event_filter=[getattr(events, f"{name}Event") for name in names],
                )
            except FileNotFoundError:
                return False
            except OSError as error:
                self._problems[directory] = f"{directory} is not watched: {error}"
                return False
            self._watches[directory] = watch
            self._problems.pop(directory, None)
            self._flagged.add(directory)  # what happened before the watch began
            while len(self._watches) > _DIRECTORIES:
                self._forget(next(iter(self._watches)))
        return True

    def _forget(self, directory: str) -> None:
        """Stop watching a directory, under the lock."""
        self._problems.pop(directory, None)
        with suppress(KeyError, OSError):
            self._observer.unschedule(self._watches.pop(directory))

    def hold(self, directory: str, paths: Iterable[str]) -> None:
        """Say which replaced files of a directory programs have open: their end is a hint."""
        self._held[directory] = frozenset(paths)
        if not self._held[directory]:
            del self._held[directory]

    def take(self, directory: str) -> bool:
        """Say whether a directory was flagged, and clear the flag."""
        was_flagged = directory in self._flagged
        self._flagged.discard(directory)
        return was_flagged

    def flagged(self) -> frozenset[str]:
        """Return the directories that are flagged; the next event wakes again."""
        self._woke = False
        return frozenset(self._flagged.copy())

    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each directory that cannot be watched."""
        return tuple(self._problems.values())

    def is_held(self, directory: str, path: str) -> bool:
        """Return whether a program has a replaced file open."""
        return path in self._held.get(directory, ())

    def changed(self, directory: str, *, gone: bool) -> None:
        """Flag a directory that an event is about and wake whoever waits; in any thread."""
        self._flagged.add(directory)
        if gone:
            self._gone.add(directory)
        wake = self._wake
        if wake is not None and not self._woke:
            self._woke = True
            wake()


class _Handler:
    """What watchdog calls with each event below one directory."""

    def __init__(self, directory: str, watch: Watch) -> None:
        self._directory = directory
        self._watch = watch

    def dispatch(self, event: Any) -> None:
        """Flag the directory if the event may concern a memory."""
        below = len(self._directory) + 1
        paths = [str(name)[below:] for name in (event.src_path, event.dest_path) if name]
        if any(is_temporary(path.rpartition("/")[2]) for path in paths):
            if event.event_type == "closed" and self._watch.is_held(self._directory, paths[0]):
                self._watch.changed(self._directory, gone=False)
            return
        gone = event.event_type in ("deleted", "moved") and not paths[0]
        if event.is_directory or any(map(concerns, paths)):
            self._watch.changed(self._directory, gone=gone)
