"""The ranker of one directory that asks two: one by words, and the model by meaning.

Rules of this file
- Without a loaded model, or before the kept vectors are read, it answers exactly as the ranker by
  words that it wraps. A prompt costs the computing of its own vector and one look at all vectors;
  it never waits for the model, the disk or other vectors.
- ``work`` does the rest in the background, in slices. It runs beside prompts: it holds the owner's
  lock only where it asks what there is, and ``_lock``, never held while computing, guards the rest.
- A vector belongs to a path, a fingerprint and a model. Kept vectors are read after a restart, so
  nothing is computed twice; their file may be deleted at any time.
- A directory has at most ``ROWS`` vectors; what is beyond is found by its words.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING

from memd.state import scoring
from memd.state.fusion import answered, fuse
from memd.state.meaning import Meaning
from memd.state.model_files import ModelUnusableError
from memd.state.scoring import Ranked
from memd.state.search import Entry, Fingerprint, Ranker, Skip, nothing
from memd.state.vectors import MARK_BYTES, Kept, VectorFile
from memd.state.words import opens

if TYPE_CHECKING:
    from memd.state.embedding import Model, Table

ROWS = 100_000  # 38 MB at 384 numbers a vector, and some 20 MB for what tells them apart
NEAREST = 50  # memories that meaning proposes beside those that words propose

Read = Callable[[Sequence[str]], Iterable[Entry]]


class Fused:
    """The entries of one directory, ranked by words and by meaning; a ``Ranker``.

    ``path`` is the file in which the vectors are kept, ``rows`` how many there may be. For one
    thread at a time, like any ranker, but for ``work``.
    """

    def __init__(self, lexical: Ranker, meaning: Meaning, path: str, rows: int = ROWS) -> None:
        self._lexical = lexical
        self._meaning = meaning
        self._path = path
        self._rows = rows
        self._lock = threading.Lock()
        self._made_by: Model | None = None
        self._table: Table | None = None
        self._missing: dict[str, Fingerprint] = {}  # what is to be computed, the oldest wish first

    def known(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprint of every entry, by path."""
        return self._lexical.known()

    def has(self, path: str, fingerprint: Fingerprint) -> bool:
        """Say whether an entry is there with this fingerprint."""
        return self._lexical.has(path, fingerprint)

    def update(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those whose fingerprint changed."""
        entries = tuple(entries)
        has = self._lexical.has
        changed = [entry for entry in entries if not has(entry.path, entry.fingerprint)]
        self._lexical.update(entries)
        with self._lock:
            for entry in changed if self._table is not None else ():
                self._forget(entry.path)
                if len(self._table or ()) + len(self._missing) < self._rows:
                    self._missing[entry.path] = entry.fingerprint

    def remove(self, paths: Iterable[str]) -> None:
        """Forget entries; unknown paths are ignored."""
        paths = tuple(paths)
        self._lexical.remove(paths)
        with self._lock:
            for path in paths:
                self._forget(path)

    def rank(
        self,
        query: str,
        limit: int,
        skip: Skip = nothing,
        *,
        floor: bool = True,
        today: date | None = None,
    ) -> tuple[Ranked, ...]:
        """Return the entries that fit best, the best first; without ``floor`` all that match.

        ``skip`` names paths that must not come back; they still count for rarity. ``today`` is what
        "yesterday" and "last May" are told from.
        """
        if self._ready() is None:
            return self._lexical.rank(query, limit, skip, floor=floor, today=today)
        if floor:
            return answered(self.explain(query, limit, skip, today=today))
        pool = max(scoring.CANDIDATES, limit)
        lexical = self._lexical.rank(query, pool, skip, floor=False, today=today)
        return answered(fuse(lexical, self._near(query, lexical, skip), limit, floor=False))

    def explain(
        self, query: str, limit: int, skip: Skip = nothing, *, today: date | None = None
    ) -> tuple[Ranked, ...]:
        """Return what ``rank`` weighs, the best first: the answer and what was cut, and why."""
        lexical = self._lexical.explain(query, limit, skip, today=today)
        asks = opens(query)
        if not asks and not answered(lexical):
            return lexical  # meaning has no say: nothing to compute
        return fuse(lexical, self._near(query, lexical, skip), limit, opens=asks)

    def work(self, read: Read, most: int, lock: AbstractContextManager[object]) -> bool:
        """Do one slice of what is to be done in the background; return whether more is left.

        The first slice loads the model and the kept vectors; each computes at most ``most`` vectors
        of what ``read`` returns for paths. ``lock`` is the owner's lock of this ranker. Blocks for
        milliseconds a vector: call it in a worker thread, without that lock. Raises what ``read``
        raises; that vectors cannot be kept is a note of ``Meaning``.
        """
        model = self._meaning.load()
        if model is None:
            with self._lock:
                self._made_by, self._table, self._missing = None, None, {}
            return False
        if model is not self._made_by:
            self._open(model, lock)
        with self._lock:
            wanted = dict(islice(self._missing.items(), most))
        if wanted:
            self._learn(model, wanted, read)
        with self._lock:
            return bool(self._missing) and self._ready() is not None

    def _ready(self) -> "Model | None":
        model = self._meaning.model
        return model if model is self._made_by else None

    def _near(self, query: str, lexical: Sequence[Ranked], skip: Skip) -> Mapping[str, float]:
        """Return how near memories are to a prompt; none without a model."""
        with self._lock:
            model, table = self._made_by, self._table
        if model is None or table is None or model is not self._meaning.model:
            return {}
        try:
            vector = model.query(query)
        except ModelUnusableError as error:
            self._meaning.give_up(model, error.sentence)
            return {}
        with self._lock:
            near = table.near(vector, NEAREST, [item.path for item in lexical], skip)
        return {path: model.likeness(cosine, query) for path, cosine in near.items()}

    def _open(self, model: "Model", lock: AbstractContextManager[object]) -> None:
        """Take over the kept vectors that still belong to a memory; the others are missing."""
        # Only with a model, whose libraries this needs.
        from memd.state.embedding import Table  # noqa: PLC0415 - lazy start-up, see above

        kept: Mapping[str, Kept] = {}
        try:
            kept = self._file(model).read()
        except OSError as error:
            self._meaning.cannot_keep(error)
        table = Table(model.width)
        with lock:
            known = self._lexical.known()
            fitting = {
                path: item
                for path, item in kept.items()
                if path in known and item.mark == _mark(known[path])
            }
            missing = ((path, mark) for path, mark in known.items() if path not in fitting)
            with self._lock:
                table.put(dict(islice(fitting.items(), self._rows)))
                self._missing = dict(islice(missing, self._rows - len(table)))
                self._made_by, self._table = model, table

    def _learn(self, model: "Model", wanted: Mapping[str, Fingerprint], read: Read) -> None:
        """Compute and keep vectors; what is gone or has changed again meanwhile is left out."""
        entries = [
            entry for entry in read(tuple(wanted)) if wanted.get(entry.path) == entry.fingerprint
        ]
        try:
            vectors = model.vectors([_text(entry) for entry in entries])
        except ModelUnusableError as error:
            self._meaning.give_up(model, error.sentence)
            return
        made = {
            entry.path: Kept(_mark(entry.fingerprint), *vector)
            for entry, vector in zip(entries, vectors, strict=True)
        }
        with self._lock:
            if self._table is None or model is not self._made_by:
                return
            settled = [path for path, mark in wanted.items() if self._missing.get(path) == mark]
            for path in settled:
                del self._missing[path]
            fresh = {path: made[path] for path in settled if path in made}
            self._table.put(fresh)
        try:
            self._file(model).append(fresh)
        except OSError as error:
            self._meaning.cannot_keep(error)

    def _forget(self, path: str) -> None:
        self._missing.pop(path, None)
        if self._table is not None:
            self._table.drop(path)

    def _file(self, model: "Model") -> VectorFile:
        return VectorFile(self._path, model.identity, model.width)


def place(folder: str, directory: str) -> str:
    """Return the path of a directory's vectors below a folder of the state directory."""
    name = hashlib.sha256(directory.encode(errors="surrogateescape")).hexdigest()
    return os.path.join(folder, f"{name[:32]}.vectors")


def _mark(fingerprint: Fingerprint) -> bytes:
    text = ",".join(map(str, fingerprint))
    return hashlib.blake2b(text.encode(), digest_size=MARK_BYTES).digest()


def _text(entry: Entry) -> str:
    """Return what a vector is made of; a name beside a description only dilutes it."""
    return "\n".join(part for part in (entry.description or entry.name, entry.body) if part)
