"""Compute and compare vectors of texts with the user's own model.

This is the only file that uses onnxruntime, tokenizers and numpy. Import it only if a model is
configured: the three libraries cost 80 ms and 40 MB.

Rules of this file
- All vectors have length one; a comparison is a cosine.
- A text's vector is the mean of its tokens' vectors, or the model's own sentence vector if it
  returns one for each text. Tokens beyond the limit are left out, as in training.
- ``Encoder`` is thread-safe and computes in the caller's thread; ``Vectors`` is not thread-safe.
- A model is checked when it is loaded, so that an unusable one does not fail at the first prompt.
- The file of vectors is a cache: if it is damaged or of another model, it is written again.
- onnxruntime from 1.29 reports each model to its maker unless an environment variable forbids it,
  which is set before the import.
"""

import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from typing import Any

import numpy as np
import tokenizers

from memd.search.engine import private_opener
from memd.search.model_files import ModelUnusableError, find, read

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as _runtime_errors

TEXT_TOKENS = 256  # what small sentence encoders were trained on
QUERY_TOKENS = 64  # a prompt's beginning: a model of 6 layers takes 4 ms for it, 20 ms for 256

_FORMAT = "memd vectors 3"  # another number when the text of a vector is made otherwise
_MOST_NUMBERS = 1024  # that a vector may have
_TEXTS_AT_ONCE = 8  # more was not faster
_CHARACTERS_PER_TOKEN = 8  # so many are read for each token of the limit, which bounds the work
_KNOWN_INPUTS = frozenset(("input_ids", "attention_mask", "token_type_ids"))
_OTHER_SCRIPT = re.compile(r"[^\W\d_\x00-\u024f\u1e00-\u1eff]")  # a letter that is not Latin
_LEAST_SPREAD = (
    0.05  # between the cosines of unrelated and of equal texts, so as not to divide by 0
)
_UNKNOWN_INPUTS = "it asks for {}"
_WRONG_OUTPUT = "its output is {}"
_NO_TOKENIZER = "it is no tokenizer"
_UNKNOWN_WORDS_FAIL = "it has no token for unknown words"
# Errors of numpy and zipfile for a file that is missing, incomplete or of another format.
_DAMAGED_FILE_ERRORS = (
    *(FileNotFoundError, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)
_ROWS_AT_ONCE = 1024  # compared at once: the block fits the processor's cache
_MODEL_ERRORS: tuple[type[Exception], ...] = tuple(
    kind
    for kind in vars(_runtime_errors).values()
    if isinstance(kind, type) and issubclass(kind, Exception)
)


class Encoder:
    """The model of a folder; ``identity`` is its hash, ``width`` the length of its vectors.

    The constructor blocks for a tenth of a second or more, and raises ModelUnusableError.
    """

    def __init__(self, folder: str) -> None:
        vocabulary, weights = read(folder)
        parts = b"".join(sha256(part).digest() for part in (vocabulary, *weights))
        self.identity = sha256(parts).hexdigest()
        self.path = find(folder)
        self._tokenizer = _tokenizer(self.path, vocabulary)
        self._session = _session(self.path)
        self._inputs = {item.name for item in self._session.get_inputs()}  # that the model needs
        if "input_ids" not in self._inputs or not self._inputs <= _KNOWN_INPUTS:
            raise ModelUnusableError(
                self.path, _UNKNOWN_INPUTS.format(", ".join(sorted(self._inputs)))
            )
        self.width = 0  # not known until the first text is computed
        # The shortest and the longest text are tried, so that a wrong tokenizer, too few positions
        # or an output whose size depends on the text are noticed now.
        self.width = int(self._compute([""], TEXT_TOKENS).shape[1])
        self._compute(["word " * TEXT_TOKENS], TEXT_TOKENS)
        # The mean cosine of texts on eight unrelated topics is the model's zero. It is measured
        # apart for other scripts, as an English model finds all texts in them alike (0.57 in
        # MiniLM-L6).
        unrelated = files("memd.search").joinpath("unrelated.txt").read_text("utf-8")
        latin, other_scripts = [part.strip().split("\n") for part in unrelated.split("\n\n")]
        self._unrelated_cosine = self._mean_cosine(latin)
        self._unrelated_cosine_other_script = max(
            self._unrelated_cosine, self._mean_cosine(other_scripts)
        )

    def vectors(self, texts: Sequence[str]) -> Any:
        """Return a matrix with the vector of each text as a row.

        Blocks for some milliseconds for each text. Raises ModelUnusableError.
        """
        # Texts of about one length are computed together, as all are padded to the longest one.
        by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        result: Any = np.zeros((len(texts), self.width), np.float32)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            indexes = by_length[start : start + _TEXTS_AT_ONCE]
            result[indexes] = self._compute([texts[index] for index in indexes], TEXT_TOKENS)
        return result

    def query(self, text: str) -> Any:
        """Return the vector of a prompt's beginning. Raises ModelUnusableError."""
        return self._compute([text], QUERY_TOKENS)[0]

    def likeness(self, cosine: float, prompt: str) -> float:
        """Return a cosine rescaled so that unrelated texts have 0 and equal texts 1.

        The cosine of unrelated texts is near 0 in some models and near 0.7 in others, and higher
        if ``prompt`` is in a script that the model did not learn.
        """
        unrelated = self._unrelated_cosine
        if _OTHER_SCRIPT.search(prompt):
            unrelated = self._unrelated_cosine_other_script
        return (cosine - unrelated) / (1 - unrelated)

    def _mean_cosine(self, unrelated: Sequence[str]) -> float:
        """Return the mean cosine of some unrelated texts, which differs between models."""
        vectors = self._compute(unrelated, TEXT_TOKENS)
        cosines = vectors @ vectors.T
        pairs = cosines[np.triu_indices(len(unrelated), 1)]  # each pair of two texts once
        return min(max(float(pairs.mean()), 0.0), 1 - _LEAST_SPREAD)

    def _compute(self, texts: Sequence[str], tokens: int) -> Any:
        """Return a matrix of the vectors of texts, each cut to ``tokens``.

        Raises ModelUnusableError if the model fails or its output has an unexpected shape.
        """
        rows = [self._tokens(text, tokens) for text in texts]
        longest = max(1, *map(len, rows))
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros_like(ids)  # 1 for a token, 0 for padding; an empty text has one token
        for index, row in enumerate(rows):
            ids[index, : len(row)] = row
            mask[index, : max(1, len(row))] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            result = self._session.run(None, {name: inputs[name] for name in self._inputs})[0]
        except _MODEL_ERRORS as error:
            raise ModelUnusableError(self.path, _first_line(error)) from error
        if result.dtype.kind != "f":
            raise ModelUnusableError(self.path, _WRONG_OUTPUT.format(result.dtype))
        if result.ndim == 3:  # noqa: PLR2004 - texts, tokens, numbers: one vector a token
            sums = (result * mask[..., None]).sum(axis=1)
            result = sums / mask.sum(axis=1)[:, None]  # the mean of a text's tokens
        width = self.width or (result.shape[-1] if result.ndim else 0)
        if result.shape != (len(rows), width) or not 0 < width <= _MOST_NUMBERS:
            raise ModelUnusableError(self.path, _WRONG_OUTPUT.format(result.shape))
        result = np.nan_to_num(result.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
        lengths = np.linalg.norm(result, axis=1, keepdims=True)
        return result / np.maximum(lengths, 1e-12)

    def _tokens(self, text: str, most: int) -> list[int]:
        """Return the token ids of a text, ``most`` at most, with the closing token as the last."""
        text = text[: most * _CHARACTERS_PER_TOKEN].encode(errors="replace").decode()
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids if len(ids) <= most else [*ids[: most - 1], ids[-1]]


class Vectors:
    """The vectors of one directory's memories, a row each, and their versions."""

    def __init__(self, encoder: Encoder) -> None:
        self._identity = np.array([_FORMAT, encoder.identity])  # of the file and the model
        self._rows: Any = np.zeros((0, encoder.width), np.float16)  # a vector each
        self._row_of: dict[str, int] = {}  # by path
        self._paths: list[str] = []  # by row; "" for a row without a memory
        self.versions: dict[str, int] = {}  # by path, the mark of the version

    def put(self, rows: Any, versions: Mapping[str, int]) -> None:
        """Add or replace the vectors of the paths in ``versions``, which are the ``rows``."""
        for path in versions:
            self.drop(path)
        self._row_of |= {path: row for row, path in enumerate(versions, len(self._paths))}
        self._paths += versions
        self.versions |= versions
        self._rows = np.concatenate((self._rows, rows.astype(np.float16)))

    def drop(self, path: str) -> None:
        """Remove the vector of a memory, if it has one."""
        row = self._row_of.pop(path, None)
        if row is not None:
            self._paths[row] = ""
            del self.versions[path]

    def near(
        self, query: Any, most: int, among: Iterable[str], skip: Callable[[str], bool]
    ) -> dict[str, float]:
        """Return the cosines, by path, of the ``most`` nearest memories and of the paths ``among``.

        Paths for which ``skip`` is true are left out of the nearest. Compares all vectors.
        """
        count = len(self._paths)
        cosines: Any = np.empty(count, np.float32)
        for start in range(0, count, _ROWS_AT_ONCE):
            end = min(start + _ROWS_AT_ONCE, count)
            np.dot(self._rows[start:end].astype(np.float32), query, out=cosines[start:end])
        with_vector = [path for path in among if path in self._row_of]
        result = {path: float(cosines[self._row_of[path]]) for path in with_vector}
        order = ((self._paths[row], row) for row in np.argsort(-cosines, kind="stable"))
        nearest = ((path, float(cosines[row])) for path, row in order if path and not skip(path))
        return result | dict(islice(nearest, most))

    def save(self, path: str) -> None:
        """Replace the file of the vectors. Raises OSError."""
        self._compact()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(f"{path}.new", "wb", opener=private_opener) as file:
            np.savez(
                file,
                identity=self._identity,
                paths=np.frombuffer(b"\0".join(map(os.fsencode, self._paths)), np.uint8),
                versions=np.array([self.versions[name] for name in self._paths], np.uint64),
                rows=self._rows,
            )
        os.replace(f"{path}.new", path)

    def _compact(self) -> None:
        """Remove the rows without a memory."""
        self._rows = self._rows[list(self._row_of.values())]
        self._paths = list(self._row_of)
        self._row_of = {path: row for row, path in enumerate(self._paths)}

    def load(self, path: str) -> None:
        """Load the vectors of a file, if it is intact and of this model. Raises OSError."""
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as result:
                encoded = result["paths"].tobytes().split(b"\0")
                paths = [os.fsdecode(path) for path in encoded if path]
                versions, rows = result["versions"], result["rows"]
                is_same_model = np.array_equal(result["identity"], self._identity)
        except _DAMAGED_FILE_ERRORS:
            return
        expected_shape = (len(paths), self._rows.shape[1])
        if is_same_model and len(versions) == len(paths) and rows.shape == expected_shape:
            self._rows, self._paths = rows.astype(np.float16), paths
            self._row_of = {path: row for row, path in enumerate(paths)}
            self.versions = {path: int(mark) for path, mark in zip(paths, versions, strict=True)}


def _tokenizer(path: str, vocabulary: bytes) -> Any:
    """Return the tokenizer. Raises ModelUnusableError if it cannot encode unknown words."""
    try:
        model = json.loads(vocabulary)["model"]
        if isinstance(model.get("vocab"), list):  # Unigram: pairs of a token and its weight
            encodes_all = model.get("unk_id") is not None or bool(model.get("byte_fallback"))
        else:
            unknown = model.get("unk_token")
            is_bytewise = unknown is None and model.get("type") == "BPE"
            encodes_all = unknown in model["vocab"] or is_bytewise
        tokenizer = tokenizers.Tokenizer.from_buffer(vocabulary)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelUnusableError(path, _NO_TOKENIZER) from error
    if not encodes_all:
        raise ModelUnusableError(path, _UNKNOWN_WORDS_FAIL)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _session(path: str) -> Any:
    """Return an onnxruntime session that runs a model. Raises ModelUnusableError."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # in the caller's thread
    options.enable_cpu_mem_arena = False  # costs nothing here and saves 80 MB
    options.log_severity_level = 4  # print nothing; errors are raised
    try:
        # Opened by path: passed as bytes, a model of 90 MB would cost 60 MB more memory.
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except _MODEL_ERRORS as error:
        raise ModelUnusableError(path, _first_line(error)) from error


def _first_line(error: Exception) -> str:
    """Return the first line of an error's text, cut to 200 characters."""
    return str(error).split("\n", 1)[0][:200]
