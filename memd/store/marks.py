"""What changed since when: marks that readers of a catalogue hold, and the paths behind them.

A mark is a number that only grows, also over several catalogues of one process; another process
begins somewhere else. So a mark that is not from this very log is not mistaken for one of it: its
reader is told that it must take everything anew.
"""

import secrets
from collections import OrderedDict
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from itertools import count

_MARKS = count(secrets.randbits(48) << 4)  # below 2**53: JSON's readers keep it exact
PATHS = 1024  # the log of a directory; who has missed more than these takes everything anew


class Marks:
    """The latest changes of one catalogue. Not thread-safe."""

    def __init__(self, most: int = PATHS) -> None:
        self._most = most
        self._first = self.now = next(_MARKS)
        self._changed: OrderedDict[str, int] = OrderedDict()  # what changed last comes last

    def change(self, paths: Collection[str]) -> None:
        """Note that something became of these paths."""
        if not paths:
            return
        self.now = next(_MARKS)
        if len(paths) > self._most:
            self._changed.clear()
            self._first = self.now
            return
        for path in paths:
            self._changed[path] = self.now
            self._changed.move_to_end(path)
        while len(self._changed) > self._most:
            _, self._first = self._changed.popitem(last=False)

    def since(self, mark: int) -> AbstractSet[str] | None:
        """Return the paths that changed after a mark, ``None`` where that is not known."""
        if not self._first <= mark <= self.now:
            return None
        paths: set[str] = set()
        for path in reversed(self._changed):
            if self._changed[path] <= mark:
                break
            paths.add(path)
        return paths
