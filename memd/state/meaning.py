"""The model that the setting ``recall.semantic_model`` names: loaded, or why it is not.

One for the whole daemon; ``state/fused.py`` ranks with it.

Rules of this file
- Nothing is imported and no file is looked at before a folder is named, and then only by ``load``,
  in the background. ``model`` never waits.
- A model that is missing, damaged or foreign, and libraries that are not installed, are a sentence
  in ``notes``; ranking goes on by words.
- What could not be loaded, or failed at work, is tried again when its files or the setting change.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memd.state.model_files import Facts, ModelFiles, ModelUnusableError, find

if TYPE_CHECKING:
    from memd.state.embedding import Model

_ON = "recall goes on by words"
_EXTRA = f"semantic ranking needs the extra memdir-daemon[semantic]; {_ON}"
_RELATIVE = f"the setting recall.semantic_model must be an absolute path; {_ON}"


@dataclass(frozen=True, slots=True)
class _State:
    """What is known at one instant; ``tried`` are the facts of the files that were tried last."""

    folder: str = ""
    tried: Facts = ()
    model: "Model | None" = None
    note: str = ""


class Meaning:
    """The model in force; for any thread. ``tell`` gets each new note, in whichever thread."""

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self._tell = tell
        self._state = _State()
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    @property
    def model(self) -> "Model | None":
        """The model when it is loaded; never waits."""
        return self._state.model

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence when the model that the settings name is not used; for ``status``."""
        return (self._state.note,) if self._state.note else ()

    def use(self, folder: str) -> None:
        """Note which folder the settings name, "" for none. Costs nothing: call it at each use."""
        if folder != self._state.folder:
            with self._lock:
                self._state = _State(folder)

    def load(self) -> "Model | None":
        """Return the model, loaded anew when its files or the setting have changed.

        Blocks for a tenth of a second or more when there is something to load: call it in the
        background.
        """
        with self._loading:
            before = self._state
            if not before.folder:
                return None
            folder = os.path.expanduser(before.folder)
            files = find(folder)
            tried = files.facts()
            if tried != before.tried:
                model, note = _load(folder, files)
                self._exchange(before, replace(before, tried=tried, model=model, note=note))
            return self.model

    def give_up(self, model: "Model", sentence: str) -> None:
        """Stop using a model that failed at work."""
        before = self._state
        if before.model is model:
            self._exchange(before, replace(before, model=None, note=f"{sentence}; {_ON}"))

    def cannot_keep(self, error: OSError) -> None:
        """Note that vectors could not be read or written; they are used all the same."""
        before = self._state
        note = f"vectors are computed again after a restart: {error.filename}: {error.strerror}"
        self._exchange(before, replace(before, note=note))

    def _exchange(self, before: _State, after: _State) -> None:
        with self._lock:
            if self._state is not before:
                return
            self._state = after
        if after.note not in {"", before.note}:
            self._tell(after.note)


def _load(folder: str, files: ModelFiles) -> "tuple[Model | None, str]":
    if not os.path.isabs(folder):
        return None, _RELATIVE
    try:
        # Three libraries, 80 ms and 40 MB, for those who name a model.
        from memd.state import embedding  # noqa: PLC0415 - lazy start-up, see above
    except ImportError:
        return None, _EXTRA
    try:
        return embedding.load(files), ""
    except ModelUnusableError as error:
        return None, f"{error.sentence}; {_ON}"
