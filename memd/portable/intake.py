"""What a source holds so far, and whether that stays within the bounds of an import. Pure.

Rules of this file
- Everything is counted while it comes, so that nothing is held that is too much already.
- A name in an archive that leads elsewhere, or is there twice, is a fault of the whole: whoever
  made it cannot be believed. What is no regular file is passed over and listed.
"""

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from memd.core.names import is_text
from memd.portable.errors import SourceDamagedError
from memd.portable.values import LeftOutList

ENTRIES = 100_000
UNPACKED_BYTES = 1024 * 1024 * 1024
RATIO = 200  # of what is unpacked to what is packed
RATIO_BYTES = 16 * 1024 * 1024  # below, any ratio will do: four foreign files that are all zeros
DEPTH = 16  # parts of a name; a memory directory is looked into as far
PIECE_BYTES = 64 * 1024  # of a file, at once
_NAME_BYTES = 1024
_ALL_NAMES_BYTES = 8 * 1024 * 1024

IS_LINK, IS_SPECIAL = "it is a link", "it is no regular file"
TRUNCATED = "it ends in the middle"
_TOO_MANY = f"it has more than {ENTRIES:,} entries"
_TOO_LARGE = f"it has more than {UNPACKED_BYTES // 1024**3} GiB unpacked"
_BOMB = f"it unpacks to more than {RATIO} times its size"
_LONG_NAMES = f"its names have more than {_ALL_NAMES_BYTES // 1024**2} MiB together"
_TWICE = "it is there twice"
CLASH = "its name differs from another one in case alone"
_BOTH = "it is a file and a folder"

Place = tuple[int, int, int]  # where a file begins, its bytes, its mtime in ns
Pieces = Iterator[bytes]


@dataclass(frozen=True, slots=True)
class PackedFile:
    """One entry of an archive. ``why_not`` says why it is no file or folder, "" where it is."""

    name: str
    size: int = 0
    mtime_ns: int = 0
    folder: bool = False
    why_not: str = ""


class Intake:
    """The files of one source by name, counted and checked as they come.

    ``label`` names the source in errors, ``packed`` is its size in bytes.
    """

    def __init__(self, label: str, packed: int = 0) -> None:
        self.files: dict[str, int] = {}  # where their places stand
        self.folders: set[str] = set()
        self.left_out = LeftOutList()
        self._label, self._packed = label, packed
        self._entries = self._unpacked = self._names = 0
        self._folded: set[bytes] = set()  # sums of names in one case: shorter than a long name
        self._places = array("q")  # offset, size and mtime of each: a tenth of what tuples take

    def entry(self, name: str) -> str:
        """Count one entry and return its name without ``./`` before it and ``/`` behind it.

        "" is the source itself. Raises SourceDamagedError.
        """
        self._entries += 1
        if self._entries > ENTRIES:
            raise SourceDamagedError(self._label, _TOO_MANY)
        plain = name.removesuffix("/")
        while plain.startswith("./"):
            plain = plain[2:]
        if plain == ".":
            return ""
        if why := fault(plain):
            raise SourceDamagedError(name, why)
        self._names += len(plain.encode())
        if self._names > _ALL_NAMES_BYTES:
            raise SourceDamagedError(self._label, _LONG_NAMES)
        return plain

    def folder(self, name: str) -> None:
        """Note a folder and those above it. Raises SourceDamagedError."""
        while name and name not in self.folders:
            if name in self.files:
                raise SourceDamagedError(name, _BOTH)
            self.folders.add(name)
            name = name.rpartition("/")[0]

    def clashes(self, name: str) -> bool:
        """Say whether a name differs from one that was asked about before in case alone."""
        known = len(self._folded)
        self._folded.add(hashlib.blake2b(name.casefold().encode(), digest_size=16).digest())
        return len(self._folded) == known

    def file(self, name: str, place: Place) -> None:
        """Note a regular file. Raises SourceDamagedError."""
        if name in self.files:
            raise SourceDamagedError(name, _TWICE)
        if name in self.folders or not name:
            raise SourceDamagedError(name or self._label, _BOTH)
        self.folder(name.rpartition("/")[0])
        self.files[name] = len(self._places)
        self._places.extend(place)

    def place(self, name: str) -> Place:
        """Return where a file is."""
        at = self.files[name]
        offset, size, mtime_ns = self._places[at : at + 3]
        return offset, size, mtime_ns

    def end(self) -> None:
        """Forget what only a further entry would be compared with."""
        self._folded.clear()
        self.folders.clear()

    def unpack(self, count: int) -> None:
        """Count bytes that came out of a packed source. Raises SourceDamagedError."""
        self._unpacked += count
        if self._unpacked > UNPACKED_BYTES:
            raise SourceDamagedError(self._label, _TOO_LARGE)
        check_ratio(self._label, self._unpacked, self._packed)


def check_ratio(name: str, unpacked: int, packed: int) -> None:
    """Refuse what unpacks to much more than it is. Raises SourceDamagedError."""
    if unpacked > max(RATIO_BYTES, RATIO * packed):
        raise SourceDamagedError(name, _BOMB)


def fault(name: str) -> str:
    """Return why no source may have an entry of this name, "" where it may."""
    if not is_text(name):
        return "its name is not UTF-8"
    parts, size = name.split("/"), len(name.encode())
    rules = (
        (name.startswith("/") or not name, "its name is absolute or empty"),
        (not {"\0", "\\"}.isdisjoint(name), "its name has a NUL or a backslash"),
        (not {"", ".", ".."}.isdisjoint(parts), "its name leads elsewhere"),
        (len(parts) > DEPTH, f"it lies more than {DEPTH} folders deep"),
        (size > _NAME_BYTES, f"its name has more than {_NAME_BYTES} bytes"),
    )
    return next((why for broken, why in rules if broken), "")
