"""Read the files of the user's own sentence encoder, which are never downloaded or written."""

import os
import stat

from memd.core.errors import MemdError

_MODEL_NAMES = ("model.onnx", "onnx/model.onnx")
_TOKENIZER = "tokenizer.json"
_WEIGHT_SUFFIXES = (".data", "_data")  # of files with weights outside the graph's file
_IRREGULAR = "it is no regular file of at most {} bytes"
_SHARED = "it is another user's, or others may write it"
_MODEL_BYTES = 512 * 1024 * 1024
_TOKENIZER_BYTES = 64 * 1024 * 1024


class ModelUnusableError(MemdError):
    """A folder has no model that memd can use."""

    code = 1031
    kind = "semantic_model_unusable"
    hint = "docs/semantic.md says which folders can be used"
    exit_status = 78

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"the semantic model {path} cannot be used: {cause}", path=path)


def find(folder: str) -> str:
    """Return the path of a folder's model file, in either layout."""
    models = [f"{folder}/{name}" for name in _MODEL_NAMES]
    return next((path for path in models if os.path.exists(path)), models[0])


def read(folder: str) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the content of a folder's tokenizer, and of all files of its model.

    Blocks for a tenth of a second for 100 MB. Raises ModelUnusableError.
    """
    model = find(folder)
    weight_files = [f"{model}{suffix}" for suffix in _WEIGHT_SUFFIXES]
    existing = [path for path in weight_files if os.path.exists(path)]
    weights = tuple(_read_trusted(path, _MODEL_BYTES) for path in (model, *existing))
    return _read_trusted(f"{folder}/{_TOKENIZER}", _TOKENIZER_BYTES), weights


def _read_trusted(path: str, most: int) -> bytes:
    """Return the content of a file that only the user or root may write.

    Raises ModelUnusableError for any other file, or one larger than ``most`` bytes.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > most:
                raise ModelUnusableError(path, _IRREGULAR.format(most))
            if facts.st_uid not in (os.getuid(), 0) or facts.st_mode & 0o022:
                raise ModelUnusableError(path, _SHARED)
            return file.read()
    except OSError as error:
        raise ModelUnusableError(path, error.strerror or type(error).__name__) from error
