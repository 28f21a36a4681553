"""Decides when a directory is checked for external edits (changes by other programs), and where.

The first check under a watch compares the whole directory; later checks compare only the paths that
the watch reported. Blocks; the caller holds the lock of the directory. Methods that only request a
check may be called from any thread.
"""

from memd.base import limits
from memd.base.names import concerns
from memd.base.recent import Recent
from memd.store.reading import DirectoryReader
from memd.watch.external import Detected, DetectionScope, ExternalEdits
from memd.watch.watch import Dirty, Paths, Watch


class Detection:
    """Remembers which directories were compared as a whole, and which paths changed since.

    Directories are named by their real paths.
    """

    def __init__(self, external: ExternalEdits, reading: DirectoryReader) -> None:
        self._external = external
        self._reading = reading
        self._watch: Watch | None = None  # names the paths that changed; ``None`` without ``run``
        # By directory: number of the watch in force when all of it was compared.
        self._number_of_full_comparison: Recent[str, int | None] = Recent()
        self._dirty = Dirty()  # directories to check, with the paths that may differ
        self._half_saved: set[str] = set()  # directories with a file that may be half saved
        self._next_pauses: dict[str, float] = {}  # by directory: seconds, the next ``pause``
        self._pausing: set[str] = set()  # directories whose next check is planned already

    def use_watch(self, watch: Watch | None) -> None:
        """Rely from now on on a watch that calls ``note_change``, or on none with ``None``."""
        self._watch = watch
        self._reading.use_watch(watch)

    def note_change(self, real_path: str, path: str | None) -> None:
        """Note that a path in a directory changed, or any path with ``None``; thread-safe.

        Readers then read it again, and the next check compares it. For a path that is no memory and
        no index (a replaced file) this only requests a check.
        """
        if path is not None and not concerns(path):
            self._dirty.note(real_path)
            return
        self._reading.dirty.note(real_path, path)
        self._dirty.note(real_path, path)

    def request_check(self, real_path: str) -> None:
        """Request a check of a directory; thread-safe."""
        self._pausing.discard(real_path)
        self._dirty.note(real_path)

    def request_full_checks(self) -> None:
        """Request a comparison of all files in each directory whose catalogue is in memory."""
        for real_path in self._reading.in_use():
            self._dirty.note(real_path, None)

    def pending(self) -> frozenset[str]:
        """Return the directories for which a check was requested."""
        return self._dirty.directories()

    def detect(
        self, real_path: str, at: float, *, patient: bool = False, claim: bool = False
    ) -> Detected:
        """Check a directory for external edits and journal those; return what was found.

        Each edit made before this call is seen, even if the watch has not reported it yet. ``at``
        is seconds since 1970; ``patient`` and ``claim`` are as in ``DetectionScope``. Raises what
        ``ExternalEdits.detect`` does.
        """
        watch = self._watch
        watch_number = watch.add(real_path) if watch else None
        if watch:
            watch.catch_up()
        paths = self._dirty.take(real_path)
        # Without an unbroken watch since the last full comparison, any path may have changed.
        number_of_full_comparison = self._number_of_full_comparison.get(real_path)
        if watch_number is None or watch_number != number_of_full_comparison:
            paths = None
        scope = DetectionScope(
            at,
            patient=patient,
            claim=claim,
            paths=paths,
            enter=lambda folder: self._watch_folder(real_path, folder),
            reported=lambda path: self._reading.dirty.note(real_path, path),
        )
        try:
            detected = self._external.detect(real_path, scope)
        except BaseException:
            # ``take`` emptied the list of paths, and it is unknown which of them were compared.
            self._dirty.note(real_path, None)
            raise
        self._note_result(real_path, detected, paths, watch_number)
        return detected

    def may_be_half_saved(self, real_path: str) -> bool:
        """Say whether the last check of a directory met a file that may be half saved."""
        return real_path in self._half_saved

    def pause(self, real_path: str, *, again: bool) -> float | None:
        """Return the seconds to wait before the next check, or ``None`` if none is to be planned.

        ``again`` says whether the last check left files for the next one. A program may keep a file
        open for hours, so the pauses become longer; when it closes the file, the watch reports it.
        """
        if not again:
            self._next_pauses.pop(real_path, None)
            return None
        if real_path in self._pausing:
            return None
        pause = self._next_pauses.get(real_path, 0.0)
        doubled_pause = max(2 * pause, limits.LOOK_SECONDS)
        self._next_pauses[real_path] = min(doubled_pause, limits.LOOK_SECONDS_MOST)
        self._pausing.add(real_path)
        return pause

    def _note_result(
        self, real_path: str, detected: Detected, paths: Paths, watch_number: int | None
    ) -> None:
        """Note what a check has compared, and what it left for the next one.

        ``paths`` are those that had to be compared, ``None`` for all. ``watch_number`` is that of
        the watch before the check.
        """
        if not detected.looked:
            # Nothing was compared, so the next check must do it; no path means nothing to compare.
            if paths is None:
                self._dirty.note(real_path, None)
            elif paths:
                self._dirty.note(real_path, *paths)
        elif paths is None:
            # The comparison counts only if the watch missed nothing while it ran.
            watch = self._watch
            unbroken = watch is not None and watch.add(real_path) == watch_number
            self._number_of_full_comparison[real_path] = watch_number if unbroken else None
        self._half_saved.discard(real_path)
        if detected.unsettled:
            self._dirty.note(real_path, *detected.unsettled)
            self._half_saved.add(real_path)

    def _watch_folder(self, real_path: str, folder: str) -> None:
        """Watch a folder before it is listed, so that no change after the listing is missed."""
        if self._watch:
            self._watch.enter(real_path, folder)
