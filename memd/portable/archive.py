"""Open a folder, an archive or one file as the source of an import. Blocks.

Rules of this file
- The path that a person names may have links; below it no link is followed, and only regular files
  are opened.
- An archive is unpacked as a whole, within all limits, before any of it is used. Its content goes
  into one file without a name, which vanishes with the process however that ends. Names in an
  archive never become paths on this disk.
- An archive in an archive is a file like any other.
"""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from typing import BinaryIO

from memd.base.errors import Invalid, MemdError
from memd.base.names import is_text
from memd.base.yielding import yield_to_requests
from memd.portable.errors import source_damaged, source_missing
from memd.portable.intake import CLASH, IS_LINK, IS_SPECIAL, Intake, reason_against_name
from memd.portable.manifest import MANIFEST
from memd.portable.packed import is_archive, unpack
from memd.portable.values import FILE_BYTES
from memd.store.directory import Directory, cause_of, unwritable

# Not blocking: the path may have become a pipe since it was checked.
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NOT_ABSOLUTE = "it is named by an absolute path alone"
_NOT_FILE_OR_FOLDER = "it is neither a file nor a folder"
_CHANGED = "it is gone, or was changed while it was read"
_PROGRAM_FOLDERS = (".git", ".hg", ".svn")  # folders that are not read
_HEAD_BYTES = 512  # enough to recognise an archive


class OpenSource:
    """An ``ImportSource`` that reads from a folder, an unpacked archive or one file.

    ``left_out`` lists the entries that are no regular files. ``holder`` is the folder, the file, or
    the file into which an archive was unpacked; the intake's places are offsets in that file.
    """

    def __init__(self, intake: Intake, holder: Directory | BinaryIO | FileIO) -> None:
        self.left_out = intake.left_out
        self._intake, self._holder = intake, holder
        self._names = tuple(sorted(intake.files))
        intake.end()

    def names(self) -> tuple[str, ...]:
        """Return the names of all regular files, sorted."""
        return self._names

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        _, size, _ = self._intake.place(name)
        return size

    def mtime_ns(self, name: str) -> int:
        """Return when a file was last changed, in ns since 1970; 0 if unknown."""
        _, _, mtime_ns = self._intake.place(name)
        return mtime_ns

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises Invalid, also if it is above 32 MiB."""
        yield_to_requests()
        offset, size, _ = self._intake.place(name)
        if size > FILE_BYTES:
            why = f"it has {size:,} bytes, and a file may have {FILE_BYTES:,}"
            raise source_damaged(name, why)
        content = self._read_bytes(name, offset, size)
        if len(content) != size:
            raise source_damaged(name, _CHANGED)
        return content

    def _read_bytes(self, name: str, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes of a file; the offset is that in an unpacked archive.

        Raises Invalid.
        """
        try:
            if not isinstance(self._holder, Directory):
                return os.pread(self._holder.fileno(), size, offset)
            content_and_status = self._holder.read(name, size)
        except OSError as error:
            raise source_damaged(name, cause_of(error)) from error
        except MemdError as error:
            raise source_damaged(name, error.sentence) from error
        return content_and_status[0] if content_and_status else b""


@contextmanager
def open_source(path: str, staging: str) -> Iterator[OpenSource]:
    """Open a path as a source; an archive is unpacked into a nameless file below ``staging``.

    Raises NotFound, Invalid and Storage.
    """
    label = os.path.basename(path.rstrip("/")) or path
    with _open_path(path) as holder:
        if isinstance(holder, Directory):  # a folder
            intake = Intake(label)
            _add_folder(holder, intake)
            yield OpenSource(intake, holder)
            return
        status = os.fstat(holder.fileno())
        intake = Intake(label, status.st_size)
        if not is_archive(os.pread(holder.fileno(), _HEAD_BYTES, 0)):
            intake.file(intake.entry(label), (0, status.st_size, status.st_mtime_ns))
            yield OpenSource(intake, holder)
            return
        with _nameless_file(staging) as staged:
            unpack(holder, staged, staging, label, intake)
            _strip_folder(intake)
            yield OpenSource(intake, staged)


@contextmanager
def _open_path(path: str) -> Iterator[Directory | BinaryIO]:
    """Open a folder or a regular file, and close it at the end. Raises NotFound."""
    if not path.startswith("/") or "\0" in path or not is_text(path):
        raise source_missing(path, _NOT_ABSOLUTE)
    try:
        holder = _open_folder_or_file(path)
    except OSError as error:
        raise source_missing(path, cause_of(error)) from error
    except MemdError as error:
        raise source_missing(path, error.sentence) from error
    if holder is None:
        raise source_missing(path, _NOT_FILE_OR_FOLDER)
    try:
        yield holder
    finally:
        holder.close()


def _open_folder_or_file(path: str) -> Directory | BinaryIO | None:
    """Return an open folder or regular file, ``None`` for all else. Raises OSError, MemdError."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return Directory(path)
    if not stat.S_ISREG(mode):  # a device is not opened: that alone can have an effect
        return None
    file = os.fdopen(os.open(path, _OPEN_FLAGS), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()  # the path was replaced since it was checked
    return None


def _add_folder(directory: Directory, intake: Intake) -> None:
    """Add all regular files below a folder to the intake; folders that fail are left out.

    Raises Invalid above a limit of the intake.
    """
    folders = [""]
    while folders:
        folder = folders.pop()
        prefix = f"{folder}/" if folder else ""
        try:
            with directory.folder(folder) as fd:
                for entry in os.scandir(fd) if fd is not None else ():
                    yield_to_requests()
                    name = prefix + entry.name
                    if _add_entry(entry, name, intake):
                        folders.append(name)
        except OSError as error:
            intake.left_out.add(folder, cause_of(error))
        except Invalid:
            raise
        except MemdError as error:
            intake.left_out.add(folder, error.sentence)


def _add_entry(entry: "os.DirEntry[str]", name: str, intake: Intake) -> bool:
    """Add an entry of a folder if it is a regular file; return whether it is a folder to read.

    Links, special files and bad names are left out, and so is a file whose name differs from the
    name of an earlier one only in case.
    """
    why = IS_LINK if entry.is_symlink() else reason_against_name(name)
    if why:
        intake.left_out.add(name, why)
        return False
    name = intake.entry(name)
    if entry.is_dir(follow_symlinks=False):
        return entry.name not in _PROGRAM_FOLDERS
    if not entry.is_file(follow_symlinks=False):
        intake.left_out.add(name, IS_SPECIAL)
        return False
    if intake.clashes(name):
        intake.left_out.add(name, CLASH)
        return False
    status = entry.stat(follow_symlinks=False)
    intake.file(name, (0, status.st_size, status.st_mtime_ns))
    return False


@contextmanager
def _nameless_file(folder: str) -> Iterator[FileIO]:
    """Create a file without a name in a folder, open until the end. Raises Storage."""
    try:
        file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        yield file
    finally:
        file.close()


def _strip_folder(intake: Intake) -> None:
    """Remove the folder from all names of a memd export that was packed with its folder."""
    folder = next(iter(intake.files), "").partition("/")[0] + "/"
    is_packed_folder = all(name.startswith(folder) for name in intake.files)
    if is_packed_folder and f"{folder}{MANIFEST}" in intake.files:
        intake.files = {name.removeprefix(folder): at for name, at in intake.files.items()}
