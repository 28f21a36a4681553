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

from memd.base.errors import MemdError
from memd.base.names import INDEX, INDEXES
from memd.base.values import Catalogue, Header, newest_first
from memd.files.directory import Directory
from memd.store import catalogue
from memd.store.tree import StoredFile, read_file

_MARK_NUMBERS = count(secrets.randbits(48) << 4)  # below 2**53: JSON's readers keep it exact
LOGGED_PATHS = 1024  # of a directory that changed; a reader that missed more gets all headers


class LiveCatalogue:
    """The catalogue of one directory: headers by path, the log of their changes, and the index."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # guards all other members
        self.headers: dict[str, Header] = {}  # by path
        self.watch_number: int | None = None  # of the watch under which all was read, if any
        self.used = 0.0  # the time of the last use, in monotonic seconds
        self.unsaved = False  # headers changed since they were stored on the disk
        self.young: set[str] = set()  # paths that could be saved again with the same file status
        self.index_known = False  # the index is still as it was read
        self._exists = False  # the directory existed when it was last read
        # By path: sentences about a file that cannot be read; by "": about folders.
        self._troubles: dict[str, tuple[str, ...]] = {}
        self._index: StoredFile | None = None  # as it was last read
        self._index_trouble: tuple[str, ...] = ()  # a sentence if the index cannot be read
        self._sorted: tuple[Header, ...] | None = None  # newest first; ``None``: to be sorted anew
        # Changes after ``_oldest_mark`` are all in the log; ``_mark`` is the newest mark.
        self._oldest_mark = self._mark = next(_MARK_NUMBERS)
        # The mark of each path's last change; the path that changed last comes last.
        self._log: OrderedDict[str, int] = OrderedDict()

    def scan(
        self,
        opened: Directory,
        doubted_paths: Collection[str],
        at: float,
        enter: Callable[[str], None] | None = None,
        stored: Mapping[str, Header] | None = None,
    ) -> bool:
        """List the directory and read the headers of files that may have changed.

        Say whether anything changed. Arguments are as in ``catalogue.scan``; ``stored`` are headers
        of an earlier process. Raises what listing a directory does.
        """
        known = self.headers or stored or {}
        result = catalogue.scan(opened, known, self.young | set(doubted_paths), at=at, enter=enter)
        gone = self.headers.keys() - result.headers.keys()
        self.headers, self.young = result.headers, set(result.young)
        self._troubles = {path: reported for path, reported in result.troubles.items() if reported}
        self.index_known = False
        existed, self._exists = self._exists, True
        headers_changed = self._log_changes((*result.changed, *gone))
        return headers_changed or not existed

    def check(self, opened: Directory, paths: Collection[str], at: float) -> bool:
        """Read the headers of some paths again, whatever their file status.

        Say whether any changed. A young file counts as changed, since its status cannot tell.
        """
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
            if old != new or path in self.young:  # of a young file the status cannot tell
                changed.append(path)
        return self._log_changes(changed)

    def clear(self) -> bool:
        """Empty the catalogue because the directory is gone; say whether there was one."""
        gone, self.headers, self._troubles = tuple(self.headers), {}, {}
        self._index, self.index_known, self._index_trouble = None, True, ()
        self._log_changes(gone)
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
        """Return the headers that changed since a mark, or all of them if the mark is unknown.

        ``directory`` is the path that the caller uses, for the result.
        """
        is_whole = not self._oldest_mark <= mark <= self._mark
        changed_paths = [path for path, changed_at in self._log.items() if changed_at > mark]
        paths = self.headers if is_whole else changed_paths
        return Catalogue(
            directory,
            self._mark,
            is_whole,
            changed=tuple(self.headers[path] for path in paths if path in self.headers),
            gone=tuple(path for path in paths if path not in self.headers),
            count=len(self.headers),
            problems=self.troubles,
        )

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

    def _log_changes(self, paths: Collection[str]) -> bool:
        """Log that these paths changed, under a new mark; say whether there are any.

        A reader whose mark is older than the log gets all headers.
        """
        if not paths:
            return False
        self._mark = next(_MARK_NUMBERS)
        if len(paths) > LOGGED_PATHS:
            self._log.clear()
            self._oldest_mark = self._mark
        else:
            for path in paths:
                self._log[path] = self._mark
                self._log.move_to_end(path)
            while len(self._log) > LOGGED_PATHS:
                _, self._oldest_mark = self._log.popitem(last=False)
        self._sorted, self.unsaved = None, True
        return True
