"""The index of one memory directory: what was committed to disk, and over it what changed since.

Rules of this file
- A path in the upper part hides the one below; so does a path that was removed.
- The upper part is folded into the lower in slices; at any moment between two slices every memory
  is found, once, and as it is now. A fold that fails loses nothing: what it took is still above.
- A small directory stays in memory alone and has no files. So does any whose folder cannot be
  written; a note says so.
- A lower part that turns out to be damaged is given up at once: the query is answered from the
  upper part, and ``lost`` tells the owner to give everything again.
- Not for two threads at once: the owner serialises. What a fold makes durable it does in a thread
  of its own, which nobody waits for longer than 5 ms.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Thread

from memd.state import scoring
from memd.state.asking import Asked
from memd.state.scoring import Document
from memd.state.search import (
    Entry,
    Fingerprint,
    Ordering,
    SearchIndex,
    Skip,
    candidates,
)
from memd.state.stored import Broken, Changing, Stored, same

SMALL = 50  # memories that stay in memory; a start reads them again, half a millisecond each
_FOLD = 2_000  # changes that wait for a fold where there is a lower part already,
_FEW = 100  # and so many where no more are to come: both parts propose, and each is weighed
_BATCH = 4_000  # memories of one fold; they stay in memory until it is committed
_WAIT_SECONDS = 0.005

_Kept = tuple[Document, Fingerprint] | None


@dataclass(slots=True)
class _Fold:
    """A fold under way: ``taken`` is what it puts below, ``None`` for what is gone.

    ``clearing`` are the paths that are below and still above, once it is sealed and adopted.
    """

    lower: Stored
    change: Changing
    waiting: list[str]
    taken: dict[str, _Kept] = field(default_factory=dict)
    sealing: Thread | None = None
    failure: list[Exception] = field(default_factory=list)
    clearing: list[str] | None = None

    def seal(self) -> None:
        """Make it durable; what goes wrong is kept for whoever asks next."""
        try:
            self.change.seal()
        except Broken as error:
            self.failure.append(error)


class Index(Ordering):
    """An index that may lie on disk, in ``folder``; ``small`` memories stay in memory."""

    def __init__(self, folder: str | None, *, small: int = SMALL, batch: int = _BATCH) -> None:
        self._folder = folder
        self._small = small
        self.eager = False  # whether all that is known has been given: then little may wait
        self._batch = batch
        self._upper = SearchIndex()
        self._hidden: dict[str, bool] = {}  # path → whether the lower part has it too
        self._twice = 0  # how many of these the lower part has
        self._fold: _Fold | None = None
        self._notes: list[str] = []
        self._lost = False
        self._lower: Stored | None = None
        if folder is not None:
            try:
                self._lower = Stored.open(folder)
            except Broken as error:
                self._notes.append(_sentence(error))

    @property
    def count(self) -> int:
        """How many entries there are."""
        below = 0 if self._lower is None else self._lower.count - self._twice
        return self._upper.count + below

    @property
    def pending(self) -> bool:
        """Whether a fold is under way or worth while."""
        if self._fold is not None:
            return True
        enough = self._small
        if self._lower is not None:
            enough = min(enough, _FEW if self.eager else _FOLD)
        return self._folder is not None and len(self._hidden) > enough

    def holders(self, key: int) -> int:
        """Return about how many entries hold a word: what was replaced lately may count twice."""
        below = 0
        if self._lower is not None:
            try:
                below = self._lower.holders(key)
            except Broken as error:
                self._give_up(error)
        return min(self._upper.holders(key) + below, self.count)

    def known(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprint of every entry, by path. Reads all of the lower part."""
        found: dict[str, Fingerprint] = {}
        if self._lower is not None:
            try:
                found = self._lower.known()
            except Broken as error:
                self._give_up(error)
        for path in self._hidden:
            found.pop(path, None)
        found.update(self._upper.known())
        return found

    def has(self, path: str, fingerprint: Fingerprint) -> bool:
        """Say whether an entry is there with this fingerprint."""
        if path in self._hidden or self._lower is None:
            return self._upper.has(path, fingerprint)
        try:
            return same(self._lower.fingerprint(path), fingerprint)
        except Broken as error:
            self._give_up(error)
            return False

    def update(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those whose fingerprint changed."""
        for entry in entries:
            if not self.has(entry.path, entry.fingerprint):
                self._hide(entry.path)
                self._upper.update((entry,))

    def remove(self, paths: Iterable[str]) -> None:
        """Forget entries; unknown paths are ignored."""
        for path in paths:
            self._hide(path)
            self._upper.remove((path,))
            if not self._hidden[path] and (self._fold is None or path not in self._fold.taken):
                self._show(path)

    @property
    def sealing(self) -> bool:
        """Whether a fold only waits for the disk."""
        fold = self._fold
        return fold is not None and fold.sealing is not None and fold.sealing.is_alive()

    def fold(self, most: int) -> bool:
        """Do one slice of a fold, of so many entries at most; return whether more is to be done."""
        if self.pending:
            try:
                self._step(self._fold or self._begin(), most)
            except Broken as error:
                self._stop_folding(error)
        return self.pending

    def lost(self) -> bool:
        """Say, once, that entries were lost: all must be given again."""
        lost, self._lost = self._lost, False
        return lost

    def notes(self) -> tuple[str, ...]:
        """Return, once each, what went wrong: sentences for a user."""
        notes, self._notes = tuple(self._notes), []
        return notes

    def close(self) -> None:
        """End the use of files; a fold that is being made durable comes to its end."""
        if self._fold is not None and self._fold.sealing is not None:
            self._fold.sealing.join()
        self._fold = None
        if self._lower is not None:
            self._lower.close()
            self._lower = None

    def _proposed(self, asked: Asked, limit: int, skip: Skip) -> list[Document]:
        weights = scoring.terms(asked, self)
        most = candidates(limit)
        found = self._upper.propose(weights, most, skip)
        if self._lower is not None:
            hidden = self._hidden
            try:
                found += self._lower.propose(
                    weights, most, lambda path: path in hidden or skip(path)
                )
            except Broken as error:
                self._give_up(error)
        return found

    def _begin(self) -> _Fold:
        if self._lower is None:
            self._lower = Stored.create(str(self._folder))
        waiting = list(islice(self._hidden, self._batch))
        self._fold = _Fold(self._lower, self._lower.change(), waiting)
        return self._fold

    def _step(self, fold: _Fold, most: int) -> None:
        if fold.waiting:
            for path in _taken(fold.waiting, most):
                if path in self._hidden:
                    fold.taken[path] = kept = self._upper.entry(path)
                    fold.change.put(path, kept)
        elif fold.sealing is None:
            fold.sealing = Thread(target=fold.seal, name="index")
            fold.sealing.start()
        elif fold.sealing.is_alive():
            fold.sealing.join(_WAIT_SECONDS)
        elif fold.failure:
            raise fold.failure[0]
        elif fold.clearing is None:
            self._adopt(fold)
        else:
            self._clear(fold, _taken(fold.clearing, most))

    def _adopt(self, fold: _Fold) -> None:
        """See what was sealed; it stays hidden until it leaves the upper part."""
        try:
            fold.lower.adopt()
        except Broken as error:
            self._give_up(error)
            return
        for path, kept in fold.taken.items():
            self._mark(path, below=kept is not None)
        fold.clearing = list(fold.taken)

    def _clear(self, fold: _Fold, paths: Sequence[str]) -> None:
        """Take out of the upper part what is below as it is above."""
        for path in paths:
            taken, now = fold.taken[path], self._upper.entry(path)
            if taken is None and now is None:
                self._show(path)
            elif taken is not None and now is not None and taken[0] is now[0]:
                self._upper.remove((path,))
                self._show(path)
        if not fold.clearing:
            self._fold = None

    def _hide(self, path: str) -> None:
        """Let a path count in the upper part alone."""
        if path not in self._hidden:
            below = False
            if self._lower is not None:
                try:
                    below = self._lower.fingerprint(path) is not None
                except Broken as error:
                    self._give_up(error)
            self._mark(path, below=below)

    def _show(self, path: str) -> None:
        self._twice -= self._hidden.pop(path)

    def _mark(self, path: str, *, below: bool) -> None:
        self._twice += below - self._hidden.get(path, False)
        self._hidden[path] = below

    def _stop_folding(self, error: Exception) -> None:
        """Keep in memory what is there; what was committed stays readable."""
        self._fold = self._folder = None
        self._notes.append(_sentence(error))

    def _give_up(self, error: Exception) -> None:
        """Do without the lower part: it is built anew from what the owner gives."""
        if self._fold is not None and self._fold.sealing is not None:
            self._fold.sealing.join()
        if self._lower is not None:
            self._lower.close()
        self._fold = self._lower = None
        self._hidden = dict.fromkeys(self._upper.known(), False)
        self._twice = 0
        self._lost = True
        self._notes.append(_sentence(error))


def _taken(paths: list[str], most: int) -> list[str]:
    """Take so many paths out, from the end."""
    found = paths[-most:]
    del paths[-most:]
    return found


def _sentence(error: Exception) -> str:
    return f"the memories are indexed again or in memory: {error}"
