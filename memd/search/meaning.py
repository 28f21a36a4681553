"""Rank memories by meaning besides words, with the model of ``recall.semantic_model``.

Rules of this file
- Nothing is imported and no file is read before a folder is configured, and then only in the
  background. A prompt costs one vector and a comparison with all vectors; it never waits for the
  model, the disk or other vectors.
- A missing, damaged or unsuitable model, or a missing library, is reported to the user, and ranking
  uses only words. The model is tried again when the setting changes.
- A vector belongs to a path, its version and a model. The file of vectors may be deleted.
- A memory below the floor of ``ranking`` needs a likeness of ``NEAR``, since some memory is always
  the nearest. If no memory passes the floor, meaning counts only for a prompt that is a question.
- A memory without a vector yet is ranked as if its meaning were as near as its words.
"""

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from memd.core.extras import install_command
from memd.search.model_files import ModelUnusableError
from memd.search.ranking import BELOW_FLOOR, BEYOND_LIMIT, Ranked, answered

if TYPE_CHECKING:
    from memd.search.encoder import Encoder, Vectors

MOST_VECTORS = 100_000  # of a directory; further memories are found only by words
_QUESTION_MARK = re.compile("[?\uff1f\u5417\u5462]")
# The least likeness (0: unrelated, 1: the same). Questions that no memory answers reached 0.31; a
# floor of 0.4 loses memories that only meaning finds.
NEAR = 0.35

_MOST_NEAREST = 50  # memories that are found by meaning, besides those found by words
_MEANING_SHARE = 0.4  # of meaning in the fused score; 0.35 to 0.5 made no clear difference
_LEAST_SHARE_OF_BEST = 0.25  # a memory with less of the best fused score is cut
_SAVED_AFTER = 500  # vectors are saved after so many, so that a crash loses no more
_FALLBACK = "recall goes on by words"
_PATH_IS_RELATIVE = f"the setting recall.semantic_model must be an absolute path; {_FALLBACK}"


class VectorText(NamedTuple):
    """The text for a memory's vector, and the mark of the memory's version."""

    path: str
    mark: int
    text: str


Read = Callable[[Sequence[str]], Sequence[VectorText]]  # returns the texts of some paths
Known = Callable[[], Mapping[str, int]]  # returns the mark of each memory's version by path
Skip = Callable[[str], bool]  # returns whether a path is left out


class Meaning:
    """Loads the configured model once; thread-safe. ``tell`` gets each note, in any thread."""

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self._tell = tell
        self._folder = ""  # as configured
        self._tried_folder = ""  # whose model was loaded, or could not be
        self._lock = threading.Lock()  # held while a model is loaded
        self.model: Encoder | None = None  # None until it is loaded

    def use(self, folder: str) -> bool:
        """Set the configured folder, "" for none; return whether there is background work."""
        old_model = self.model
        if folder != self._folder:
            self._folder, self.model, self._tried_folder = folder, None, ""
        return bool(folder) or old_model is not None  # without a folder the old vectors are dropped

    def load(self) -> "Encoder | None":
        """Return the configured model, ``None`` without a usable one. Blocks.

        Each folder is tried once.
        """
        with self._lock:
            folder = self._folder
            if folder != self._tried_folder:
                model, note = _load(os.path.expanduser(folder))
                if folder == self._folder:  # it was not changed meanwhile
                    self._tried_folder, self.model = folder, model
                    if note:
                        self._tell(note)
            return self.model

    def give_up(self, model: "Encoder", error: ModelUnusableError) -> None:
        """Stop using a model that failed, and report it."""
        if self.model is model:
            self.model = None
            self._tell(f"{error.sentence}; {_FALLBACK}")

    def report_unsaved(self, error: OSError) -> None:
        """Report that the file of vectors could not be read or written."""
        self._tell(
            f"vectors are computed again after a restart: {error.filename}: {error.strerror}"
        )


class Neighbours:
    """The vectors of one directory, stored in the file ``path``.

    ``work`` may run while another thread calls ``ranked``.
    """

    def __init__(self, meaning: Meaning, path: str) -> None:
        self._meaning = meaning
        self._path = path
        self._lock = threading.Lock()  # guards the vectors; not held while some are computed
        self._model: Encoder | None = None  # the model of the vectors
        self._vectors: Vectors | None = None
        self._unreadable: dict[str, int] = {}  # by path, marks of texts that could not be read

    def ranked(
        self, text: str, lexical: tuple[Ranked, ...], limit: int, skip: Skip, *, floor: bool
    ) -> tuple[Ranked, ...]:
        """Return the ranking by words, with scores for meaning added if there is a model.

        ``lexical`` is also returned if no memory passes the floor and the text is no question.
        """
        model, vectors = self._model, self._vectors
        if model is None or vectors is None or model is not self._meaning.model:
            return lexical
        is_question = _QUESTION_MARK.search(text) is not None
        if floor and not is_question and not answered(lexical):
            return lexical
        try:
            query = model.query(text)
        except ModelUnusableError as error:
            self._meaning.give_up(model, error)
            return lexical
        with self._lock:
            cosines = vectors.near(query, _MOST_NEAREST, [item.path for item in lexical], skip)
        likeness = {path: model.likeness(cosine, text) for path, cosine in cosines.items()}
        return fuse(lexical, likeness, limit, floor=floor) if cosines else lexical

    def work(self, find_versions: Known, read_texts: Read, most_texts: int) -> bool:
        """Compute up to ``most_texts`` missing vectors; return whether more are left.

        The first call loads the model and the saved vectors. ``find_versions`` returns the versions
        of all memories by path, ``read_texts`` the texts of some paths. Blocks. Raises the errors
        of these two.
        """
        model = self._meaning.load()
        if model is None:
            self._model = self._vectors = None
            return False
        if model is not self._model or self._vectors is None:
            self._open(model)
        vectors, current = self._vectors, dict(islice(find_versions().items(), MOST_VECTORS))
        if vectors is None:
            return False
        with self._lock:
            for path in vectors.versions.keys() - current.keys():
                vectors.drop(path)
            missing = [
                path
                for path, mark in current.items()
                if vectors.versions.get(path) != mark and self._unreadable.get(path) != mark
            ]
        paths = missing[:most_texts]
        texts = [text for text in read_texts(paths) if current[text.path] == text.mark]
        # A version that cannot be read or was replaced meanwhile is not tried again.
        read_paths = {text.path for text in texts}
        self._unreadable |= {path: current[path] for path in paths if path not in read_paths}
        if not texts:
            return len(missing) > most_texts
        try:
            rows = model.vectors([text.text for text in texts])
        except ModelUnusableError as error:
            self._meaning.give_up(model, error)
            return False
        with self._lock:
            vectors.put(rows, {text.path: text.mark for text in texts})
            is_last = len(missing) <= most_texts
            if is_last or len(missing) % _SAVED_AFTER < most_texts:
                try:
                    vectors.save(self._path)
                except OSError as error:
                    self._meaning.report_unsaved(error)
        return len(missing) > most_texts

    def _open(self, model: "Encoder") -> None:
        """Load the saved vectors of a model; without a usable file begin with none."""
        from memd.search.encoder import Vectors  # noqa: PLC0415 - numpy comes with the model

        vectors = Vectors(model)
        try:
            vectors.load(self._path)
        except OSError as error:
            if error.filename:  # without a name, zipfile raised it for the file's content
                self._meaning.report_unsaved(error)
        self._model, self._vectors, self._unreadable = model, vectors, {}


def fuse(
    lexical: Sequence[Ranked], near: Mapping[str, float], limit: int, *, floor: bool = True
) -> tuple[Ranked, ...]:
    """Return the ranking by words and meaning together, with the reason for each cut memory.

    ``lexical`` is the ranking by words. ``near`` has the likeness of its memories that have a
    vector, and of the nearest others. Each score counts as a share of the best one, which was
    better than reciprocal ranks when measured (0.759 and 0.742 of recall@5).
    """
    lexical_paths = {ranked.path for ranked in lexical}
    by_meaning = sorted(
        path for path, value in near.items() if path not in lexical_paths and value >= NEAR
    )
    candidates = (*lexical, *(Ranked(path, 0.0, (), {}, BELOW_FLOOR) for path in by_meaning))
    best_score = max((ranked.score for ranked in candidates), default=0.0) or 1.0
    nearest = max(near.values(), default=0.0)
    fused = [_fused(ranked, near.get(ranked.path), best_score, nearest) for ranked in candidates]
    fused.sort(key=lambda ranked: -ranked.score)  # stable: equal ones stay in the order by words
    result: list[Ranked] = []
    remaining = limit
    for ranked in fused:
        is_weak = floor and ranked.score < _LEAST_SHARE_OF_BEST * fused[0].score
        is_near = near.get(ranked.path, -1.0) >= NEAR
        if is_weak or (ranked.cut == BELOW_FLOOR and not is_near):
            cut = BELOW_FLOOR
        elif not remaining:
            cut = BEYOND_LIMIT
        else:
            cut = ""
            remaining -= 1
        result.append(replace(ranked, cut=cut))
    return tuple(result)


def _fused(ranked: Ranked, likeness: float | None, best_score: float, nearest: float) -> Ranked:
    """Return a memory with its fused score, relative to the best scores of all memories."""
    words = ranked.score / best_score
    meaning = words  # a memory without a vector yet counts as near in meaning as in words
    if likeness is not None:
        meaning = max(likeness, 0.0) / nearest if nearest > 0 else 0.0
    parts = {
        "lexical": round((1 - _MEANING_SHARE) * words, 6),
        "semantic": round(_MEANING_SHARE * meaning, 6),
    }
    return replace(ranked, score=round(sum(parts.values()), 6), parts=parts)


def _load(folder: str) -> "tuple[Encoder | None, str]":
    """Return the model of a folder and "", or ``None`` and the sentence why it is not used."""
    if not os.path.isabs(folder):
        return None, _PATH_IS_RELATIVE
    try:
        # Imported only if a model is configured, as its libraries cost 80 ms and 40 MB.
        from memd.search.encoder import Encoder  # noqa: PLC0415 - lazy start-up, see above
    except ImportError:
        command = install_command("semantic")
        return None, f"semantic ranking needs further packages ({command}); {_FALLBACK}"
    try:
        return Encoder(folder), ""
    except ModelUnusableError as error:
        return None, f"{error.sentence}; {_FALLBACK}"
