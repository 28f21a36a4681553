"""When to look for external edits (changes by other programs), and at which paths.

A directory is compared as a whole once per watch, then only the paths that the watch named.
Blocks; the caller holds the lock of the directory. Hints come from any thread.
"""

from memd.core import limits
from memd.core.names import concerns
from memd.core.recent import Recent
from memd.store.reading import DirectoryReader
from memd.watch.external import Detected, DetectionScope, ExternalEdits
from memd.watch.watch import Dirty, Watch


class Detection:
    """Tracks which directories were compared as a whole, and which paths changed since."""

    def __init__(self, external: ExternalEdits, reading: DirectoryReader) -> None:
        self._external = external
        self._reading = reading
        self._watch: Watch | None = None
        # By directory: number of the watch in force when all of it was compared.
        self._whole: Recent[str, int | None] = Recent()
        self._dirty = Dirty()
        self._doubted: set[str] = set()  # with a file that looked half saved
        self._pauses: dict[str, float] = {}  # seconds to the next look at an unsettled file
        self._pausing: set[str] = set()

    def use(self, watch: Watch | None) -> None:
        """Rely from now on on a watch that calls ``tell``, or on none with ``None``."""
        self._watch = watch
        self._reading.use_watch(watch)

    def tell(self, directory: str, path: str | None) -> None:
        """Note that a path changed, for readers and for ``detect``; thread-safe.

        A path that is no memory and no index (a replaced file) only requests a look.
        """
        if path is not None and not concerns(path):
            self._dirty.note(directory)
            return
        self._reading.dirty.note(directory, path)
        self._dirty.note(directory, path)

    def hint(self, directory: str) -> None:
        """Request a look at a directory; thread-safe."""
        self._pausing.discard(directory)
        self._dirty.note(directory)

    def doubt(self) -> None:
        """Request a comparison of all files of the directories that are in use."""
        for directory in self._reading.in_use():
            self._dirty.note(directory, None)

    def pending(self) -> frozenset[str]:
        """Return the directories for which a look was requested."""
        return self._dirty.directories()

    def detect(
        self, real: str, at: float, *, patient: bool = False, claim: bool = False
    ) -> Detected:
        """Journal other programs' edits of a directory; raises what ``ExternalEdits.detect`` does.

        Each edit made before this call is seen, even if the watch has not reported it yet.
        ``patient`` and ``claim`` are as in ``DetectionScope``.
        """
        watch = self._watch
        watch_number = watch.add(real) if watch else None
        if watch:
            watch.catch_up()
        paths = self._dirty.take(real)
        if watch_number is None or watch_number != self._whole.get(real):
            paths = None
        try:
            detected = self._external.detect(
                real,
                DetectionScope(
                    at,
                    patient=patient,
                    claim=claim,
                    paths=paths,
                    enter=lambda folder: self._enter(real, folder),
                    reported=lambda path: self._reading.dirty.note(real, path),
                ),
            )
        except BaseException:
            self._dirty.note(real, None)
            raise
        if not detected.looked:
            if paths is None or paths:
                self._dirty.note(real, *([None] if paths is None else paths))
        elif paths is None:
            same = watch is not None and watch.add(real) == watch_number
            self._whole[real] = watch_number if same else None
        self._doubted.discard(real)
        if detected.unsettled:
            self._dirty.note(real, *detected.unsettled)
            self._doubted.add(real)
        return detected

    def doubted(self, real: str) -> bool:
        """Say whether the last look found a file that may be half saved."""
        return real in self._doubted

    def pause(self, real: str, *, again: bool) -> float | None:
        """Return the seconds to wait before the next look, or ``None`` if none is to be planned.

        A program may keep a file open for hours, so the pauses become longer; when it closes the
        file, the watch reports it.
        """
        if not again:
            self._pauses.pop(real, None)
            return None
        if real in self._pausing:
            return None
        pause = self._pauses.get(real, 0.0)
        self._pauses[real] = min(max(2 * pause, limits.LOOK_SECONDS), limits.LOOK_SECONDS_MOST)
        self._pausing.add(real)
        return pause

    def _enter(self, real: str, folder: str) -> None:
        """Watch a folder before it is listed."""
        if self._watch:
            self._watch.enter(real, folder)
