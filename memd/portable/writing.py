"""Write an archive to a temporary folder, then rename it to its destination in one step. Blocks.

Rules of this file
- All files go into a temporary folder beside the destination. Only after they are synced to disk,
  the folder, or the tar made of it, is renamed to the destination, which must not exist. So a crash
  at any instant leaves the whole archive there or nothing.
- Temporary files that a crash leaves are deleted by the next export into the same folder. A running
  export locks its temporary files; those without a lock are left over.
- Equal files give equal bytes: an archive contains no current time, user or machine name.
"""

import fcntl
import os
import re
import secrets as tokens
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from msgspec.structs import replace

from memd.base.errors import MemdError, Refused
from memd.base.text import iso_time, sha256
from memd.portable.destination import Destination
from memd.portable.errors import destination_refused
from memd.portable.manifest import MANIFEST, SUMS, FileRecord, Manifest, encode, sum_line
from memd.store.directory import Directory, cause_of
from memd.store.disk import FILE_MODE, Disk

_LEFT_OVER = r"\.memd-export-[0-9a-f]{8}(?:\.tar\.gz)?\.tmp"
_COMPRESSION_LEVEL = 6  # of zlib
_GZIP = 16 + zlib.MAX_WBITS  # how zlib is asked for the format of gzip
_BLOCK = 512  # bytes; an archive consists of such blocks
_LATEST_TAR_TIME = 8**11 - 1  # the latest time in seconds that a tar's header can have
_LATEST_DAY = 253_402_214_400.0  # the last day of the year 9999: later times have no ISO form
_NAME_IS_TAKEN = "something of this name came there meanwhile; nothing was overwritten"
_NOT_OPEN = "another export is at it"  # the staging is not open


class Staging:
    """A temporary folder beside the destination, in which an archive is built.

    After ``open``, ``close`` must be called. All other methods raise Refused.
    """

    def __init__(self, destination: Destination, disk: Disk) -> None:
        self._destination, self._disk = destination, disk
        self._parent_fd = -1  # the destination's folder, -1 before it is open
        self._tree: Directory | None = None  # the temporary folder, ``None`` before it is open
        # Names of the temporary folder and tar: "" before they exist, and once they are renamed.
        self._temp_folder = self._temp_tar = ""

    def open(self) -> None:
        """Delete what crashed exports left beside the destination, and create the folder."""
        with self._named_errors():
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            self._parent_fd = os.open(self._destination.folder, flags)
            _remove_left_over(self._parent_fd)
            temp = f".memd-export-{tokens.token_hex(4)}.tmp"
            os.mkdir(temp, 0o700, dir_fd=self._parent_fd)
            self._temp_folder = temp
            self._tree = Directory(f"{self._destination.folder}/{temp}")
            _lock(self._tree.fd)

    def close(self) -> None:
        """Close all files, and delete the temporary ones; errors leave them to the next export."""
        with suppress(OSError):
            if self._temp_tar:
                self._disk.unlink(self._parent_fd, self._temp_tar)
        if self._temp_folder:
            shutil.rmtree(self._temp_folder, ignore_errors=True, dir_fd=self._parent_fd)
        if self._tree is not None:
            self._tree.close()
        if self._parent_fd >= 0:
            os.close(self._parent_fd)

    def add(self, name: str, content: bytes, mtime_ns: int) -> FileRecord | None:
        """Write a file of the archive and return its record for the manifest.

        ``None`` if this disk treats its name as that of another file, as if it ignores case.
        """
        with self._named_errors():
            try:
                self._write(name, content, mtime_ns)
            except FileExistsError:
                return None
        size = len(content)
        return FileRecord(path=name, sha256=sha256(content), bytes=size, mtime_ns=mtime_ns)

    def finish(self, manifest: Manifest) -> None:
        """Write manifest and sums, sync all files to disk, and rename to the destination."""
        files = sorted(_named_files(manifest), key=lambda file: file.path.encode())
        # The newest file's time stands for the archive's, so that the clock is not part of it.
        newest = max((file.mtime_ns for file in files), default=0)
        seconds = min(max(newest / 1e9, 0.0), _LATEST_DAY)
        manifest.made = iso_time(seconds) if files else ""
        text = encode(manifest)
        sums = sum_line(sha256(text), MANIFEST)
        sums += b"".join(sum_line(file.sha256, file.path) for file in files)
        with self._named_errors():
            self._write(MANIFEST, text, newest)
            self._write(SUMS, sums, newest)
            if self._destination.packed:
                names_and_times = [(MANIFEST, newest), (SUMS, newest)]
                names_and_times += [(file.path, file.mtime_ns) for file in files]
                self._pack(names_and_times)
            else:
                self._sync([MANIFEST, SUMS, *(file.path for file in files)])
            self._move_to_destination()

    def _write(self, name: str, content: bytes, mtime_ns: int) -> None:
        """Create a file; ``finish`` syncs it to disk. Raises FileExistsError and OSError."""
        with self._open_tree().parent(name, create=True) as (folder, last):
            file = self._disk.create(folder, last)
            try:
                self._disk.set_mode(file, FILE_MODE)
                _write_all(self._disk, file, content)
                self._disk.set_mtime(file, mtime_ns)
            finally:
                self._disk.close(file)

    def _sync(self, names: Iterable[str]) -> None:
        """Sync files and their folders to disk."""
        tree = self._open_tree()
        folders = {""}  # all that hold a file, and those above them
        for name in names:
            with tree.parent(name) as (folder, last):
                file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    self._disk.fsync(file)
                finally:
                    os.close(file)
            while name := os.path.dirname(name):
                folders.add(name)
        for name in sorted(folders, reverse=True):  # a folder before the one above it
            with tree.folder(name) as folder_fd:
                self._disk.sync_folder(tree.fd if folder_fd is None else folder_fd)

    def _pack(self, names: Iterable[tuple[str, int]]) -> None:
        """Write a tar.gz of the folder's files, in this order, and sync it to disk.

        ``names`` are pairs of a name and its mtime in ns.
        """
        tree = self._open_tree()
        packed = self._temp_folder.replace(".tmp", ".tar.gz.tmp")
        file = self._disk.create(self._parent_fd, packed)
        self._temp_tar = packed
        try:
            _lock(file)
            self._disk.set_mode(file, FILE_MODE)
            for packed_part in _compress(_tar_parts(tree, names)):
                _write_all(self._disk, file, packed_part)
            self._disk.fsync(file)
        finally:
            self._disk.close(file)

    def _move_to_destination(self) -> None:
        """Rename the tar or folder to the destination; rename it back if the sync fails."""
        name, moved = self._destination.name, self._temp_tar or self._temp_folder
        move = self._disk.move if self._temp_tar else self._disk.move_folder
        try:
            move(self._parent_fd, moved, name)
        except FileExistsError as error:
            raise destination_refused(self._destination.path, _NAME_IS_TAKEN) from error
        try:
            self._disk.sync_folder(self._parent_fd)
        except OSError:
            move(self._parent_fd, name, moved)
            raise
        if self._temp_tar:
            self._temp_tar = ""
        else:
            self._temp_folder = ""

    def _open_tree(self) -> Directory:
        """Return the temporary folder. Raises Refused if it is not open."""
        if self._tree is None:
            raise destination_refused(self._destination.path, _NOT_OPEN)
        return self._tree

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn errors of the disk into Refused, which names the destination."""
        try:
            yield
        except Refused:
            raise
        except OSError as error:
            raise destination_refused(self._destination.path, cause_of(error)) from error
        except MemdError as error:
            raise destination_refused(self._destination.path, error.sentence) from error


def _write_all(disk: Disk, file: int, content: bytes) -> None:
    """Write all bytes to a file descriptor. Raises OSError."""
    unwritten = memoryview(content)
    while unwritten:
        unwritten = unwritten[disk.write(file, unwritten) :]


def _named_files(manifest: Manifest) -> Iterator[FileRecord]:
    """Yield the records of a manifest's files, each with its path in the whole archive."""
    yield from manifest.files
    for project in manifest.projects:
        for file in project.files:
            yield replace(file, path=f"projects/{project.id}/{file.path}")


def _tar_parts(tree: Directory, names: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    """Yield the bytes of a tar of files in parts; ``names`` are pairs of a name and mtime in ns."""
    for name, mtime_ns in names:
        content_and_status = tree.read(name, 2**62)  # the size has no limit here
        content = content_and_status[0] if content_and_status else b""
        yield _tar_header(name, len(content), mtime_ns)
        yield content
        yield bytes(-len(content) % _BLOCK)  # zeros to the end of the block
    yield bytes(2 * _BLOCK)  # two blocks of zeros end a tar


def _compress(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the gzip compressed bytes of parts, without a time or name.

    Not with ``GzipFile``: after a failed write it tries again when it is garbage collected.
    """
    compressor = zlib.compressobj(_COMPRESSION_LEVEL, wbits=_GZIP)
    for part in parts:
        yield compressor.compress(part)
    yield compressor.flush()


def _tar_header(name: str, size: int, mtime_ns: int) -> bytes:
    """Return the tar header of a file, with its time in whole seconds and no owner."""
    import tarfile  # noqa: PLC0415 - 0.8 MB that only an export needs

    member = tarfile.TarInfo(name)
    member.size, member.mode = size, FILE_MODE
    member.mtime = max(0, min(mtime_ns // 1_000_000_000, _LATEST_TAR_TIME))
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def _lock(file: int) -> None:
    """Lock a file or folder until it is closed. Raises OSError if another process locked it."""
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_left_over(parent: int) -> None:
    """Delete temporary files and folders of crashed exports in a folder, ignoring errors."""
    for name in os.listdir(parent):
        if re.fullmatch(_LEFT_OVER, name):
            with suppress(OSError):
                _remove(parent, name)


def _remove(parent: int, name: str) -> None:
    """Delete a file or folder if it is this user's. Raises OSError if it is locked."""
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
