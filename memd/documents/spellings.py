"""The names of one directory, to find those that differ in case alone without going through all.

Two such names, of files or of folders, are one on some systems (``names.clashes`` is the rule).
A name that is its own form without case needs no place here: whether it is there, whoever holds
the paths can say. So of 100,000 names in small letters only the folders are kept. Not thread-safe.
"""

from collections.abc import Container, Iterable


class Spellings:
    """Paths by how they read where case does not count."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._below: dict[str, int] = {}  # folder: how many names stand in it
        self._odd: dict[str, list[str]] = {}  # path without case in its last part: as it is spelled
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Take a path in; it is not there yet."""
        folder, name = _parts(path)
        below = self._below.get(folder, 0)
        self._below[folder] = below + 1
        folded = name.casefold()
        if folded != name:
            self._odd.setdefault(folder + folded, []).append(path)
        if folder and not below:
            self.add(folder[:-1])

    def remove(self, path: str) -> None:
        """Forget a path that was taken in."""
        folder, name = _parts(path)
        folded = name.casefold()
        if folded != name:
            self._odd[folder + folded].remove(path)
            if not self._odd[folder + folded]:
                del self._odd[folder + folded]
        self._below[folder] -= 1
        if not self._below[folder]:
            del self._below[folder]
            if folder:
                self.remove(folder[:-1])

    def meets(self, path: str, there: Container[str]) -> bool:
        """Say whether another path differs from this one only in case, in a folder's or its own.

        ``there`` are the paths that were taken in.
        """
        while path:
            folder, name = _parts(path)
            folded = folder + name.casefold()
            if folded != path and (folded in there or f"{folded}/" in self._below):
                return True
            if any(other != path for other in self._odd.get(folded, ())):
                return True
            path = folder[:-1]
        return False


def _parts(path: str) -> tuple[str, str]:
    """Return the folder with its slash, "" for none, and the last part."""
    at = path.rfind("/") + 1
    return path[:at], path[at:]
