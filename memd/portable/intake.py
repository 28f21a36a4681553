"""List the files of a source while it is read, and check them against an import's limits. Pure.

Rules of this file
- Entries are counted as they are read, so that nothing above a limit is kept in memory.
- A name that leads out of the archive, or a name that occurs twice, makes the whole archive
  damaged: its maker cannot be trusted. Entries that are no regular files are skipped and listed.
"""

import hashlib
from array import array
from collections.abc import Iterator

from msgspec import Struct

from memd.core.names import is_text
from memd.portable.errors import SourceDamagedError
from memd.portable.values import LeftOutList

ENTRIES = 100_000
UNPACKED_BYTES = 1024 * 1024 * 1024
RATIO = 200  # the most unpacked bytes for each packed one
RATIO_BYTES = 16 * 1024 * 1024  # below, any ratio is allowed: a few files may be all zeros
DEPTH = 16  # parts of a name; a memory directory is scanned to the same depth
PIECE_BYTES = 64 * 1024  # of a file that are in memory at once
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

Place = tuple[int, int, int]  # a file's offset in the unpacked bytes, size, and mtime in ns
Pieces = Iterator[bytes]


class PackedFile(Struct, frozen=True):
    """An entry of an archive. ``why_not`` is "" for a file or folder, else why it is neither."""

    name: str
    size: int = 0
    mtime_ns: int = 0
    folder: bool = False
    why_not: str = ""


class Intake:
    """The files of a source by name, counted and checked as they are added.

    ``label`` names the source in errors, ``packed`` is its size in bytes.
    """

    def __init__(self, label: str, packed: int = 0) -> None:
        self.files: dict[str, int] = {}  # from a name to the index of its place in ``_places``
        self.folders: set[str] = set()
        self.left_out = LeftOutList()
        self._label, self._packed = label, packed
        self._entries = self._unpacked = self._names = 0
        self._folded: set[bytes] = set()  # hashes of case-folded names: smaller than long names
        self._places = array("q")  # offset, size and mtime in turn: a tenth of tuples' memory

    def entry(self, name: str) -> str:
        """Count an entry and return its checked name, without leading ``./`` and trailing ``/``.

        "" is the source itself. Raises SourceDamagedError for a bad name or above a limit.
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
        """Add a folder and those above it. Raises SourceDamagedError if one of them is a file."""
        while name and name not in self.folders:
            if name in self.files:
                raise SourceDamagedError(name, _BOTH)
            self.folders.add(name)
            name = name.rpartition("/")[0]

    def clashes(self, name: str) -> bool:
        """Return whether a name equals an earlier call's name, ignoring case; remember it."""
        known = len(self._folded)
        self._folded.add(hashlib.blake2b(name.casefold().encode(), digest_size=16).digest())
        return len(self._folded) == known

    def file(self, name: str, place: Place) -> None:
        """Add a regular file. Raises SourceDamagedError if its name is taken."""
        if name in self.files:
            raise SourceDamagedError(name, _TWICE)
        if name in self.folders or not name:
            raise SourceDamagedError(name or self._label, _BOTH)
        self.folder(name.rpartition("/")[0])
        self.files[name] = len(self._places)
        self._places.extend(place)

    def place(self, name: str) -> Place:
        """Return the offset, size and mtime in ns of a file."""
        at = self.files[name]
        offset, size, mtime_ns = self._places[at : at + 3]
        return offset, size, mtime_ns

    def end(self) -> None:
        """Free the memory that is only needed while entries are added."""
        self._folded.clear()
        self.folders.clear()

    def unpack(self, count: int) -> None:
        """Count bytes unpacked from the source. Raises SourceDamagedError above the limits."""
        self._unpacked += count
        if self._unpacked > UNPACKED_BYTES:
            raise SourceDamagedError(self._label, _TOO_LARGE)
        check_ratio(self._label, self._unpacked, self._packed)


def check_ratio(name: str, unpacked: int, packed: int) -> None:
    """Raise SourceDamagedError if unpacking gives more than ``RATIO`` times the packed size."""
    if unpacked > max(RATIO_BYTES, RATIO * packed):
        raise SourceDamagedError(name, _BOMB)


def fault(name: str) -> str:
    """Return why an entry's name is not allowed, "" if it is."""
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
