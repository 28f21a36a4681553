"""The index of one memory directory: an engine on disk, and changes that are not committed yet.

Rules of this file
- Changes stay in memory until the engine has committed them, and hide the engine's version of the
  same path. So every memory is found exactly once, in its newest version.
- A directory with few memories has no files, nor has one whose folder cannot be written; a note
  reports the latter.
- A failing engine is abandoned at once: queries then use only what is in memory, and ``lost`` tells
  the owner to add all memories again.
- The owner serialises all calls. Only ``commit`` may run beside readers.
"""

import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from memd.search import engine, ranking
from memd.search.engine import Engine, EngineBrokenError
from memd.search.query import Query, parse
from memd.search.ranking import Ranked, SearchDocument
from memd.text.words import search_text

CANDIDATES = 50  # candidates that are ranked at least; 100 gave no better results on two sets
FEW = 100  # changes that may stay in memory; after a restart they are read again
_MANY_WAITING = 1_000  # that may stay while a directory is indexed for the first time

Fingerprint = tuple[int, int, int]
Skip = Callable[[str], bool]  # returns whether a path is left out
_Change = tuple[SearchDocument, int] | None  # a document and its mark, None for a removal


class Entry(Struct, frozen=True):
    """The searched parts of one memory; ``path`` is its key."""

    path: str
    fingerprint: Fingerprint
    mtime_ns: int
    name: str
    description: str
    type: str
    body: str


class Batch(Struct, frozen=True):
    """Changes to commit, and the engine to commit them to."""

    engine: Engine
    changes: Mapping[str, _Change]


def skip_nothing(path: str) -> bool:  # noqa: ARG001 - the shape of a predicate
    """Skip no path."""
    return False


class Index:
    """An index on disk in ``folder``, or only in memory for ``None``.

    More than ``few`` changes in memory are committed.
    """

    def __init__(self, folder: str | None, *, few: int = FEW) -> None:
        self._folder = folder  # None also once a commit failed
        self._few = few
        self._engine: Engine | None = None  # None while all entries are in memory
        self._waiting: dict[str, _Change] = {}  # by path, changes that the engine does not have
        # How many of the waiting documents have a word, and those that are not counted yet. They
        # are only when a prompt asks: it was a quarter of the time that a first indexing takes.
        self._holders: Counter[str] = Counter()
        self._uncounted: dict[str, SearchDocument] = {}
        self._notes: list[str] = []  # sentences for a user, until ``notes`` returns them
        self._lost_entries = False  # whether all entries have to be added again
        self._committing = threading.Lock()  # held while a batch is written
        self._open_batch: Batch | None = None  # between ``batch`` and ``adopt`` or ``give_back``
        self._is_opened = False

    @property
    def count(self) -> int:
        """The approximate number of entries; those just replaced may count twice."""
        waiting = sum(change is not None for change in self._waiting.values())
        return waiting + (0 if self._engine is None else self._engine.count)

    def holders(self, word: str) -> int:
        """Return approximately how many entries have a word."""
        committed = 0
        if self._engine is not None:
            try:
                committed = self._engine.holders(word)
            except EngineBrokenError as error:
                self._abandon_engine(error)
        for document in self._uncounted.values():
            self._holders.update(_distinct_words(document))
        self._uncounted.clear()
        return self._holders[word] + committed

    def reconcile(self, known: Mapping[str, Fingerprint]) -> list[str]:
        """Remove entries that are not ``known``; return the known paths that have to be added.

        ``known`` are all memories of the directory with their fingerprints.
        """
        self._open()
        # By mark, the path of each version that the index does not have.
        missing = {_version_mark(path, fingerprint): path for path, fingerprint in known.items()}
        committed: dict[int, Any] = {}  # by mark, the engine's address of a version
        removed_paths: list[str] = []
        try:
            if self._engine is not None:
                committed = self._engine.versions()
                outdated = committed.keys() - missing
                removed_paths = [self._engine.path(committed[mark]) for mark in outdated]
        except EngineBrokenError as error:
            self._abandon_engine(error)
            committed = {}
        for path, change in list(self._waiting.items()):
            if change is None or change[1] not in missing:
                self.remove((path,))  # also hides it if a batch under way has it
            else:
                del missing[change[1]]
        for mark in committed:
            missing.pop(mark, None)
        self.remove(path for path in removed_paths if path not in self._waiting)
        return list(missing.values())

    def update(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those of the same path."""
        for entry in entries:
            self._forget(entry.path)
            document = analyse(entry)
            self._waiting[entry.path] = (document, _version_mark(entry.path, entry.fingerprint))
            self._uncounted[entry.path] = document

    def remove(self, paths: Iterable[str]) -> None:
        """Remove entries; unknown paths are ignored."""
        for path in paths:
            self._forget(path)
            if self._engine is not None:
                self._waiting[path] = None  # hides the engine's version

    def _forget(self, path: str) -> None:
        """Remove the waiting change of a path, if there is one, and what was counted of it."""
        change = self._waiting.pop(path, None)
        was_counted = self._uncounted.pop(path, None) is None
        if change is not None and was_counted:
            self._holders.subtract(_distinct_words(change[0]))

    def rank(
        self, prompt: str, limit: int, skip: Skip = skip_nothing, *, floor: bool = True
    ) -> tuple[Ranked, ...]:
        """Return the memories that match a prompt, the best first, and why some are cut.

        At most ``limit`` are not cut. Paths for which ``skip`` is true are left out. Without
        ``floor`` no memory is cut for a low score.
        """
        query = parse(prompt)
        candidates = self._candidates(query, max(CANDIDATES, limit), skip)
        return ranking.rank(query, self, candidates, limit, floor=floor)

    def lost(self) -> bool:
        """Return whether entries were lost since the last call; then all have to be added again."""
        lost_entries, self._lost_entries = self._lost_entries, False
        return lost_entries

    def notes(self) -> tuple[str, ...]:
        """Return sentences for a user about problems since the last call."""
        notes, self._notes = tuple(self._notes), []
        return notes

    def is_due(self, *, more: bool) -> bool:
        """Return whether to commit now; ``more`` says that more changes will follow."""
        most_waiting = _MANY_WAITING if more else self._few
        has_folder = self._folder is not None
        return len(self._waiting) > most_waiting and has_folder and not self.is_busy

    def batch(self, *, more: bool) -> Batch | None:
        """Return the changes to commit, ``None`` if none is due or a batch is under way."""
        if self._folder is None or not self.is_due(more=more):
            return None
        if self._engine is None:
            try:
                self._engine = Engine(self._folder, new=True)
            except EngineBrokenError as error:
                self._stop_committing(error)
                return None
        self._open_batch = Batch(self._engine, dict(self._waiting))
        return self._open_batch

    def commit(self, batch: Batch) -> None:
        """Write a batch to the disk; call ``adopt`` afterwards. Other threads may read."""
        with self._committing:
            if self._engine is batch.engine:
                try:
                    batch.engine.write(batch.changes)
                except EngineBrokenError as error:
                    self._stop_committing(error)

    def adopt(self, batch: Batch) -> None:
        """Read a committed batch from the engine, except entries that changed since."""
        self.give_back(batch)
        if self._engine is not batch.engine or self._folder is None:
            return
        try:
            batch.engine.reload()
        except EngineBrokenError as error:
            self._abandon_engine(error)
            return
        for path, change in batch.changes.items():
            if path in self._waiting and self._waiting[path] is change:
                del self._waiting[path]
        self._holders.clear()
        self._uncounted = {path: change[0] for path, change in self._waiting.items() if change}

    def give_back(self, batch: Batch) -> None:
        """End a batch, unless another worker has begun another one since."""
        if self._open_batch is batch:
            self._open_batch = None

    def _open(self) -> None:
        """Open an earlier process's engine. Slow, so it is not done in the constructor."""
        if not self._is_opened and self._folder is not None and engine.exists(self._folder):
            try:
                self._engine = Engine(self._folder)
            except EngineBrokenError as error:
                self._notes.append(_note_about(error))
        self._is_opened = True

    @property
    def is_busy(self) -> bool:
        """Whether a commit is under way."""
        return self._open_batch is not None

    def close(self) -> None:
        """Close the engine after a commit under way has ended."""
        with self._committing:
            self._engine = None

    def _candidates(self, query: Query, most: int, skip: Skip) -> list[SearchDocument]:
        """Return all waiting documents and the engine's ``most`` best ones for a query.

        The engine is asked again for more until enough remain that are neither skipped nor hidden.
        """
        weights = ranking.word_weights(query)
        waiting = [
            change[0]
            for path, change in self._waiting.items()
            if change is not None and not skip(path)
        ]
        if self._engine is None or not weights:
            return waiting
        size = most
        visible: list[SearchDocument] = []
        try:
            while True:
                proposed = self._engine.propose(weights, size)
                visible = [
                    document
                    for document in proposed
                    if document.path not in self._waiting and not skip(document.path)
                ]
                if len(visible) >= most or len(proposed) < size:
                    break
                size *= 4
        except EngineBrokenError as error:
            self._abandon_engine(error)
            visible = []
        return waiting + visible[:most]

    def _stop_committing(self, error: Exception) -> None:
        """Commit no more; committed entries stay readable."""
        self._folder = None
        self._notes.append(_note_about(error))

    def _abandon_engine(self, error: Exception) -> None:
        """Abandon the engine, so that the owner adds all entries again."""
        self._engine = None
        self._lost_entries = True
        self._notes.append(_note_about(error))


def _distinct_words(document: SearchDocument) -> frozenset[str]:
    """Return the words of a document, each once."""
    return frozenset(document.words.split())


def analyse(entry: Entry) -> SearchDocument:
    """Return an entry as a document for the ranker."""
    parts = (entry.name, entry.description, entry.type, entry.body)
    text, heading = search_text(entry.path, *parts)
    return SearchDocument(entry.path, entry.mtime_ns, text, heading)


def _version_mark(path: str, fingerprint: Fingerprint) -> int:
    """Return a 64-bit number that identifies one version of a memory."""
    version = zlib.crc32(repr(fingerprint).encode())
    return zlib.crc32(path.encode(errors="surrogateescape")) << 32 | version


def _note_about(error: Exception) -> str:
    """Return the note for a user about an error of the engine."""
    return f"the memories are indexed again or in memory: {error}"
