"""The index of one memory directory: an engine on disk, and what it has not committed yet.

Rules of this file
- What changed is in memory until the engine has committed it, and hides what the engine has of the
  same path. At any moment every memory is found, once, and as it is now.
- A directory with few memories has no files, and so does one whose folder cannot be written; a
  note says so.
- An engine that fails is given up at once: the query is answered from memory, and ``lost`` tells
  the owner to give everything again.
- Not for two threads at once: the owner serialises. ``commit`` alone may run beside readers.
"""

import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memd.core import limits
from memd.search import engine, ranking
from memd.search.engine import Engine, EngineBrokenError
from memd.search.meaning import Neighbours, Skip, VectorText
from memd.search.query import Query, parse
from memd.search.ranking import Ranked, SearchDocument
from memd.text.words import words

CANDIDATES = 50  # what is weighed at least: 100 found nothing more on two sets
FEW = 100  # changes that wait in memory; a start reads them again
_MANY = 1_000  # … while a directory is read for the first time

Fingerprint = tuple[int, int, int]
_Change = tuple[SearchDocument, int] | None  # a document and its mark, None for what is gone


@dataclass(frozen=True, slots=True)
class Entry:
    """What is searched of one memory; ``path`` is its key."""

    path: str
    fingerprint: Fingerprint
    mtime_ns: int
    name: str
    description: str
    type: str
    body: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes to be committed, and the engine that they go to."""

    engine: Engine
    changes: Mapping[str, _Change]


def nothing(path: str) -> bool:  # noqa: ARG001 - the shape of a predicate
    """Skip no path."""
    return False


class Index:
    """An index that lies on disk in ``folder``, with ``None`` in memory alone.

    ``few`` changes wait in memory before they are committed. With ``near`` it ranks by meaning too.
    """

    def __init__(
        self, folder: str | None, near: Neighbours | None = None, *, few: int = FEW
    ) -> None:
        self._folder = folder
        self._few = few
        self.near = near
        self._engine: Engine | None = None
        self._waiting: dict[str, _Change] = {}
        self._holders: Counter[str] = Counter()  # how many of what waits hold a word
        self._added = 0  # how many of what waits are documents
        self._notes: list[str] = []
        self._lost = False
        self._committing = threading.Lock()
        self._under_way: Batch | None = None  # taken and not yet adopted or given back
        self._opened = False

    @property
    def count(self) -> int:
        """How many entries there are, about: what was replaced lately may count twice."""
        return self._added + (0 if self._engine is None else self._engine.count)

    def holders(self, word: str) -> int:
        """Return about how many entries hold a word."""
        below = 0
        if self._engine is not None:
            try:
                below = self._engine.holders(word)
            except EngineBrokenError as error:
                self._give_up(error)
        return self._holders[word] + below

    def reconcile(self, known: Mapping[str, Fingerprint]) -> list[str]:
        """Forget what is not among ``known``; return the paths of those to be given anew."""
        self._open()
        missing = {mark(path, result): path for path, result in known.items()}
        committed: dict[int, Any] = {}
        gone: list[str] = []
        try:
            if self._engine is not None:
                committed = self._engine.versions()
                gone = [self._engine.path(committed[at]) for at in committed.keys() - missing]
        except EngineBrokenError as error:
            self._give_up(error)
            committed = {}
        for path, change in list(self._waiting.items()):
            if change is None or change[1] not in missing:
                self.remove((path,))  # a batch that is under way may hold it
            else:
                del missing[change[1]]
        for number in committed:
            missing.pop(number, None)
        self.remove(path for path in gone if path not in self._waiting)
        return list(missing.values())

    def update(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those of the same path."""
        for entry in entries:
            self._take_out(entry.path)
            document = analyse(entry)
            self._waiting[entry.path] = (document, mark(entry.path, entry.fingerprint))
            self._holders.update(frozenset(document.words.split()))
            self._added += 1

    def remove(self, paths: Iterable[str]) -> None:
        """Forget entries; unknown paths are ignored."""
        for path in paths:
            self._take_out(path)
            if self._engine is None:
                self._waiting.pop(path, None)
            else:
                self._waiting[path] = None  # hides what the engine has

    def rank(
        self, prompt: str, limit: int, skip: Skip = nothing, *, floor: bool = True
    ) -> tuple[Ranked, ...]:
        """Return what is weighed for a prompt, the best first, and why some of it is cut.

        At most ``limit`` are not cut. ``skip`` names paths that must not come back. Without
        ``floor`` nothing is cut for bringing too little.
        """
        query = parse(prompt)
        result = self._proposed(query, max(CANDIDATES, limit), skip)
        lexical = ranking.rank(query, self, result, limit, floor=floor)
        if self.near is None:
            return lexical
        return self.near.ranked(prompt, lexical, limit, skip, floor=floor)

    def lost(self) -> bool:
        """Say, once, that entries were lost: all must be given again."""
        lost, self._lost = self._lost, False
        return lost

    def notes(self) -> tuple[str, ...]:
        """Return, once each, what went wrong: sentences for a user."""
        notes, self._notes = tuple(self._notes), []
        return notes

    def is_due(self, *, more: bool) -> bool:
        """Whether a commit is worth while; ``more`` says that more is to come."""
        enough = len(self._waiting) > (_MANY if more else self._few)
        return enough and self._folder is not None and not self.is_busy

    def batch(self, *, more: bool) -> Batch | None:
        """Return what is to be committed, if that is due: one batch at a time, until ``adopt``."""
        if self._folder is None or not self.is_due(more=more):
            return None
        if self._engine is None:
            try:
                self._engine = Engine(self._folder, new=True)
            except EngineBrokenError as error:
                self._stop_committing(error)
                return None
        self._under_way = Batch(self._engine, dict(self._waiting))
        return self._under_way

    def commit(self, batch: Batch) -> None:
        """Write a batch to disk. May run beside readers; ``adopt`` is to follow."""
        with self._committing:
            if self._engine is batch.engine:
                try:
                    batch.engine.write(batch.changes)
                except EngineBrokenError as error:
                    self._stop_committing(error)

    def adopt(self, batch: Batch) -> None:
        """Read from the engine what was committed and has not changed since."""
        self.give_back(batch)
        if self._engine is not batch.engine or self._folder is None:
            return
        try:
            batch.engine.reload()
        except EngineBrokenError as error:
            self._give_up(error)
            return
        for path, change in batch.changes.items():
            if path in self._waiting and self._waiting[path] is change:
                self._take_out(path)
                del self._waiting[path]

    def give_back(self, batch: Batch) -> None:
        """Forget a batch that was taken; one that another worker took since stays."""
        if self._under_way is batch:
            self._under_way = None

    def _open(self) -> None:
        """Open what an earlier process committed; it takes a moment, so not when made."""
        if not self._opened and self._folder is not None and engine.exists(self._folder):
            try:
                self._engine = Engine(self._folder)
            except EngineBrokenError as error:
                self._notes.append(_sentence(error))
        self._opened = True

    @property
    def is_busy(self) -> bool:
        """Whether a commit is under way."""
        return self._under_way is not None

    def close(self) -> None:
        """End the use of files; a commit under way comes to its end."""
        with self._committing:
            self._engine = None

    def _proposed(self, query: Query, most: int, skip: Skip) -> list[SearchDocument]:
        weights = ranking.word_weights(query)
        result = [
            change[0]
            for path, change in self._waiting.items()
            if change is not None and not skip(path)
        ]
        if self._engine is None or not weights:
            return result
        asked_for = most
        taken: list[SearchDocument] = []
        try:
            while True:
                proposed = self._engine.propose(weights, asked_for)
                taken = [
                    document
                    for document in proposed
                    if document.path not in self._waiting and not skip(document.path)
                ]
                if len(taken) >= most or len(proposed) < asked_for:
                    break
                asked_for *= 4
        except EngineBrokenError as error:
            self._give_up(error)
            taken = []
        return result + taken[:most]

    def _take_out(self, path: str) -> None:
        """Take a document out of what is counted in memory."""
        change = self._waiting.get(path)
        if change is not None:
            self._added -= 1
            for word in frozenset(change[0].words.split()):
                self._holders[word] -= 1
                if not self._holders[word]:
                    del self._holders[word]

    def _stop_committing(self, error: Exception) -> None:
        """Keep in memory what is there; what was committed stays readable."""
        self._folder = None
        self._notes.append(_sentence(error))

    def _give_up(self, error: Exception) -> None:
        """Do without the engine: it is built anew from what the owner gives."""
        self._engine = None
        self._lost = True
        self._notes.append(_sentence(error))


def analyse(entry: Entry) -> SearchDocument:
    """Return an entry as the ranker sees it."""
    heading = _spaced(words(f"{entry.description}\n{entry.name}"))
    rest = words(f"{entry.type}\n{entry.path}\n{entry.body[: limits.MEMORY_BYTES]}")
    return SearchDocument(entry.path, entry.mtime_ns, f" {heading}{_spaced(rest)}", len(heading))


def text(entry: Entry) -> VectorText:
    """Return what a memory's vector is made of; a name beside a description only dilutes it."""
    parts = (entry.description or entry.name, entry.body)
    said = "\n".join(part for part in parts if part)
    return VectorText(entry.path, mark(entry.path, entry.fingerprint), said)


def mark(path: str, fingerprint: Fingerprint) -> int:
    """Return a number of 64 bits that tells one version of a memory from all others."""
    version = zlib.crc32(repr(fingerprint).encode())
    return zlib.crc32(path.encode(errors="surrogateescape")) << 32 | version


def _spaced(result: Iterable[str]) -> str:
    return "".join(f"{word} " for word in result)


def _sentence(error: Exception) -> str:
    return f"the memories are indexed again or in memory: {error}"
