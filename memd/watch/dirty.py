"""Which paths of which directories may not be what they were. Two readers have a list each."""

import threading

PATHS = 4096  # of one directory; looking at everything costs less than at more than these
Paths = frozenset[str] | None  # None: there is no telling; look at everything


class Dirty:
    """Directories (real paths) with the paths below them that are worth a look. Thread-safe."""

    def __init__(self, most: int = PATHS) -> None:
        self._most = most
        self._noted: dict[str, set[str] | None] = {}
        self._lock = threading.Lock()

    def note(self, directory: str, path: str | None) -> None:
        """Note a path, or with ``None`` the whole directory."""
        with self._lock:
            paths = self._noted.setdefault(directory, set())
            if path is None or (paths is not None and len(paths) >= self._most):
                self._noted[directory] = None
            elif paths is not None:
                paths.add(path)

    def note_all(self, directory: str, paths: Paths) -> None:
        """Note several paths, or with ``None`` the whole directory."""
        for path in (None,) if paths is None else paths:
            self.note(directory, path)

    def name(self, directory: str) -> None:
        """Note a directory, and nothing below it."""
        with self._lock:
            self._noted.setdefault(directory, set())

    def take(self, directory: str) -> Paths:
        """Return what was noted of a directory since the last call, the empty set for nothing."""
        with self._lock:
            paths = self._noted.pop(directory, _NOTHING)
        return None if paths is None else frozenset(paths)

    def directories(self) -> frozenset[str]:
        """Return the directories of which something is noted."""
        with self._lock:
            return frozenset(self._noted)


_NOTHING: set[str] = set()
