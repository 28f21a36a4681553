"""A sentence encoder of a few words, written byte by byte: what a test loads as a user's model.

The graph is one ``Gather``: a row of numbers for each token, as ONNX's protocol buffers hold it.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

_INT64, _FLOAT = 7, 1  # ONNX's numbers of element types


def write_model(
    folder: Path, vectors: Mapping[str, Sequence[float]], name: str = "model.onnx"
) -> Path:
    """Write a model into a folder and return it; words that are not in ``vectors`` have no vector.

    All vectors have the same length.
    """
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    width = len(next(iter(vectors.values())))
    rows = [[0.0] * width, *vectors.values()]
    (folder / name).write_bytes(graph(rows))
    vocabulary = {"[UNK]": 0} | {word: at for at, word in enumerate(vectors, 1)}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(vocabulary)))
    for path in (folder / name, folder / "tokenizer.json"):
        path.chmod(0o600)
    return folder


def tokenizer(vocabulary: Mapping[str, int]) -> dict[str, object]:
    """Return a tokenizer that knows whole words in lower case."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": dict(vocabulary), "unk_token": "[UNK]"},
    }


def graph(
    rows: Sequence[Sequence[float]],
    source: str = "input_ids",
    operator: str = "Gather",
    rank: int = 3,
    kind: int = _FLOAT,
) -> bytes:
    """Return a model that gives each token its row.

    With other names, or another number of sizes in its output, it is one that memd cannot use.
    """
    numbers = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    node = _text(1, "rows") + _text(1, source) + _text(2, "vectors")
    node += _text(4, operator)
    sizes = (len(rows), len(rows[0])) if rank == 3 else (len(rows) * len(rows[0]),) * (rank > 0)
    table = b"".join(_number(1, size) for size in sizes) + _number(2, kind)
    table += _text(8, "rows") + _bytes(9, numbers)
    body = _bytes(1, node) + _text(2, "tiny") + _bytes(5, table)
    body += _bytes(11, _value(source, _INT64, ("texts", "tokens")))
    body += _bytes(12, _value("vectors", kind, ("texts", "tokens", "numbers")[:rank]))
    version = _bytes(8, _text(1, "") + _number(2, 17))
    return _number(1, 8) + version + _bytes(7, body)


def _value(name: str, kind: int, sizes: Sequence[str]) -> bytes:
    shape = b"".join(_bytes(1, _text(2, size)) for size in sizes)
    tensor = _number(1, kind) + _bytes(2, shape)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    results = bytearray()
    while value > 127:
        results.append(value & 127 | 128)
        value >>= 7
    results.append(value)
    return bytes(results)
