"""The catalogue of one directory: its headers and its index, as they were last read.

A reader holds a *mark* and asks for what changed since. Marks grow over all catalogues of one
process, and each process begins elsewhere; so a mark of another catalogue is never taken for one of
this one, and its reader gets the whole catalogue. Not thread-safe: ``reading.py`` holds ``lock``.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from itertools import count

from memd.core.errors import MemdError
from memd.core.names import INDEX, INDEXES
from memd.core.values import Catalogue, Header, newest_first
from memd.files.directory import Directory
from memd.store import catalogue
from memd.store.tree import StoredFile, read_file

_VERSIONS = count(secrets.randbits(48) << 4)  # below 2**53: JSON's readers keep it exact
LOGGED = 1024  # changed paths of a directory; a reader that missed more gets all headers


class Live:
    """Headers of one directory by path, the log of their changes, and the index.

    ``watch_number`` is the watch under which all was read, ``None`` for none; ``used`` is the time
    of the last use in monotonic seconds. ``unsaved``: headers changed since they were written down.
    ``young`` are paths whose status may hide a change. ``index_known``: the index is still current.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.headers: dict[str, Header] = {}
        self.watch_number: int | None = None
        self.used = 0.0
        self.unsaved = False
        self.young: set[str] = set()
        self.index_known = False
        self._exists = False
        self._troubles: dict[str, tuple[str, ...]] = {}
        self._index: StoredFile | None = None
        self._index_trouble: tuple[str, ...] = ()
        self._sorted: tuple[Header, ...] | None = None
        self._first = self._mark = next(_VERSIONS)
        self._log: OrderedDict[str, int] = OrderedDict()  # what changed last comes last

    def scan(
        self,
        opened: Directory,
        doubted: Collection[str],
        at: float,
        enter: Callable[[str], None] | None = None,
        stored: Mapping[str, Header] | None = None,
    ) -> bool:
        """Read the headers of all files that may have changed; say whether anything did.

        Arguments are as in ``catalogue.scan``; ``stored`` are headers of an earlier process. Raises
        what listing a directory does.
        """
        known = self.headers or stored or {}
        result = catalogue.scan(opened, known, self.young | set(doubted), at=at, enter=enter)
        gone = self.headers.keys() - result.headers.keys()
        self.headers, self.young = result.headers, set(result.young)
        self._troubles = {path: reported for path, reported in result.troubles.items() if reported}
        self.index_known = False
        existed, self._exists = self._exists, True
        return self._changed((*result.changed, *gone)) or not existed

    def check(self, opened: Directory, paths: Collection[str], at: float) -> bool:
        """Read some paths again, whatever their file status; say whether anything changed."""
        changed: list[str] = []
        for path in paths:
            if path in INDEXES:
                self.index_known = False
                continue
            old, new = self.headers.get(path), self._read(opened, path)
            self.young.discard(path)
            if new is None:
                self.headers.pop(path, None)
            else:
                self.headers[path] = new
                if catalogue.is_young(new.mtime_ns, at):
                    self.young.add(path)
            if old != new or path in self.young:
                changed.append(path)
        return self._changed(changed)

    def clear(self) -> bool:
        """Empty the catalogue because the directory is gone; say whether there was one."""
        gone, self.headers, self._troubles = tuple(self.headers), {}, {}
        self._index, self.index_known, self._index_trouble = None, True, ()
        self._changed(gone)
        existed, self._exists = self._exists, False
        return existed

    def read_index(self, opened: Directory) -> bool:
        """Read the index; say whether it changed."""
        old = self._index.fingerprint if self._index else None
        try:
            self._index, self._index_trouble = read_file(opened, INDEX), ()
        except MemdError as error:
            self._index, self._index_trouble = None, (error.sentence,)
        self.index_known = True
        return old != (self._index.fingerprint if self._index else None)

    @property
    def index(self) -> bytes | None:
        """Return the raw index as it was last read, or ``None``."""
        return self._index.content if self._index else None

    def since(self, directory: str, mark: int) -> Catalogue:
        """Return the headers that changed since a mark, or all of them if the mark is unknown."""
        whole = not self._first <= mark <= self._mark
        paths = self.headers if whole else [path for path, at in self._log.items() if at > mark]
        changed = tuple(self.headers[path] for path in paths if path in self.headers)
        gone = tuple(path for path in paths if path not in self.headers)
        count_now = len(self.headers)
        return Catalogue(directory, self._mark, whole, changed, gone, count_now, self.troubles)

    def listed(self) -> tuple[Header, ...]:
        """Return all headers, newest first."""
        if self._sorted is None:
            self._sorted = tuple(sorted(self.headers.values(), key=newest_first))
        return self._sorted

    def files(self) -> tuple[frozenset[str], bool]:
        """Return the paths of all memories, and whether some may be missing.

        Memories that cannot be read are included; a folder that cannot be listed may hold more.
        """
        unclear = "" in self._troubles
        return frozenset(self.headers) | (self._troubles.keys() - {""}), unclear

    @property
    def troubles(self) -> tuple[str, ...]:
        """Return a sentence for each file or folder, except the index, that could not be read."""
        return tuple(sentence for reported in self._troubles.values() for sentence in reported)

    @property
    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each file or folder that could not be read."""
        return self.troubles + self._index_trouble

    def _read(self, opened: Directory, path: str) -> Header | None:
        """Return one header or ``None``; note a problem if the file is unreadable."""
        self._troubles.pop(path, None)
        try:
            return catalogue.read(opened, path)
        except MemdError as error:
            if opened.holds(path):
                self._troubles[path] = (error.sentence,)
            return None

    def _changed(self, paths: Collection[str]) -> bool:
        """Log that these paths changed, under a new mark; say whether there are any."""
        if not paths:
            return False
        self._mark = next(_VERSIONS)
        for path in paths if len(paths) <= LOGGED else ():
            self._log[path] = self._mark
            self._log.move_to_end(path)
        if len(paths) > LOGGED:
            self._log.clear()
            self._first = self._mark
        while len(self._log) > LOGGED:
            _, self._first = self._log.popitem(last=False)
        self._sorted, self.unsaved = None, True
        return True
