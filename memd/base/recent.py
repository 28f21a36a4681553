"""A dict with a bound, for caches by directory, project or session."""

from collections.abc import Callable
from typing import TypeVar

from memd.base import limits

K = TypeVar("K")
V = TypeVar("V")


def _never(_: object) -> bool:
    """Return False, since by default no entry is in use."""
    return False


class Recent(dict[K, V]):
    """A dict of at most ``most`` entries: when one more is set, the oldest is removed.

    Entries whose value is ``in_use`` are not removed. Only store what can be computed again.
    """

    def __init__(
        self, most: int = limits.DIRECTORIES, *, in_use: Callable[[V], bool] = _never
    ) -> None:
        super().__init__()
        self._most = most
        self._in_use = in_use  # whether an entry with this value must stay

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > self._most:
            self._shrink(key)

    def setdefault(self, key: K, default: V) -> V:
        """Return the value of a key, which is set to ``default`` where there is none."""
        result = self.get(key)
        if result is None:
            self[key] = result = default
        return result

    def renewed(self, key: K, default: V) -> V:
        """Return the value of a key, ``default`` where there is none, as the newest entry."""
        self[key] = result = self.pop(key, default)
        return result

    def _shrink(self, newest: K) -> None:
        """Remove the oldest entries that are not in use, but never ``newest``."""
        for key, value in list(self.items()):  # a copy, since other threads may set entries
            if len(self) <= self._most:
                return
            if key != newest and not self._in_use(value):
                self.pop(key, None)
