"""Writing an archive: beside its place, brought to the disk, and put there in one step. Blocks.

Rules of this file
- All files go into a folder beside the destination, whose name says what it is. Only once they are
  on the disk is it, or the tar made of it, renamed to the destination, which must not be there. So
  a death at any instant leaves the whole archive there or nothing.
- What a death leaves beside it is removed by the next export into the same folder. An export holds
  a lock on what it makes as long as it runs; what nobody holds is left over.
- The same records make the same bytes: no clock, no user, no name of this machine goes in.
"""

import fcntl
import os
import re
import secrets as tokens
import shutil
import stat
import struct
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from memd.core.errors import MemdError
from memd.core.text import iso_time, sha256
from memd.files.directory import Directory, cause_of
from memd.files.disk import FILE_MODE, Disk
from memd.portable.destination import Destination
from memd.portable.errors import DestinationError
from memd.portable.manifest import MANIFEST, SUMS, FileRecord, Manifest, encode, sum_line

_LEFT_OVER = re.compile(r"\.memd-export-[0-9a-f]{8}(?:\.tar\.gz)?\.tmp")
_LEVEL = 6  # of zlib
_GZIP_HEAD = b"\x1f\x8b\x08" + bytes(6) + b"\xff"  # no time, no name, no system
_BLOCK = tarfile.BLOCKSIZE
_LATEST = 8**11 - 1  # seconds; what a tar's header can hold
_LATEST_DAY = 253_402_214_400.0  # of the year 9999; later times have no ISO form
_TAKEN = "something of this name came there meanwhile; nothing was overwritten"
_HELD = "another export is at it"


class Staging:
    """A folder beside the destination in which an archive grows.

    Whoever opens it closes it, which removes whatever is not in place. All methods but that raise
    DestinationError.
    """

    def __init__(self, destination: Destination, disk: Disk) -> None:
        self._destination, self._disk = destination, disk
        self._parent = -1
        self._tree: Directory | None = None
        self._temp = self._packed = ""  # names of what is not in place

    def open(self) -> None:
        """Remove what earlier exports left beside the destination, and make the folder."""
        with self._named_errors():
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            self._parent = os.open(self._destination.folder, flags)
            _clean(self._parent)
            temp = f".memd-export-{tokens.token_hex(4)}.tmp"
            os.mkdir(temp, 0o700, dir_fd=self._parent)
            self._temp = temp
            self._tree = Directory(f"{self._destination.folder}/{temp}")
            _lock(self._tree.fd)

    def close(self) -> None:
        """Close all and remove what is not in place; what cannot be removed now is left over."""
        with suppress(OSError):
            if self._packed:
                self._disk.unlink(self._parent, self._packed)
        if self._temp:
            shutil.rmtree(self._temp, ignore_errors=True, dir_fd=self._parent)
        if self._tree is not None:
            self._tree.close()
        if self._parent >= 0:
            os.close(self._parent)

    def add(self, name: str, content: bytes, mtime_ns: int) -> FileRecord | None:
        """Write a file of the archive; return what the manifest says of it.

        ``None`` where this disk takes its name for that of another file of the archive.
        """
        with self._named_errors():
            try:
                self._write(name, content, mtime_ns)
            except FileExistsError:
                return None
        size = len(content)
        return FileRecord(path=name, sha256=sha256(content), bytes=size, mtime_ns=mtime_ns)

    def finish(self, manifest: Manifest) -> None:
        """Write manifest and sums, bring all to the disk and put it in its place."""
        files = sorted(_every(manifest), key=lambda file: file.path.encode())
        newest = max((file.mtime_ns for file in files), default=0)
        seconds = min(max(newest / 1e9, 0.0), _LATEST_DAY)
        manifest.made = iso_time(seconds) if files else ""
        text = encode(manifest)
        sums = [(sha256(text), MANIFEST), *((file.sha256, file.path) for file in files)]
        with self._named_errors():
            self._write(MANIFEST, text, newest)
            self._write(SUMS, b"".join(sum_line(*each) for each in sums), newest)
            if self._destination.packed:
                names = [(MANIFEST, newest), (SUMS, newest)]
                self._pack([*names, *((file.path, file.mtime_ns) for file in files)])
            else:
                self._sync([MANIFEST, SUMS, *(file.path for file in files)])
            self._place()

    def _write(self, name: str, content: bytes, mtime_ns: int) -> None:
        """Write a file that was not there; it is brought to the disk with all others."""
        with self._opened().parent(name, create=True) as (folder, last):
            file = self._disk.create(folder, last)
            try:
                self._disk.set_mode(file, FILE_MODE)
                _all(self._disk, file, content)
                self._disk.set_mtime(file, mtime_ns)
            finally:
                self._disk.close(file)

    def _sync(self, names: Iterable[str]) -> None:
        """Bring files and their folders to the disk."""
        tree = self._opened()
        if self._disk.sync_all(tree.fd):
            return
        folders = {""}
        for name in names:
            with tree.parent(name) as (folder, last):
                file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    self._disk.fsync(file)
                finally:
                    os.close(file)
            while name := os.path.dirname(name):
                folders.add(name)
        for name in sorted(folders, reverse=True):
            with tree.folder(name) as folder_fd:
                self._disk.sync_folder(tree.fd if folder_fd is None else folder_fd)

    def _pack(self, names: Iterable[tuple[str, int]]) -> None:
        """Make a tar.gz of the folder's files, in this order, and bring it to the disk."""
        tree = self._opened()
        packed = self._temp.replace(".tmp", ".tar.gz.tmp")
        file = self._disk.create(self._parent, packed)
        self._packed = packed
        try:
            _lock(file)
            self._disk.set_mode(file, FILE_MODE)
            for packed_part in _gzipped(_members(tree, names)):
                _all(self._disk, file, packed_part)
            self._disk.fsync(file)
        finally:
            self._disk.close(file)

    def _place(self) -> None:
        """Rename what is done to the destination; take it back where that does not last."""
        name, moved = self._destination.name, self._packed or self._temp
        move = self._disk.move if self._packed else self._disk.move_folder
        try:
            move(self._parent, moved, name)
        except FileExistsError as error:
            raise DestinationError(self._destination.path, _TAKEN) from error
        try:
            self._disk.sync_folder(self._parent)
        except OSError:
            move(self._parent, name, moved)
            raise
        if self._packed:
            self._packed = ""
        else:
            self._temp = ""

    def _opened(self) -> Directory:
        if self._tree is None:
            raise DestinationError(self._destination.path, _HELD)
        return self._tree

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn a failure of the disk into one that names the destination."""
        try:
            yield
        except DestinationError:
            raise
        except OSError as error:
            raise DestinationError(self._destination.path, cause_of(error)) from error
        except MemdError as error:
            raise DestinationError(self._destination.path, error.sentence) from error


def _all(disk: Disk, file: int, content: bytes) -> None:
    """Write all bytes. Raises OSError."""
    rest = memoryview(content)
    while rest:
        rest = rest[disk.write(file, rest) :]


def _every(manifest: Manifest) -> Iterator[FileRecord]:
    """Yield the files of a manifest, each by its name in the archive."""
    yield from manifest.files
    for project in manifest.projects:
        for file in project.files:
            yield FileRecord(
                path=f"projects/{project.id}/{file.path}",
                sha256=file.sha256,
                bytes=file.bytes,
                mtime_ns=file.mtime_ns,
            )


def _members(tree: Directory, names: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    """Yield the parts of a tar of files, with their times."""
    for name, mtime_ns in names:
        content = (tree.read(name, 2**62) or (b"",))[0]
        yield _header(name, len(content), mtime_ns)
        yield content
        yield bytes(-len(content) % _BLOCK)
    yield bytes(2 * _BLOCK)


def _gzipped(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield parts as one gzip member.

    ``GzipFile`` is not used: one that could not write tries again when it is collected.
    """
    packing, checksum, size = zlib.compressobj(_LEVEL, wbits=-zlib.MAX_WBITS), 0, 0
    yield _GZIP_HEAD
    for part in parts:
        checksum, size = zlib.crc32(part, checksum), size + len(part)
        yield packing.compress(part)
    yield packing.flush() + struct.pack("<II", checksum, size % 2**32)


def _header(name: str, size: int, mtime_ns: int) -> bytes:
    """Return the header of a member: nobody's, with the time of its file in seconds."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, FILE_MODE
    member.mtime = max(0, min(mtime_ns // 1_000_000_000, _LATEST))
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def _lock(file: int) -> None:
    """Hold a file or a folder as long as it is open."""
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _clean(parent: int) -> None:
    """Remove what exports that died left in a folder; what cannot be removed stays."""
    for name in os.listdir(parent):
        if _LEFT_OVER.fullmatch(name):
            with suppress(OSError):
                _remove(parent, name)


def _remove(parent: int, name: str) -> None:
    """Remove a folder or a file of ours that nobody holds. Raises OSError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(name, flags, dir_fd=parent)
    try:
        status = os.fstat(file)
        if status.st_uid != os.geteuid():
            return
        _lock(file)
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(name, dir_fd=parent)
        elif stat.S_ISREG(status.st_mode):
            os.unlink(name, dir_fd=parent)
    finally:
        os.close(file)
