"""The files of the user's own sentence encoder: found, checked, told apart. Imports no library.

A model is a folder with ``model.onnx`` (or ``onnx/model.onnx``), what weights lie beside it, and
``tokenizer.json``, as sentence encoders are published. Nothing is ever fetched or written.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader

from memd.core.errors import MemdError

_MODELS = ("model.onnx", "onnx/model.onnx")
_TOKENIZER = "tokenizer.json"
_BESIDE = (".data", "_data")  # where weights lie that a graph does not hold itself
_IRREGULAR = "it is no regular file of at most {} bytes"
_SHARED = "it is another user's, or others may write it"
_MODEL_BYTES = 512 * 1024 * 1024
_TOKENIZER_BYTES = 64 * 1024 * 1024

Facts = tuple[tuple[int, int, int] | None, ...]


class ModelUnusableError(MemdError):
    """A folder does not hold a model that memd can compute with."""

    code = 1031
    kind = "semantic_model_unusable"
    hint = "docs/semantic.md says which folders can be used"
    exit_status = 78

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"the semantic model {path} cannot be used: {cause}", path=path)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The paths of one model's files, whether they are there or not."""

    model: str
    tokenizer: str

    @property
    def beside(self) -> tuple[str, ...]:
        """The files of weights beside the model."""
        paths = (f"{self.model}{suffix}" for suffix in _BESIDE)
        return tuple(path for path in paths if os.path.exists(path))

    def facts(self) -> Facts:
        """Return what changes when a file does; costs a ``stat`` each."""
        return tuple(_facts(path) for path in (self.model, *self.beside, self.tokenizer))

    def read(self) -> tuple[bytes, str]:
        """Return the tokenizer's text and the identity of all files.

        Blocks for a tenth of a second for 100 MB. Raises ModelUnusableError.
        """
        digest = hashlib.sha256()
        for path in (self.model, *self.beside):
            with _opened(path, _MODEL_BYTES) as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        with _opened(self.tokenizer, _TOKENIZER_BYTES) as file:
            vocabulary = file.read()
        digest.update(vocabulary)
        return vocabulary, digest.hexdigest()


def find(folder: str) -> ModelFiles:
    """Return the files of a folder, in whichever layout it has."""
    models = [f"{folder}/{name}" for name in _MODELS]
    model = next((path for path in models if os.path.exists(path)), models[0])
    return ModelFiles(model, f"{folder}/{_TOKENIZER}")


def _facts(path: str) -> tuple[int, int, int] | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


@contextmanager
def _opened(path: str, most: int) -> Iterator[BufferedReader]:
    """Open a file of the user's own that nobody else may write (like the settings file)."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > most:
                raise ModelUnusableError(path, _IRREGULAR.format(most))
            if facts.st_uid not in (os.getuid(), 0) or facts.st_mode & 0o022:
                raise ModelUnusableError(path, _SHARED)
            yield file
    except OSError as error:
        raise ModelUnusableError(path, error.strerror or type(error).__name__) from error
