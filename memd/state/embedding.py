"""The user's own model turns texts into vectors: the one door to onnxruntime, tokenizers and numpy.

Import this file only once a model is wanted: the three libraries cost 80 ms and 40 MB.

Rules of this file
- All vectors have length one; a comparison is a cosine.
- A text becomes the mean of its tokens' vectors, or the model's own sentence vector where its
  output has one per text.
- Tokens beyond the bound are left out, as in training; the cost of a text is bounded by that.
- ``Model`` may be used by several threads at once and computes in the caller's; ``Table`` may not.
- A model that cannot be used says so when it is loaded, not at the first prompt.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import onnxruntime
import tokenizers
from onnxruntime.capi import onnxruntime_pybind11_state as _failures

from memd.state.model_files import ModelFiles, ModelUnusableError

TEXT_TOKENS = 256  # what small sentence encoders were trained on
QUERY_TOKENS = 64  # a prompt's beginning: a model of 6 layers takes 4 ms for it, 20 ms for 256

_WIDTH = 1024  # numbers a vector may have
_BATCH = 8  # texts computed at once; more did not pay
_CHARACTERS = 8  # of a text for each token that counts: enough for all, and a bound for the work
_INPUTS = frozenset(("input_ids", "attention_mask", "token_type_ids"))
_LARGEST = 127  # of a signed byte
_OUTPUTS = ("tensor(float)", "tensor(float16)")
# Texts of eight matters: what a model finds alike in these it finds alike in everything.
_UNRELATED = (
    "The tests run in the cloud every night.",
    "My sister moved to Lisbon last spring.",
    "Bread needs flour, water, salt and time.",
    "The invoice was paid twice by mistake.",
    "Whales sing under the ice in winter.",
    "Use tabs in the old code and spaces in the new.",
    "He scored in the last minute of the match.",
    "The violin was tuned a little too low.",
)
# The same in Chinese. A model of English finds all texts in other scripts alike: 0.57 in MiniLM-L6.
_UNRELATED_ELSEWHERE = (
    "测试每天晚上在云端运行。",
    "我妹妹去年春天搬到了里斯本。",
    "面包需要面粉、水、盐和时间。",
    "发票被误付了两次。",
    "鲸鱼冬天在冰下唱歌。",
    "旧代码里用制表符而不用空格。",
    "他在比赛最后一分钟进球。",
    "小提琴的音调得有点低。",
)
_ELSEWHERE = re.compile(r"[^\W\d_\x00-\u024f\u1e00-\u1eff]")  # a letter that is not Latin
_LEAST_SPREAD = 0.05
_ASKS = "it asks for {}"
_GIVES = "its output is {}"
_SHAPE = "its output has the shape {}"
_NO_TOKENIZER = "it is no tokenizer"
_NOTHING_UNKNOWN = "it has no token for unknown words"
_ROWS = 1024  # compared at once: the block fits the processor's cache
_FAILED: tuple[type[Exception], ...] = tuple(
    kind
    for kind in vars(_failures).values()
    if isinstance(kind, type) and issubclass(kind, Exception)
)


class Vector(NamedTuple):
    """A vector of length one, as signed bytes and what each step of them counts."""

    steps: bytes
    scale: float


class Row(Protocol):
    """What a table takes of a vector, wherever it comes from."""

    @property
    def steps(self) -> bytes:
        """Signed bytes, one a number."""
        ...

    @property
    def scale(self) -> float:
        """What each step counts."""
        ...


class Model:
    """A loaded model; ``identity`` tells it from any other, ``width`` is its vectors' length."""

    def __init__(self, path: str, tokenizer: Any, session: Any, identity: str) -> None:
        self.path = path
        self.identity = identity
        self._tokenizer = tokenizer
        self._session = session
        self._inputs = {item.name for item in session.get_inputs()}
        if not {"input_ids"} <= self._inputs <= _INPUTS:
            raise ModelUnusableError(path, _ASKS.format(", ".join(sorted(self._inputs))))
        output = session.get_outputs()[0].type
        if output not in _OUTPUTS:
            raise ModelUnusableError(path, _GIVES.format(output))
        self.width = 0
        # The shortest text and the longest: a foreign tokenizer, too few positions, or an output
        # that grows with the text show here.
        self.width = int(self._compute([""], TEXT_TOKENS).shape[1])
        self._compute(["word " * TEXT_TOKENS], TEXT_TOKENS)
        self._usual = self._alike(_UNRELATED)
        self._usual_elsewhere = max(self._usual, self._alike(_UNRELATED_ELSEWHERE))

    def vectors(self, texts: Sequence[str]) -> tuple[Vector, ...]:
        """Return the vectors of texts, computed in batches of similar length.

        Blocks for some milliseconds a text. Raises ModelUnusableError.
        """
        by_length = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found: dict[int, Vector] = {}
        for start in range(0, len(texts), _BATCH):
            part = by_length[start : start + _BATCH]
            rows = self._compute([texts[at] for at in part], TEXT_TOKENS)
            found.update(zip(part, map(_quantised, rows), strict=True))
        return tuple(found[at] for at in range(len(texts)))

    def likeness(self, cosine: float, prompt: str = "") -> float:
        """Return how alike two texts are: 0 as unrelated ones of this model are, 1 for the same.

        Encoders differ in the cosine of unrelated texts: some are near 0, some near 0.7, and one
        and the same where ``prompt`` is in a script that it did not learn.
        """
        usual = self._usual_elsewhere if _ELSEWHERE.search(prompt) else self._usual
        return (cosine - usual) / (1 - usual)

    def query(self, text: str) -> Any:
        """Return the vector of a prompt's beginning. Raises ModelUnusableError."""
        return self._compute([text], QUERY_TOKENS)[0]

    def _alike(self, unrelated: Sequence[str]) -> float:
        """Return the cosine that texts of different matters have, on average."""
        vectors = self._compute(unrelated, TEXT_TOKENS)
        pairs = (vectors @ vectors.T)[np.triu_indices(len(unrelated), 1)]
        return min(max(float(pairs.mean()), 0.0), 1 - _LEAST_SPREAD)

    def _compute(self, texts: Sequence[str], tokens: int) -> Any:
        rows = [self._tokens(text, tokens) for text in texts]
        longest = max(1, *map(len, rows))
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros_like(ids)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = row
            mask[at, : max(1, len(row))] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            found = self._session.run(None, {name: given[name] for name in self._inputs})[0]
        except _FAILED as error:
            raise ModelUnusableError(self.path, _first_line(error)) from error
        if found.ndim == 3:  # noqa: PLR2004 - texts, tokens, numbers: one vector a token
            found = (found * mask[..., None]).sum(axis=1) / mask.sum(axis=1)[:, None]
        width = self.width or (found.shape[-1] if found.ndim else 0)
        if found.shape != (len(rows), width) or not 0 < width <= _WIDTH:
            raise ModelUnusableError(self.path, _SHAPE.format(found.shape))
        found = np.nan_to_num(found.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return found / np.maximum(lengths, 1e-12)

    def _tokens(self, text: str, most: int) -> list[int]:
        text = text[: most * _CHARACTERS].encode(errors="replace").decode()
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids if len(ids) <= most else [*ids[: most - 1], ids[-1]]  # the last one closes


class Table:
    """The vectors of one directory's memories, one signed byte a number."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._steps: Any = np.zeros((0, width), np.int8)
        self._scales: Any = np.zeros(0, np.float32)
        self._rows: dict[str, int] = {}
        self._paths: list[str] = []

    def __len__(self) -> int:
        """Return how many memories have a vector."""
        return len(self._paths)

    def put(self, vectors: Mapping[str, Row]) -> None:
        """Add vectors by path, or replace those that are there."""
        fresh = [path for path in vectors if path not in self._rows]
        self._rows.update(zip(fresh, range(len(self), len(self) + len(fresh)), strict=True))
        self._paths += fresh
        self._make_room(len(self))
        rows = [self._rows[path] for path in vectors]
        joined = b"".join(vector.steps for vector in vectors.values())
        self._steps[rows] = np.frombuffer(joined, np.int8).reshape(-1, self._width)
        self._scales[rows] = [vector.scale for vector in vectors.values()]

    def drop(self, path: str) -> None:
        """Forget a memory's vector; the last row takes its place."""
        row = self._rows.pop(path, None)
        if row is None:
            return
        last = self._paths.pop()
        if last != path:
            at = len(self._paths)
            self._rows[last], self._paths[row] = row, last
            self._steps[row], self._scales[row] = self._steps[at], self._scales[at]

    def near(
        self, query: Any, most: int, among: Iterable[str], skip: Callable[[str], bool]
    ) -> dict[str, float]:
        """Return the cosines of the ``most`` nearest memories and of those ``among``.

        Looks at every vector: 0.5 ms at 10,000, 6 ms at 100,000.
        """
        count = len(self)
        cosines: Any = np.empty(count, np.float32)
        for start in range(0, count, _ROWS):
            end = min(start + _ROWS, count)
            np.dot(self._steps[start:end].astype(np.float32), query, out=cosines[start:end])
        cosines *= self._scales[:count]
        found = {path: float(cosines[self._rows[path]]) for path in among if path in self._rows}
        looked = most
        while True:
            looked = min(2 * looked, count)
            top = np.argpartition(cosines, count - looked)[count - looked :] if looked else ()
            kept = [row for row in top if not skip(self._paths[row])]
            if len(kept) >= most or looked == count:
                break
        kept.sort(key=lambda row: (-cosines[row], self._paths[row]))
        found.update((self._paths[row], float(cosines[row])) for row in kept[:most])
        return found

    def _make_room(self, rows: int) -> None:
        if rows > len(self._scales):
            more = max(rows, rows * 5 // 4) - len(self._scales)
            self._steps = np.concatenate((self._steps, np.zeros((more, self._width), np.int8)))
            self._scales = np.concatenate((self._scales, np.zeros(more, np.float32)))


def load(files: ModelFiles) -> Model:
    """Return the model of some files, ready and tried once.

    Blocks for a tenth of a second or more. Raises ModelUnusableError.
    """
    vocabulary, identity = files.read()
    words = _tokenizer(files.tokenizer, vocabulary)
    return Model(files.model, words, _session(files.model), identity)


def _tokenizer(path: str, vocabulary: bytes) -> Any:
    """Return the tokenizer, once it is certain that it has an answer for every text."""
    try:
        kind = json.loads(vocabulary)["model"]
        if isinstance(kind.get("vocab"), list):  # Unigram: pairs of a token and its weight
            whole = kind.get("unk_id") is not None or bool(kind.get("byte_fallback"))
        else:
            unknown = kind.get("unk_token")
            whole = unknown in kind["vocab"] or (unknown is None and kind.get("type") == "BPE")
        tokenizer = tokenizers.Tokenizer.from_buffer(vocabulary)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelUnusableError(path, _NO_TOKENIZER) from error
    if not whole:
        raise ModelUnusableError(path, _NOTHING_UNKNOWN)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _session(path: str) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # in the caller's thread
    options.enable_cpu_mem_arena = False  # costs nothing here and saves 80 MB
    options.log_severity_level = 4  # what is wrong is raised; nothing is printed
    try:
        # By its path: handed over as bytes a model of 90 MB leaves 60 MB more behind.
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except _FAILED as error:
        raise ModelUnusableError(path, _first_line(error)) from error


def _quantised(row: Any) -> Vector:
    scale = float(np.abs(row).max()) / _LARGEST
    steps = np.rint(row / scale).astype(np.int8) if scale else np.zeros(len(row), np.int8)
    return Vector(steps.tobytes(), scale)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:200]
