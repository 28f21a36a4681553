"""Inputs that are kept: a small corpus of each door, and every input that once broke a promise.

A line of ``corpus/NAME.jsonl`` is one input, its bytes as characters. A crash has a file of its own
in ``crashes/NAME/``, named by what it did.
"""

import json
from pathlib import Path

from tests.fuzz.targets import target

_HERE = Path(__file__).parent


def corpus_file(name: str) -> Path:
    """Return the file that has the kept inputs of a door."""
    return _HERE / "corpus" / f"{name.replace(' ', '-')}.jsonl"


def kept(name: str) -> tuple[bytes, ...]:
    """Return the kept inputs of a door, its seeds and its crashes among them."""
    file, folder = corpus_file(name), _HERE / "crashes" / name.replace(" ", "-")
    lines = file.read_text(encoding="ascii").splitlines() if file.exists() else []
    crashes = (path.read_bytes() for path in sorted(folder.glob("*")))
    corpus = (json.loads(line).encode("latin-1") for line in lines)
    return tuple(dict.fromkeys((*target(name).seeds, *crashes, *corpus)))


def write(name: str, inputs: list[bytes]) -> None:
    """Write the kept inputs of a door, but for its seeds."""
    lines = (json.dumps(content.decode("latin-1")) + "\n" for content in inputs)
    corpus_file(name).write_text("".join(lines), encoding="ascii")
