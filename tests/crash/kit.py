"""What the crash kit asks of a core and reads from its directory, in the words of no core.

``core.py`` translates the requests; what lies on the disk is read here, without the core.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

INDEX = "MEMORY.md"
INDEXES = (INDEX, "team/MEMORY.md")
_POINTER = re.compile(r"^- \[[^\]]*\]\(<?([^)>]+)>?\)", re.MULTILINE)


class Edit(NamedTuple):
    """A file to write, or to delete where ``content`` is ``None``.

    ``base`` is the SHA-256 of the text that the writer had read, ``None`` if that does not matter.
    ``mtime_ns`` is set where the file must not look newer. ``line`` is title and hook of its line
    in the index.
    """

    path: str
    content: bytes | None
    base: str | None = None
    mtime_ns: int | None = None
    line: tuple[str, str] | None = None


class Effect(NamedTuple):
    """What becomes true together with a change.

    ``cursor``: the place in the session ``key``; ``suggestion``: a text of the session ``key``;
    ``bases``: the hashes that a team's server has, by path.
    """

    kind: str
    key: str
    value: Any


class Memory(NamedTuple):
    """A file as a plan finds it."""

    content: bytes
    mtime_ns: int


# A plan is what it wants, or a function of what is there at the time of the commit.
Edits = Sequence[Edit]
Plan = Edits | Callable[[Callable[[str], Memory | None]], Edits]


def sha256(content: bytes) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(content).hexdigest()


def topic(name: str, body: str = "text") -> bytes:
    """Return a small valid memory."""
    head = f"---\nname: {name}\ndescription: about {name}\nmetadata:\n  type: user\n---\n\n"
    return f"{head}{body}\n".encode()


def tree(path: Path) -> dict[str, bytes]:
    """Return every file of a directory, hidden ones too."""
    files = (file for file in sorted(path.rglob("*")) if file.is_file())
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def visible(path: Path) -> dict[str, bytes]:
    """Return every file that a reader sees."""
    return {name: text for name, text in tree(path).items() if "/." not in f"/{name}"}


def listed(index: bytes) -> list[str]:
    """Return the paths to which the lines of an index lead."""
    return [unquote(path) for path in _POINTER.findall(index.decode())]


def is_temporary(name: str) -> bool:
    """Say whether a file is one that a core removes by itself."""
    return name.startswith(".memd-") and name.endswith(".tmp")
