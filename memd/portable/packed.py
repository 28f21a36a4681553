"""Unpack a tar, tar.gz or zip into one file without a name, with tarfile and zipfile. Blocks.

Rules of this file
- Sizes are counted while bytes are unpacked, and headers while they are read. So nothing above a
  limit is ever in memory or on the disk (tests/soak/test_hostile_archives.py).
- Nothing is extracted: names in an archive never become paths on this disk.
"""

import gzip
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import FileIO
from itertools import pairwise
from typing import BinaryIO, cast

from memd.base.yielding import yield_to_requests
from memd.portable.errors import source_damaged
from memd.portable.intake import CLASH, ENTRIES, IS_LINK, IS_SPECIAL, TRUNCATED, Intake
from memd.store.directory import unwritable

_HEAD_BYTES = 512  # enough to recognise an archive; also the size of a tar's blocks
_TAR_SIGN = slice(257, 262)  # where a tar's first header says "ustar"
_PIECE_BYTES = 64 * 1024  # that are in memory at once
_LONG_HEADERS = 8 * 1024 * 1024  # of a tar's long names and attributes together
_ENTRY_HEADERS = 2048  # of a tar's entry without these
_LONG_DIRECTORY = 32 * 1024 * 1024  # of a zip
_ZIP_ENTRY = b"PK\1\2"
_LOCAL_HEADER = 30  # the least bytes before the content of a zip's file
_UNIX = 3  # the system whose file modes an entry of a zip has
_NANOSECONDS = 1_000_000_000
_LATEST_SECONDS = 8**11  # no tar has a later time without extensions
# What the two modules raise for archives that somebody damaged.
_ERRORS = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError,
    OSError, ValueError, ArithmeticError, LookupError, RecursionError, RuntimeError,
)  # fmt: skip
_HEADERS_TOO_LARGE = "its headers are too large"
_TOO_MANY_ENTRIES = f"it has more than {ENTRIES:,} entries"
_OVERLAPPING = "files of it share their bytes"
_IS_ENCRYPTED = "it is encrypted"
_UNKNOWN_METHOD = "it is packed in a way that memd does not read"


def is_archive(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is a tar, tar.gz or zip."""
    return _is_zip(head) or head.startswith(b"\x1f\x8b") or head[_TAR_SIGN] == b"ustar"


def unpack(file: BinaryIO, staged: FileIO, folder: str, label: str, intake: Intake) -> None:
    """Write the content of an archive into ``staged``, and its files into the intake.

    Their places there are offsets in ``staged``. ``label`` names the archive in errors, ``folder``
    the place of ``staged``. Raises Invalid and Storage.
    """
    head = os.pread(file.fileno(), _HEAD_BYTES, 0)
    output = _Output(staged, folder, intake)
    with _named_errors(label):
        if _is_zip(head):
            _unpack_zip(cast("BinaryIO", _ZipFile(file, label)), output, label)
        else:
            plain = gzip.GzipFile(fileobj=file) if head.startswith(b"\x1f\x8b") else file
            output.write(cast("BinaryIO", plain))
            _list_tar(_TarHeaders(staged, label), label, intake)


def _is_zip(head: bytes) -> bool:
    return head.startswith((b"PK\3\4", b"PK\5\6"))


@contextmanager
def _named_errors(label: str) -> Iterator[None]:
    """Turn the errors of the two modules into Invalid, which names the archive."""
    try:
        yield
    except _ERRORS as error:
        why = TRUNCATED if isinstance(error, EOFError) else str(error) or type(error).__name__
        raise source_damaged(label, why) from error


class _Output:
    """The file that takes what is unpacked; ``size`` is how many bytes it has."""

    def __init__(self, staged: FileIO, folder: str, intake: Intake) -> None:
        self.size = 0
        self.intake = intake
        self._staged, self._folder = staged, folder

    def write(self, content: BinaryIO) -> int:
        """Write all of a stream; return how many bytes. Raises as ``unpack``."""
        begin = self.size
        while piece := content.read(_PIECE_BYTES):
            yield_to_requests()
            self.intake.unpack(len(piece))
            self.size += len(piece)
            unwritten = memoryview(piece)
            try:
                while unwritten:
                    unwritten = unwritten[self._staged.write(unwritten) :]
            except OSError as error:
                raise unwritable(self._folder, error) from error
        return self.size - begin


class _TarHeaders:
    """A tar as tarfile reads it, which asks for headers alone, and for no more than they may have.

    ``left`` is how many bytes it may still ask for.
    """

    def __init__(self, staged: FileIO, label: str) -> None:
        self.left = _LONG_HEADERS
        self._staged, self._label, self._offset = staged, label, 0

    def read(self, size: int) -> bytes:
        """Return the next bytes, fewer at the end. Raises Invalid."""
        self.left -= size  # also at the end, where tarfile may ask for ever
        if self.left < 0:
            raise source_damaged(self._label, _HEADERS_TOO_LARGE)
        content = os.pread(self._staged.fileno(), size, self._offset)
        self._offset += len(content)
        return content

    def seek(self, offset: int) -> int:
        """Go to an offset."""
        self._offset = offset
        return offset

    def tell(self) -> int:
        """Return the present offset."""
        return self._offset


def _list_tar(headers: _TarHeaders, label: str, intake: Intake) -> None:
    """Add the members of an unpacked tar to the intake."""
    with tarfile.open(fileobj=cast("BinaryIO", headers), mode="r:", encoding="utf-8") as archive:
        while member := archive.next():
            yield_to_requests()
            headers.left += _ENTRY_HEADERS
            archive.members.clear()  # type: ignore[attr-defined] # it would keep all of them
            name = intake.entry(member.name)
            if member.isdir():
                intake.folder(name)
            elif member.isreg() and not member.issparse():
                _add(intake, name, member.offset_data, member.size, member.mtime)
            else:
                is_link = member.issym() or member.islnk()
                intake.left_out.add(name, IS_LINK if is_link else IS_SPECIAL)
        # It also ends where no header follows, and then has no block of zeros there.
        headers.seek(archive.offset)
        if headers.read(_HEAD_BYTES) != bytes(_HEAD_BYTES):
            raise source_damaged(label, TRUNCATED)


class _ZipFile:
    """A zip as zipfile reads it, whose directory has no more entries than an import may have."""

    def __init__(self, file: BinaryIO, label: str) -> None:
        self._file, self._label = file, label
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises Invalid for a directory that is too long."""
        content = self._file.read(min(size, _LONG_DIRECTORY) if size >= 0 else _LONG_DIRECTORY)
        if content.startswith(_ZIP_ENTRY) and content.count(_ZIP_ENTRY) > ENTRIES:
            raise source_damaged(self._label, _TOO_MANY_ENTRIES)
        return content


def _unpack_zip(file: BinaryIO, output: _Output, label: str) -> None:
    """Write the content of a zip's files, and add its entries to the intake."""
    intake = output.intake
    with zipfile.ZipFile(file) as archive:
        members = sorted(archive.infolist(), key=lambda member: member.header_offset)
        for member, following in pairwise(members):
            end = member.header_offset + _LOCAL_HEADER + member.compress_size
            if following.header_offset < end:
                raise source_damaged(label, _OVERLAPPING)
        for member in members:
            # zipfile cuts names at a NUL.
            name = intake.entry(member.orig_filename)
            kind = stat.S_IFMT(member.external_attr >> 16) if member.create_system == _UNIX else 0
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                intake.left_out.add(name, IS_LINK if kind == stat.S_IFLNK else IS_SPECIAL)
                continue
            if member.is_dir():
                intake.folder(name)
                continue
            if member.flag_bits & 1:
                raise source_damaged(name, _IS_ENCRYPTED)
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise source_damaged(name, _UNKNOWN_METHOD)
            begin = output.size
            with archive.open(member) as content:
                size = output.write(cast("BinaryIO", content))
            if size != member.file_size:
                raise source_damaged(name, TRUNCATED)
            _add(intake, name, begin, size, _seconds_of(member))


def _seconds_of(member: zipfile.ZipInfo) -> float:
    """Return when a file of a zip was changed, read as UTC; 0 if unknown."""
    try:
        return datetime(*member.date_time, tzinfo=UTC).timestamp()
    except ValueError:
        return 0


def _add(intake: Intake, name: str, offset: int, size: int, seconds: float) -> None:
    """Add a file that lies at an offset of the staged file. Raises Invalid."""
    if size < 0:
        raise source_damaged(name, TRUNCATED)
    if intake.clashes(name):
        raise source_damaged(name, CLASH)
    known = min(max(seconds, 0), _LATEST_SECONDS)
    intake.file(name, (offset, size, int(known * _NANOSECONDS)))
