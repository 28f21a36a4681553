"""When to look for external edits, and at which paths.

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
    """Knows which directories were compared as a whole, and which paths were named since."""

    def __init__(self, external: ExternalEdits, reading: DirectoryReader) -> None:
        self._external = external
        self._reading = reading
        self._watch: Watch | None = None
        # Directory: the watch under which all was seen.
        self._whole: Recent[str, int | None] = Recent()
        self._dirty = Dirty()
        self._doubted: set[str] = set()  # where something looked like half of a save
        self._pauses: dict[str, float] = {}  # the next one, where a file is not settled
        self._pausing: set[str] = set()

    def use(self, watch: Watch | None) -> None:
        """Trust a watch, which tells ``tell``, from now on; with ``None`` none."""
        self._watch = watch
        self._reading.use_watch(watch)

    def tell(self, directory: str, path: str | None) -> None:
        """Note a path below a directory for whoever reads or looks; thread-safe.

        The path of a replaced file only says that the directory is worth a look.
        """
        if path is not None and not concerns(path):
            self._dirty.note(directory)
            return
        self._reading.dirty.note(directory, path)
        self._dirty.note(directory, path)

    def hint(self, directory: str) -> None:
        """Note that a directory is worth a look; thread-safe."""
        self._pausing.discard(directory)
        self._dirty.note(directory)

    def doubt(self) -> None:
        """Look at everything once more in the directories that are in use."""
        for directory in self._reading.in_use():
            self._dirty.note(directory, None)

    def pending(self) -> frozenset[str]:
        """Return the directories that are worth a look."""
        return self._dirty.directories()

    def detect(
        self, real: str, at: float, *, patient: bool = False, claim: bool = False
    ) -> Detected:
        """Journal what others did to a directory; raises what ``ExternalEdits.detect`` does.

        Whatever was done before this call is seen, also where nobody has told of it yet.
        """
        watch = self._watch
        number = watch.add(real) if watch else None
        if watch:
            watch.catch_up()
        paths = self._dirty.take(real)
        if number is None or number != self._whole.get(real):
            paths = None
        try:
            noticed = self._external.detect(
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
        if not noticed.looked:
            if paths is None or paths:
                self._dirty.note(real, *([None] if paths is None else paths))
        elif paths is None:
            same = watch is not None and watch.add(real) == number
            self._whole[real] = number if same else None
        self._doubted.discard(real)
        if noticed.unsettled:
            self._dirty.note(real, *noticed.unsettled)
            self._doubted.add(real)
        return noticed

    def doubted(self, real: str) -> bool:
        """Say whether the last look met something that may be half of a save."""
        return real in self._doubted

    def pause(self, real: str, *, again: bool) -> float | None:
        """Return the seconds from this look to the next, ``None`` where none is to be begun.

        A program may keep a file open for hours, so the pauses become longer; when it closes the
        file, the watch tells.
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
        if self._watch:
            self._watch.enter(real, folder)
