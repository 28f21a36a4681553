"""List the files of a source while it is read, and check them against an import's limits. Pure.

Rules of this file
- Entries are counted as they are read, so that nothing above a limit is kept in memory.
- A name that leads out of the archive, or a name that occurs twice, makes the whole archive
  damaged: its maker cannot be trusted. Entries that are no regular files are skipped and listed.
"""

import hashlib
from array import array

from memd.base.names import is_text
from memd.portable.errors import source_damaged
from memd.portable.values import LeftOutList

ENTRIES = 100_000  # the most of one source, with folders and entries that are left out
UNPACKED_BYTES = 1024 * 1024 * 1024  # the most of one archive
RATIO = 200  # the most unpacked bytes for each packed one
RATIO_BYTES = 16 * 1024 * 1024  # below, any ratio is allowed: a few files may be all zeros
DEPTH = 16  # parts of a name; a memory directory is scanned to the same depth
_NAME_BYTES = 1024  # the longest name
_ALL_NAMES_BYTES = 8 * 1024 * 1024  # limit for all names of a source together

IS_LINK, IS_SPECIAL = "it is a link", "it is no regular file"
TRUNCATED = "it ends in the middle"
_TOO_MANY_ENTRIES = f"it has more than {ENTRIES:,} entries"
_TOO_LARGE = f"it has more than {UNPACKED_BYTES // 1024**3} GiB unpacked"
_RATIO_TOO_HIGH = f"it unpacks to more than {RATIO} times its size"
_NAMES_TOO_LONG = f"its names have more than {_ALL_NAMES_BYTES // 1024**2} MiB together"
_NAMED_TWICE = "it is there twice"
CLASH = "its name differs from another one in case alone"
_FILE_AND_FOLDER = "it is a file and a folder"

Place = tuple[int, int, int]  # a file's offset in the unpacked bytes, size, and mtime in ns


class Intake:
    """The files of a source by name, counted and checked as they are added.

    ``label`` names the source in errors, ``packed`` is its size in bytes.
    """

    def __init__(self, label: str, packed: int = 0) -> None:
        self.files: dict[str, int] = {}  # from a name to the index of its place in ``_places``
        self.folders: set[str] = set()
        self.left_out = LeftOutList()
        self._label, self._packed_bytes = label, packed
        self._entry_count = self._unpacked_bytes = self._name_bytes = 0  # totals so far
        # Hashes of case-folded names: they need less memory than long names.
        self._folded_hashes: set[bytes] = set()
        # Three numbers for each file: offset, size and mtime. Tuples need ten times the memory.
        self._places = array("q")

    def entry(self, name: str) -> str:
        """Count an entry and return its checked name, without leading ``./`` and trailing ``/``.

        "" is the source itself. Raises Invalid for a bad name or above a limit.
        """
        self._entry_count += 1
        if self._entry_count > ENTRIES:
            raise source_damaged(self._label, _TOO_MANY_ENTRIES)
        plain = name.removesuffix("/")
        while plain.startswith("./"):
            plain = plain[2:]
        if plain == ".":
            return ""
        if why := reason_against_name(plain):
            raise source_damaged(name, why)
        self._name_bytes += len(plain.encode())
        if self._name_bytes > _ALL_NAMES_BYTES:
            raise source_damaged(self._label, _NAMES_TOO_LONG)
        return plain

    def folder(self, name: str) -> None:
        """Add a folder and those above it. Raises Invalid if one of them is a file."""
        while name and name not in self.folders:
            if name in self.files:
                raise source_damaged(name, _FILE_AND_FOLDER)
            self.folders.add(name)
            name = name.rpartition("/")[0]

    def clashes(self, name: str) -> bool:
        """Return whether a name equals an earlier call's name, ignoring case; remember it."""
        digest = hashlib.blake2b(name.casefold().encode(), digest_size=16).digest()
        is_known = digest in self._folded_hashes
        self._folded_hashes.add(digest)
        return is_known

    def file(self, name: str, place: Place) -> None:
        """Add a regular file. Raises Invalid if its name is taken."""
        if name in self.files:
            raise source_damaged(name, _NAMED_TWICE)
        if name in self.folders or not name:
            raise source_damaged(name or self._label, _FILE_AND_FOLDER)
        self.folder(name.rpartition("/")[0])
        self.files[name] = len(self._places)
        self._places.extend(place)

    def place(self, name: str) -> Place:
        """Return the offset, size and mtime in ns of a file."""
        start = self.files[name]
        offset, size, mtime_ns = self._places[start : start + 3]
        return offset, size, mtime_ns

    def end(self) -> None:
        """Free the memory that is only needed while entries are added."""
        self._folded_hashes.clear()
        self.folders.clear()

    def unpack(self, count: int) -> None:
        """Count bytes unpacked from the source. Raises Invalid above the limits."""
        self._unpacked_bytes += count
        if self._unpacked_bytes > UNPACKED_BYTES:
            raise source_damaged(self._label, _TOO_LARGE)
        if self._unpacked_bytes > max(RATIO_BYTES, RATIO * self._packed_bytes):
            raise source_damaged(self._label, _RATIO_TOO_HIGH)


def reason_against_name(name: str) -> str:
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
    return next((why for is_broken, why in rules if is_broken), "")
