"""A folder, an archive or one file, opened as a source of an import. Blocks.

Rules of this file
- What a person names may be reached through links; below it none is followed, and what is no
  regular file is not opened.
- An archive is unpacked whole, and within all bounds, before a byte of it is used. It goes into one
  file without a name, which vanishes with the process, whatever ends that. No name of an archive
  ever becomes a path of this disk here.
- An archive in an archive is a file like any other.
"""

import gzip
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from typing import BinaryIO, cast

from memd.core.errors import MemdError
from memd.core.names import is_text
from memd.core.yielding import yield_to_requests
from memd.files.directory import Directory, UnwrittenFileError, cause_of
from memd.portable.errors import SourceDamagedError, SourceMissingError
from memd.portable.intake import CLASH, IS_LINK, IS_SPECIAL, Intake, PackedFile, Pieces, fault
from memd.portable.manifest import MANIFEST
from memd.portable.tar import Unpacked, tar_members
from memd.portable.values import FILE_BYTES
from memd.portable.zip import ZipArchive

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NOT_ABSOLUTE = "it is named by an absolute path alone"
_NOT_PLAIN = "it is neither a file nor a folder"
_CHANGED = "it is gone, or was changed while it was read"
_OF_PROGRAMS = (".git", ".hg", ".svn")  # folders that hold nobody's words
_HEAD_BYTES = 512
_TAR_SIGN = slice(257, 262)


class OpenSource:
    """Files of a folder, an archive or one file, as ``ImportSource`` has them.

    ``left_out`` is what was passed over because it is no regular file.
    """

    def __init__(self, intake: Intake, holder: Directory | BinaryIO | FileIO) -> None:
        self.left_out = intake.left_out
        self._intake, self._holder = intake, holder
        self._names = tuple(sorted(intake.files))
        intake.end()

    def names(self) -> tuple[str, ...]:
        """All regular files, sorted."""
        return self._names

    def size(self, name: str) -> int:
        """Bytes of one file."""
        return self._intake.place(name)[1]

    def mtime_ns(self, name: str) -> int:
        """When it was changed last, in ns since 1970; 0 where nobody says."""
        return self._intake.place(name)[2]

    def read(self, name: str) -> bytes:
        """One file whole. Raises SourceDamagedError, also for one that is too large."""
        yield_to_requests()
        offset, size, _ = self._intake.place(name)
        if size > FILE_BYTES:
            why = f"it has {size:,} bytes, and a file may have {FILE_BYTES:,}"
            raise SourceDamagedError(name, why)
        content = self._content(name, offset, size)
        if len(content) != size:
            raise SourceDamagedError(name, _CHANGED)
        return content

    def _content(self, name: str, offset: int, size: int) -> bytes:
        try:
            if not isinstance(self._holder, Directory):
                return os.pread(self._holder.fileno(), size, offset)
            answer = self._holder.read(name, size)
        except OSError as error:
            raise SourceDamagedError(name, cause_of(error)) from error
        except MemdError as error:
            raise SourceDamagedError(name, error.sentence) from error
        return answer[0] if answer else b""


@contextmanager
def open_source(path: str, staging: str) -> Iterator[OpenSource]:
    """Hold open what a person named; an archive is unpacked into a file below ``staging``.

    Raises SourceMissingError, SourceDamagedError and UnwrittenFileError.
    """
    label = os.path.basename(path.rstrip("/"))
    with _opened(path) as holder:
        if isinstance(holder, Directory):
            intake = Intake(label)
            _walk(holder, intake)
            yield OpenSource(intake, holder)
            return
        status = os.fstat(holder.fileno())
        intake = Intake(label, status.st_size)
        members = _members(holder, status.st_size, label, intake)
        if members is None:
            intake.file(intake.entry(label), (0, status.st_size, status.st_mtime_ns))
            yield OpenSource(intake, holder)
            return
        with _staged(staging) as staged:
            _unpack(members, intake, staged, staging)
            _strip(intake)
            yield OpenSource(intake, staged)


@contextmanager
def _opened(path: str) -> Iterator[Directory | BinaryIO]:
    """Hold a folder or a regular file open. Raises SourceMissingError."""
    if not path.startswith("/") or "\0" in path or not is_text(path):
        raise SourceMissingError(path, _NOT_ABSOLUTE)
    try:
        mode = os.stat(path).st_mode
        holder: Directory | BinaryIO | None = None
        if stat.S_ISDIR(mode):
            holder = Directory(path)
        elif stat.S_ISREG(mode):  # a device is not even opened: that may do something
            holder = os.fdopen(os.open(path, _FLAGS), "rb")
            if not stat.S_ISREG(os.fstat(holder.fileno()).st_mode):
                holder.close()
                holder = None
    except OSError as error:
        raise SourceMissingError(path, cause_of(error)) from error
    except MemdError as error:
        raise SourceMissingError(path, error.sentence) from error
    if holder is None:
        raise SourceMissingError(path, _NOT_PLAIN)
    try:
        yield holder
    finally:
        holder.close()


def _walk(directory: Directory, intake: Intake) -> None:
    """Note all regular files below a folder. Raises SourceDamagedError."""
    folders = [""]
    while folders:
        folder = folders.pop()
        before = f"{folder}/" if folder else ""
        try:
            with directory.folder(folder) as fd:
                for entry in os.scandir(fd) if fd is not None else ():
                    yield_to_requests()
                    name = before + entry.name
                    if _is_folder(entry, name, intake):
                        folders.append(name)
        except OSError as error:
            intake.left_out.add(folder, cause_of(error))
        except SourceDamagedError:
            raise
        except MemdError as error:
            intake.left_out.add(folder, error.sentence)


def _is_folder(entry: "os.DirEntry[str]", name: str, intake: Intake) -> bool:
    """Note one entry of a folder, and say whether it is a folder to be looked into."""
    why = IS_LINK if entry.is_symlink() else fault(name)
    if why:
        intake.left_out.add(name, why)
        return False
    name = intake.entry(name)
    if entry.is_dir(follow_symlinks=False):
        return entry.name not in _OF_PROGRAMS
    if not entry.is_file(follow_symlinks=False) or intake.clashes(name):
        intake.left_out.add(name, CLASH if entry.is_file(follow_symlinks=False) else IS_SPECIAL)
        return False
    status = entry.stat(follow_symlinks=False)
    intake.file(name, (0, status.st_size, status.st_mtime_ns))
    return False


def _members(
    file: BinaryIO, size: int, label: str, intake: Intake
) -> Iterator[tuple[PackedFile, Pieces]] | None:
    """Return the members of an archive, ``None`` for a file that is none."""
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return ZipArchive(file, size, label, intake.unpack).members()
    if head.startswith(b"\x1f\x8b"):
        plain = cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb"))
        return tar_members(Unpacked(plain, label, intake.unpack), label)
    if head[_TAR_SIGN] == b"ustar":
        return tar_members(Unpacked(file, label, intake.unpack), label)
    return None


@contextmanager
def _staged(folder: str) -> Iterator[FileIO]:
    """Hold a file open that has no name. Raises UnwrittenFileError."""
    try:
        file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise UnwrittenFileError(folder, cause_of(error)) from error
    try:
        yield file
    finally:
        file.close()


def _unpack(
    members: Iterator[tuple[PackedFile, Pieces]], intake: Intake, staged: FileIO, folder: str
) -> None:
    """Copy the content of an archive's members. Raises SourceDamagedError, UnwrittenFileError."""
    offset = 0
    for member, pieces in members:
        yield_to_requests()
        name = intake.entry(member.name)
        if member.why_not:
            intake.left_out.add(name, member.why_not)
        elif member.folder:
            intake.folder(name)
        else:
            intake.file(name, (offset, member.size, member.mtime_ns))
            if intake.clashes(name):
                raise SourceDamagedError(name, CLASH)
            offset += member.size
            for piece in pieces:
                _write(staged, piece, folder)


def _strip(intake: Intake) -> None:
    """Take the one folder off the names of an export that somebody packed with its folder."""
    folder = next(iter(intake.files), "").partition("/")[0] + "/"
    if f"{folder}{MANIFEST}" in intake.files:
        inside = {name.removeprefix(folder): at for name, at in intake.files.items()}
        if all(name.startswith(folder) for name in intake.files):
            intake.files = inside


def _write(file: FileIO, piece: bytes, folder: str) -> None:
    rest = memoryview(piece)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise UnwrittenFileError(folder, cause_of(error)) from error
