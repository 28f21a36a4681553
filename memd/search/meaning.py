"""Ranking by meaning beside words: the model of the setting ``recall.semantic_model``.

Rules of this file
- Nothing is imported and no file is looked at before a folder is named, and then only in the
  background. A prompt costs the computing of its own vector and one look at all vectors; it never
  waits for the model, the disk or other vectors.
- A model that is missing, damaged or foreign, and libraries that are not installed, are a sentence
  for the user; ranking goes on by words. It is tried again when the setting changes.
- A vector belongs to a path, a version of it and a model. The file of vectors may be deleted.
- A memory that brings too few words, or none, needs a likeness of ``NEAR``: some memory is always
  the nearest. Where no memory passes the floor of ``ranking``, such a one is an answer only to a
  prompt that asks or begins a piece of work.
- A memory whose vector is not computed yet counts by its words alone, as if meaning agreed.
"""

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from memd.search.model_files import ModelUnusableError
from memd.search.ranking import BELOW_FLOOR, BEYOND_LIMIT, Ranked, answered

if TYPE_CHECKING:
    from memd.search.encoder import Encoder, Vectors

ROWS = 100_000  # vectors of a directory, two bytes a number; what is beyond is found by words
# Of the way from unrelated texts to the same text. Of the prompts that nothing helps with, those
# that ask came as near as 0.31; a floor of 0.4 loses what meaning alone finds.
_ASKS = re.compile(
    "[?\uff1f\u5417\u5462]"
)  # what is no question and has no word in common is let be
NEAR = 0.35

_NEAREST = 50  # memories that meaning proposes beside those that words propose
_MEANING = 0.4  # of the fused score; 0.35 to 0.5 differ by chance
_RELATIVE = 0.25  # of the best fused score
_SAVED = 500  # vectors that a crash may cost
_ON = "recall goes on by words"
_EXTRA = f"semantic ranking needs the extra memdir-daemon[semantic]; {_ON}"
_RELATIVE_PATH = f"the setting recall.semantic_model must be an absolute path; {_ON}"


class VectorText(NamedTuple):
    """What the vector of a memory is made of, and the mark of the memory's version."""

    path: str
    mark: int
    text: str


Read = Callable[[Sequence[str]], Sequence[VectorText]]
Known = Callable[[], Mapping[str, int]]
Skip = Callable[[str], bool]


class Meaning:
    """The model in force; for any thread. ``tell`` gets each new note, in whichever thread."""

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self._tell = tell
        self._folder = ""
        self._tried = ""
        self._lock = threading.Lock()
        self.model: Encoder | None = None  # when it is loaded; nobody waits for that

    def use(self, folder: str) -> bool:
        """Note which folder the settings name, "" for none; return whether there is work to do."""
        before = self.model
        if folder != self._folder:
            self._folder, self.model, self._tried = folder, None, ""
        return bool(folder) or before is not None  # what was learnt is to be let go

    def load(self) -> "Encoder | None":
        """Return the model that the settings name, tried once for each setting. Blocks."""
        with self._lock:
            folder = self._folder
            if folder != self._tried:
                model, note = _load(os.path.expanduser(folder))
                if folder == self._folder:  # else it was changed meanwhile
                    self._tried, self.model = folder, model
                    if note:
                        self._tell(note)
            return self.model

    def give_up(self, model: "Encoder", error: ModelUnusableError) -> None:
        """Stop using a model that failed at work."""
        if self.model is model:
            self.model = None
            self._tell(f"{error.sentence}; {_ON}")

    def cannot_keep(self, error: OSError) -> None:
        """Tell that vectors could not be read or written; they are used all the same."""
        self._tell(
            f"vectors are computed again after a restart: {error.filename}: {error.strerror}"
        )


class Neighbours:
    """The vectors of one directory, kept in the file ``path``. ``work`` runs beside the others."""

    def __init__(self, meaning: Meaning, path: str) -> None:
        self._meaning = meaning
        self._path = path
        self._lock = threading.Lock()  # never held while vectors are computed
        self._made_by: Encoder | None = None
        self._vectors: Vectors | None = None
        self._unread: dict[str, int] = {}  # versions that no vector could be made of

    def ranked(
        self, text: str, lexical: tuple[Ranked, ...], limit: int, skip: Skip, *, floor: bool
    ) -> tuple[Ranked, ...]:
        """Return what words and meaning weigh together; the order of the words without a model."""
        model, vectors = self._made_by, self._vectors
        if model is None or vectors is None or model is not self._meaning.model:
            return lexical
        if floor and not _ASKS.search(text) and not answered(lexical):
            return lexical  # meaning has no say: nothing to compute
        try:
            query = model.query(text)
        except ModelUnusableError as error:
            self._meaning.give_up(model, error)
            return lexical
        with self._lock:
            near = vectors.near(query, _NEAREST, [item.path for item in lexical], skip)
        likeness = {path: model.likeness(cosine, text) for path, cosine in near.items()}
        return fuse(lexical, likeness, limit, floor=floor) if near else lexical

    def work(self, known: Known, read: Read, most: int) -> bool:
        """Do one slice in the background; return whether more is left.

        The first slice loads the model and the kept vectors; each computes at most ``most`` vectors
        of what ``read`` returns for paths. ``known`` tells the versions of all memories, by path.
        Blocks. Raises what these two raise.
        """
        model = self._meaning.load()
        if model is None:
            self._made_by = self._vectors = None
            return False
        if model is not self._made_by or self._vectors is None:
            self._open(model)
        vectors, current = self._vectors, dict(islice(known().items(), ROWS))
        if vectors is None:
            return False
        with self._lock:
            for path in vectors.versions.keys() - current.keys():
                vectors.drop(path)
            missing = [
                path
                for path, mark in current.items()
                if vectors.versions.get(path) != mark and self._unread.get(path) != mark
            ]
        wanted = missing[:most]
        texts = [text for text in read(wanted) if current[text.path] == text.mark]
        # What cannot be read, or has changed again, is left until its version is another one.
        read_paths = {text.path for text in texts}
        self._unread |= {path: current[path] for path in wanted if path not in read_paths}
        if not texts:
            return len(missing) > most
        try:
            rows = model.vectors([text.text for text in texts])
        except ModelUnusableError as error:
            self._meaning.give_up(model, error)
            return False
        with self._lock:
            vectors.put(rows, {text.path: text.mark for text in texts})
            if len(missing) <= most or len(missing) % _SAVED < most:
                try:
                    vectors.save(self._path)
                except OSError as error:
                    self._meaning.cannot_keep(error)
        return len(missing) > most

    def _open(self, model: "Encoder") -> None:
        from memd.search.encoder import Vectors  # noqa: PLC0415 - numpy comes with the model

        vectors = Vectors(model)
        try:
            vectors.load(self._path)
        except OSError as error:
            if error.filename:  # else zipfile made it of what the file holds
                self._meaning.cannot_keep(error)
        self._made_by, self._vectors, self._unread = model, vectors, {}


def fuse(
    lexical: Sequence[Ranked], near: Mapping[str, float], limit: int, *, floor: bool = True
) -> tuple[Ranked, ...]:
    """Return what both opinions weigh, the best first, and why some of it is cut.

    ``lexical`` is the order by words; ``near`` holds the likeness of every memory in it that has a
    vector, and of the nearest ones beside it. Each opinion counts as a share of its best, which was
    better than reciprocal ranks when measured (0.759 and 0.742 of recall@5).
    """
    known = {ranked.path for ranked in lexical}
    beside = sorted(path for path, result in near.items() if path not in known and result >= NEAR)
    pool = (*lexical, *(Ranked(path, 0.0, (), {}, BELOW_FLOOR) for path in beside))
    strongest = max((ranked.score for ranked in pool), default=0.0) or 1.0
    nearest = max(near.values(), default=0.0)
    fused = [_fused(ranked, near.get(ranked.path), strongest, nearest) for ranked in pool]
    fused.sort(key=lambda ranked: -ranked.score)  # stable: equal ones keep the order by words
    result: list[Ranked] = []
    room = limit
    for ranked in fused:
        cut = ""
        far = floor and ranked.score < _RELATIVE * fused[0].score
        if far or (ranked.cut == BELOW_FLOOR and near.get(ranked.path, -1.0) < NEAR):
            cut = BELOW_FLOOR
        elif not room:
            cut = BEYOND_LIMIT
        else:
            room -= 1
        result.append(replace(ranked, cut=cut))
    return tuple(result)


def _fused(ranked: Ranked, likeness: float | None, strongest: float, nearest: float) -> Ranked:
    words = ranked.score / strongest
    meaning = words if likeness is None else max(likeness, 0.0) / nearest if nearest > 0 else 0.0
    parts = {
        "lexical": round((1 - _MEANING) * words, 6),
        "semantic": round(_MEANING * meaning, 6),
    }
    return replace(ranked, score=round(sum(parts.values()), 6), parts=parts)


def _load(folder: str) -> "tuple[Encoder | None, str]":
    if not os.path.isabs(folder):
        return None, _RELATIVE_PATH
    try:
        # Three libraries, 80 ms and 40 MB, for those who name a model.
        from memd.search.encoder import Encoder  # noqa: PLC0415 - lazy start-up, see above
    except ImportError:
        return None, _EXTRA
    try:
        return Encoder(folder), ""
    except ModelUnusableError as error:
        return None, f"{error.sentence}; {_ON}"
