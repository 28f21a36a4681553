"""The catalogue of one directory, kept in step with it by paths that are known to be dirty.

Not thread-safe: ``reading.py`` holds ``lock`` around every use.
"""

import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping

from memd.core.errors import MemdError
from memd.core.names import INDEX, clashes
from memd.core.values import Catalogue, Header
from memd.documents.spellings import Spellings
from memd.files.directory import Directory
from memd.store import catalogue
from memd.store.marks import Marks
from memd.store.tree import Found, read_file

_SORTED = 256  # changes that are sorted in one by one; more are sorted anew


class Live:
    """Headers of one directory by path, what changed in them, and the index.

    ``number`` is the watch under which all of it was looked at, ``None`` for none; ``used`` is
    when somebody asked last, in seconds that never go back. ``fresh`` says that nothing was looked
    at so far, ``unsaved`` that headers changed since they were last written down. ``young`` are
    paths whose status does not vouch for them.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.headers: dict[str, Header] = {}
        self.number: int | None = None
        self.used = 0.0
        self.fresh = True
        self._there = False
        self.unsaved = False
        self.young: set[str] = set()
        self._marks = Marks()
        self._spellings: Spellings | None = None  # of the headers; made when it is asked for
        self._troubles: dict[str, tuple[str, ...]] = {}
        self._index: Found | None = None
        self._index_known = False
        self._index_trouble: tuple[str, ...] = ()
        self._sorted: list[Header] | None = None
        self._listed: tuple[Header, ...] | None = None

    def scan(
        self,
        opened: Directory,
        doubted: Collection[str],
        at: float,
        enter: Callable[[str], None] | None = None,
        kept: Mapping[str, Header] | None = None,
    ) -> bool:
        """Look at everything; say whether something changed.

        Arguments are as in ``catalogue.scan``; ``kept`` are headers of an earlier process. Raises
        what listing a directory does.
        """
        known = self.headers or kept or {}
        found = catalogue.scan(opened, known, self.young | set(doubted), at=at, enter=enter)
        gone = self.headers.keys() - found.headers.keys()
        news = bool(found.changed or gone) or not self._there
        self.unsaved = self.unsaved or news
        self.young = set(found.young)
        self._troubles = {path: told for path, told in found.troubles.items() if told}
        self._index_known = False
        before, self.headers = self.headers, found.headers
        self._spellings = None
        if not self.fresh:  # else nobody has a mark yet
            self._note((*found.changed, *gone), before)
        self._there, self.fresh = True, False
        return news

    def check(self, opened: Directory, paths: Collection[str], at: float) -> bool:
        """Look at some paths, whatever their status says; say whether something changed."""
        changed: list[str] = []
        before: dict[str, Header] = {}
        for path in paths:
            if path == INDEX:
                self._index_known = False
                continue
            old, new = self.headers.get(path), self._read(opened, path)
            if new is not None and catalogue.is_young(new.mtime_ns, at):
                self.young.add(path)
            else:
                self.young.discard(path)
                if old == new:
                    continue
            changed.append(path)
            if old is not None:
                before[path] = old
            self._put(path, old, new)
        self._note(changed, before)
        self.unsaved = self.unsaved or bool(changed)
        return bool(changed)

    def clear(self) -> bool:
        """Take over that there is no directory; say whether there was one."""
        before, self.headers, self._troubles = self.headers, {}, {}
        self._spellings = None
        self._index, self._index_known, self._index_trouble = None, True, ()
        self._note(tuple(before), before)
        there, self._there, self.fresh = self._there, False, False
        return there

    def index(self, opened: Directory) -> bool:
        """Read the index unless it is known; say whether it changed."""
        old = self._index.fingerprint if self._index else None
        try:
            self._index, self._index_trouble = read_file(opened, INDEX), ()
        except MemdError as error:
            self._index, self._index_trouble = None, (error.sentence,)
        self._index_known = True
        return old != (self._index.fingerprint if self._index else None)

    @property
    def index_known(self) -> bool:
        """Whether the index that was last read is still the one of the directory."""
        return self._index_known

    @property
    def content(self) -> bytes | None:
        """The raw index as it was last read."""
        return self._index.content if self._index else None

    def since(self, directory: str, mark: int) -> Catalogue:
        """Return what became of the headers since a mark."""
        paths = self._marks.since(mark)
        whole = paths is None
        known = self.headers
        changed = known.values() if paths is None else [known[p] for p in paths if p in known]
        gone = () if paths is None else tuple(path for path in paths if path not in known)
        return Catalogue(
            directory, self._marks.now, whole, tuple(changed), gone, len(known), self.troubles
        )

    def listed(self) -> tuple[Header, ...]:
        """Return all headers, newest first."""
        if self._listed is None:
            if self._sorted is None:
                self._sorted = sorted(self.headers.values(), key=catalogue.order)
            self._listed = tuple(self._sorted)
        return self._listed

    def files(self) -> frozenset[str]:
        """Return the paths of all memories, those that cannot be read among them."""
        return frozenset(self.headers) | (self._troubles.keys() - {""})

    def count(self) -> int:
        """Return how many memories there are, those that cannot be read among them."""
        return len(self.headers) + len(self._troubles.keys() - self.headers.keys() - {""})

    def among(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths of these under which a memory lies."""
        wanted = frozenset(paths)
        return wanted - wanted.difference(self.headers, self._troubles)

    def distinct(self, paths: Collection[str]) -> bool:
        """Say whether none of these paths differs in case alone from one of a memory."""
        if self._spellings is None:
            self._spellings = Spellings(self.headers)
        if any(self._spellings.meets(path, self.headers) for path in paths):
            return False
        return all(clashes(path, self._troubles) is None for path in paths)

    @property
    def unclear(self) -> bool:
        """Whether a folder could not be looked into."""
        return "" in self._troubles

    @property
    def troubles(self) -> tuple[str, ...]:
        """A sentence for each thing that could not be read but the index."""
        return tuple(sentence for told in self._troubles.values() for sentence in told)

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each thing that could not be read."""
        return self.troubles + self._index_trouble

    def _read(self, opened: Directory, path: str) -> Header | None:
        self._troubles.pop(path, None)
        try:
            return catalogue.read(opened, path)
        except MemdError as error:
            if opened.holds(path):
                self._troubles[path] = (error.sentence,)
            return None

    def _put(self, path: str, old: Header | None, new: Header | None) -> None:
        """Let one header, and its spelling, be the new one; there is an old one or a new one."""
        if self._spellings is not None and old is None:
            self._spellings.add(path)
        if new is not None:
            self.headers[path] = new
            return
        del self.headers[path]
        if self._spellings is not None:
            self._spellings.remove(path)

    def _note(self, changed: Collection[str], before: Mapping[str, Header]) -> None:
        """Let marks and order follow; ``before`` has the headers that were there."""
        if not changed:
            return
        self._marks.change(changed)
        self._listed = None
        if self._sorted is None or len(changed) > _SORTED:
            self._sorted = None
            return
        for path in changed:
            old, new = before.get(path), self.headers.get(path)
            if old is not None:
                del self._sorted[
                    bisect_left(self._sorted, catalogue.order(old), key=catalogue.order)
                ]
            if new is not None:
                insort(self._sorted, new, key=catalogue.order)
