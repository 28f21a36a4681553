"""Read instruction files from the disk, for the port of ``values.py``. Blocks; raises nothing.

Rules of this file
- A path is resolved first, since people link their instruction files. Then the real path is opened
  without following a link (``files/directory.py``). So a file that changed meanwhile is refused, a
  FIFO never blocks, and the type is that of the opened file
  (tests/instructions/test_disk.py::test_what_is_no_file_of_the_user_has_a_reason).
- A text comes from the cache only if path, size, mtime, inode, device and ctime are unchanged
  (tests/instructions/test_disk.py::test_a_changed_file_is_read_anew).
"""

import errno
import os
import stat
from itertools import islice

from memd.base.errors import MemdError, Refused, TooLarge
from memd.base.recent import Recent
from memd.instructions.values import (
    FILE_BYTES,
    FOLDER_ENTRIES,
    LONG_CHARACTERS,
    DiskEntry,
    DiskText,
)
from memd.store.directory import Directory, cause_of

_CACHED_FILES = 512  # none of them above LONG_CHARACTERS: 20 MB at most
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
_TOO_LARGE = f"it is larger than {FILE_BYTES >> 20} MiB"
_NO_FILE = "it is no regular file"
_Identity = tuple[int, ...]


class RealDisk:
    """The disk, with a cache of texts. Threads may use one at the same time."""

    def __init__(self) -> None:
        # By real path.
        self._texts: Recent[str, tuple[_Identity, DiskText]] = Recent(_CACHED_FILES)

    def read(self, path: str) -> DiskText:
        """Return the text of a file, cached while the file is unchanged, or why there is none."""
        real = path
        try:
            status = os.lstat(path)  # quick, since most paths that are tried do not exist
            identity, text = self._texts.get(path, (None, None))
            if text is not None and identity == _identity(status):
                return text  # most files are read by their real paths
            real = os.path.realpath(path, strict=True)
            status = os.lstat(real)
        except OSError as error:
            is_missing = error.errno in _MISSING
            return _missing(real) if is_missing else DiskText(real, why_not=_why(error))
        except ValueError:  # a NUL, or half a character: no file has such a name
            return _missing(real)
        identity, text = self._texts.get(real, (None, None))
        if text is not None and identity == _identity(status):
            return text
        if not stat.S_ISREG(status.st_mode):
            return DiskText(real, why_not=_NO_FILE)
        return self._fresh(real)

    def entries(self, folder: str) -> tuple[DiskEntry, ...]:
        """Return what ``InstructionDisk.entries`` does."""
        try:
            os.lstat(folder)
            real = os.path.realpath(folder)
            with os.scandir(real) as entries:
                listed = [_entry(real, entry) for entry in islice(entries, FOLDER_ENTRIES)]
        except (OSError, ValueError):
            return ()
        return tuple(sorted(listed, key=lambda entry: entry.name))

    def real(self, path: str) -> str:
        """Return a path without symbolic links, the path itself if nothing is there."""
        try:
            os.lstat(path)  # quick, since most paths that are tried do not exist
            return os.path.realpath(path)
        except (OSError, ValueError):
            return path

    def stamp(self, path: str) -> tuple[int, ...]:
        """Return what ``InstructionDisk.stamp`` does."""
        try:
            status = os.lstat(path)
        except (OSError, ValueError):
            return ()
        if stat.S_ISDIR(status.st_mode):
            return status.st_ino, status.st_dev, status.st_mode, status.st_uid
        return _identity(status)

    def _fresh(self, real: str) -> DiskText:
        """Read a file by its real path; put its text into the cache unless it is long."""
        try:
            with Directory("/") as top:
                read = top.read(real.lstrip("/"), FILE_BYTES)
        except (MemdError, OSError) as error:
            return DiskText(real, why_not=_why(error))
        if read is None:
            return _missing(real)
        content, status = read
        text = DiskText(real, content.decode("utf-8", errors="replace"))
        if len(content) <= LONG_CHARACTERS:
            self._texts[real] = _identity(status), text
        return text


def _missing(path: str) -> DiskText:
    """Return the answer for a path without a file."""
    return DiskText(path, why_not="there is no such file", missing=True)


def _entry(folder: str, entry: "os.DirEntry[str]") -> DiskEntry:
    """Return an entry of a folder whose real path is given."""
    path = os.path.join(folder, entry.name)
    try:
        real = os.path.realpath(path) if entry.is_symlink() else path
        return DiskEntry(entry.name, real, entry.is_dir())
    except OSError:  # a circle of links
        return DiskEntry(entry.name, path, folder=False)


def _identity(status: os.stat_result) -> _Identity:
    """Return numbers of which one changes if the file, its owner or its mode changes."""
    return (
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_dev,
    )


def _why(error: MemdError | OSError) -> str:
    """Return in words why a file is not read."""
    if isinstance(error, TooLarge):
        return _TOO_LARGE
    if isinstance(error, Refused):
        return str(error.facts["why"])
    cause = cause_of(error) if isinstance(error, OSError) else error.facts.get("cause", error)
    return f"it cannot be read: {cause}"
