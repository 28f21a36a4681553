"""The only file that opens anything below a memory directory.

Rules of this file
- A name is never resolved first and opened afterwards: that loses races with links. Descriptors are
  walked beneath an open directory, one for each part of the name, with ``O_NOFOLLOW``.
- After opening, ``fstat`` must show a regular file of ours, within a size. ``O_NONBLOCK`` keeps a
  FIFO from hanging the daemon.
- The memory directory itself may be reached through links; people keep it in a dotfiles checkout.
- Hard links are read (backups make them); the writer replaces instead of writing through.
- Every failure leaves as one of the families of errors; a name never raises a ``ValueError``.
"""

import errno
import fcntl
import hashlib
import os
import signal
import stat
from collections.abc import Container, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from memd.base import names
from memd.base.errors import MemdError, NotFound, Refused, Storage, TooLarge

WALK_DEPTH = 16  # folders below a memory directory; memd's own names have three at most
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK_BYTES = 64 * 1024
_BYTES_AFTER_END = 4096  # requested once a file was read, in case it has grown meanwhile
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_REFUSED = {  # why, by the system's error
    errno.ELOOP: "a part of it is a link",
    errno.EXDEV: "a part of it is a link",
    errno.EMLINK: "a part of it is a link",  # of a BSD's O_NOFOLLOW
    errno.ENAMETOOLONG: "it is too long",
    errno.ENXIO: "it is no regular file",
}
_SET_SIGNAL: int | None = getattr(fcntl, "F_SETSIG", None)
_SET_LEASE: int | None = getattr(fcntl, "F_SETLEASE", None)
_HINT = "mend the permissions or what stands at that path; no restart is needed"


def ensure(directory: str, path: str = names.INDEX) -> str:
    """Make a directory and a path's folder in it, mode 0700; return "" or the problem."""
    try:
        with Directory(directory, create=True) as opened, opened.parent(path, create=True):
            return ""
    except MemdError as error:
        return error.sentence


class Directory(AbstractContextManager["Directory"]):
    """An open memory directory; a context manager that closes it.

    With ``create`` the missing part of the path is made, mode 0700. Raises NotFound for a missing
    directory, Storage if the system does not let us in, Refused for a path that is not absolute or
    has a character that no path can have.
    """

    def __init__(self, path: str, *, create: bool = False) -> None:
        self.path = path
        if not path.startswith("/"):
            raise refused(path, "a memory directory's path is absolute")
        try:
            try:
                self.fd = os.open(path, FOLDER)
            except FileNotFoundError:
                if not create:
                    raise
                _make_directory(path)
                self.fd = os.open(path, FOLDER)
        except FileNotFoundError as error:
            shown = names.printable(path)
            raise NotFound(f"there is no memory directory {shown}", path=shown) from error
        except ValueError as error:  # a NUL, or a character that no file name can have
            raise refused(path, "it has a character that no path can have") from error
        except OSError as error:
            shown, cause = names.printable(path), cause_of(error)
            sentence = f"the memory directory {shown} cannot be used: {cause}"
            raise Storage(sentence, hint=_HINT, path=shown, cause=cause) from error
        # Root's files and those of whoever owns the directory (a mounted volume) count as ours.
        self._owners = frozenset((0, os.geteuid(), os.fstat(self.fd).st_uid))

    def close(self, *_: object) -> None:
        """Close the directory; the object is of no use afterwards."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    __exit__ = close

    def walk(  # noqa: C901, PLR0912 - one loop over what a folder may hold
        self,
        problems: list[str] | None = None,
        temporaries: list[str] | None = None,
        known: Container[str] = (),
    ) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
        """Yield path and entry of each memory and index: regular files, no link is followed.

        A sentence is added to ``problems`` for each thing that cannot be looked into; the paths of
        memd's own temporary files are added to ``temporaries``. Paths that are ``known`` to be
        those of memories are not judged again.
        """
        sentences: list[str] = [] if problems is None else problems
        folders = [""]  # still to be listed, by path
        while folders:
            folder = folders.pop()
            if folder.count("/") >= WALK_DEPTH:
                sentences.append(f"{names.printable(folder)} lies too deep; it is not looked into")
                continue
            prefix = f"{folder}/" if folder else ""
            try:
                with (
                    self.folder(folder) as fd,
                    os.scandir(fd) if fd is not None else nullcontext(()) as entries,
                ):
                    for entry in entries:
                        path = prefix + entry.name
                        if path in known and entry.is_file(follow_symlinks=False):
                            yield path, entry
                        elif entry.is_dir(follow_symlinks=False):
                            if names.is_folder_of_memories(path):
                                folders.append(path)
                        elif names.concerns(path):
                            if entry.is_file(follow_symlinks=False):
                                yield path, entry
                        elif names.is_temporary(entry.name):
                            if temporaries is not None:
                                temporaries.append(path)
                        elif path.endswith(names.SUFFIX) and not names.is_text(path):
                            shown = names.printable(path)
                            sentences.append(f"{shown} has a name that is not UTF-8")
            except OSError as error:
                sentences.append(unreadable(folder or self.path, error).sentence)
            except (Refused, Storage) as error:
                sentences.append(error.sentence)

    @contextmanager
    def folder(self, name: str) -> Iterator[int | None]:
        """Hold a folder open ("" is the directory itself); ``None`` if there is none.

        Raises Refused and Storage.
        """
        if not name:
            yield self.fd
            return
        opened = self.open(name, FOLDER | os.O_NOFOLLOW)
        try:
            yield opened and opened[0]
        finally:
            if opened:
                os.close(opened[0])

    @contextmanager
    def parent(self, name: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Hold the folder of a name open: its descriptor and the last part of the name.

        With ``create`` missing folders are made, mode 0700. Raises Refused, also for a name that
        may lead out, NotFound when a folder is missing, and Storage.
        """
        *folders, last = parts = name.split("/")
        if "" in parts or "." in parts or ".." in parts:
            raise refused(name, "it is not a relative path of plain parts")
        if "\0" in name or not names.is_text(name):
            raise refused(name, "it has a character that no name can have")
        folder, path = self.fd, "/".join(folders)
        try:
            for part in folders:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=folder)
                        os.fsync(folder)  # a file in a folder that a power cut takes away is lost
                below = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
                if folder != self.fd:
                    os.close(folder)
                folder = below
        except OSError as error:
            if folder != self.fd:
                os.close(folder)
            if create:
                is_file = error.errno in (errno.ENOTDIR, errno.ELOOP)
                why = "a part of it is no folder"
                raise (refused(path, why) if is_file else unreadable(path, error)) from error
            self._check_absent(path, error)
            missing = names.printable(f"{self.path}/{path}")
            raise NotFound(f"there is no folder {missing}", path=missing) from error
        try:
            yield folder, last
        finally:
            if folder != self.fd:
                os.close(folder)

    def open(self, name: str, flags: int = _FILE) -> tuple[int, os.stat_result] | None:
        """Return a descriptor to read a file with, and its status; ``None`` when there is none.

        The caller closes it. Raises Refused and Storage.
        """
        try:
            with self.parent(name) as (folder, last):
                fd = os.open(last, flags, dir_fd=folder)
        except (NotFound, FileNotFoundError):
            return None
        except OSError as error:
            self._check_absent(name, error)
            return None
        status = os.fstat(fd)
        try:
            if flags == _FILE:
                self._check(name, status)
        except MemdError:
            os.close(fd)
            raise
        return fd, status

    def stat(self, name: str) -> os.stat_result | None:
        """Return the status of a file, ``None`` when there is none; raises what ``open`` does."""
        try:
            with self.parent(name) as (folder, last):
                status = os.stat(last, dir_fd=folder, follow_symlinks=False)
        except (NotFound, FileNotFoundError):
            return None
        except OSError as error:
            self._check_absent(name, error)
            return None
        self._check(name, status)
        return status

    def is_regular(self, name: str) -> bool:
        """Say whether there is a regular file of this name, whoever owns it."""
        try:
            with self.parent(name) as (fd, last):
                return stat.S_ISREG(os.stat(last, dir_fd=fd, follow_symlinks=False).st_mode)
        except (MemdError, OSError):
            return False

    def read(
        self, name: str, limit: int, *, whole: bool = True
    ) -> tuple[bytes, os.stat_result] | None:
        """Return a file's bytes and its status from before reading, ``None`` when there is none.

        Raises Refused, Storage, and TooLarge above ``limit`` bytes. Unless it must be the ``whole``
        file, one byte more than the limit comes of a larger one.
        """
        opened = self.open(name)
        if opened is None:
            return None
        fd, status = opened
        try:
            # Python allocates what is requested: asking for much more than the file has would
            # leave holes in the heap.
            content = b""
            most = limit + 1  # one byte more shows that it has grown
            requested = min(status.st_size + 1, most)
            while requested > 0:
                chunk = os.read(fd, requested)
                content += chunk
                if len(chunk) < requested and (not chunk or len(content) >= status.st_size):
                    break
                requested = min(_BYTES_AFTER_END, most - len(content))
        except OSError as error:
            raise unreadable(name, error) from error
        finally:
            os.close(fd)
        size = max(status.st_size, len(content))
        if whole and size > limit:
            shown = names.printable(name)
            sentence = f"{shown} has {size} bytes; at most {limit} are loaded"
            raise TooLarge(sentence, path=shown, size=size, limit=limit)
        return content, status

    def digest(self, name: str) -> tuple[str, os.stat_result] | None:
        """Return the SHA-256 in hex of a file of any size; otherwise as ``read``."""
        opened = self.open(name)
        if opened is None:
            return None
        fd, status = opened
        hasher = hashlib.sha256()
        try:
            while chunk := os.read(fd, _CHUNK_BYTES):
                hasher.update(chunk)
        except OSError as error:
            raise unreadable(name, error) from error
        finally:
            os.close(fd)
        return hasher.hexdigest(), status

    def is_open_for_writing(self, name: str) -> bool | None:
        """Say whether a program has a file open for writing, ``None`` if that cannot be known.

        Linux grants a read lease on a file only while nobody has it open for writing; the lease is
        given back at once. It cannot be known where the system or the file system has no leases
        (macOS, NFS, FUSE), or the file belongs to another user. A missing file is not open.
        """
        try:
            opened = self.open(name)
        except Storage:
            return None
        except MemdError:
            return False
        if opened is None:
            return False
        fd, _ = opened
        try:
            if _SET_LEASE is None or _SET_SIGNAL is None:
                return None
            # A program that breaks a lease has its holder signalled, by SIGIO unless another is
            # chosen. SIGIO ends a process that does not expect it; SIGURG is ignored.
            fcntl.fcntl(fd, _SET_SIGNAL, signal.SIGURG)
            fcntl.fcntl(fd, _SET_LEASE, fcntl.F_RDLCK)
            fcntl.fcntl(fd, _SET_LEASE, fcntl.F_UNLCK)
        except OSError as error:
            return True if error.errno in (errno.EAGAIN, errno.EBUSY) else None
        finally:
            os.close(fd)
        return False

    def _check(self, name: str, status: os.stat_result) -> None:
        """Refuse a link, another user's file, and anything but a regular file."""
        if stat.S_ISLNK(status.st_mode):
            raise refused(name, "it is a link")
        if not stat.S_ISREG(status.st_mode):
            raise refused(name, "it is no regular file")
        if status.st_uid not in self._owners:
            raise refused(name, "it belongs to another user")

    def _check_absent(self, name: str, error: OSError) -> None:
        """Raise Refused or Storage unless opening a name has failed since nothing is there."""
        parts = name.split("/")
        # A link that is opened as a folder gives the error of a file.
        for count in range(1, len(parts) + 1) if error.errno == errno.ENOTDIR else ():
            with suppress(OSError):
                path = "/".join(parts[:count])
                status = os.stat(path, dir_fd=self.fd, follow_symlinks=False)
                if stat.S_ISLNK(status.st_mode):
                    raise refused(name, "a part of it is a link") from error
        if error.errno not in _ABSENT:
            why = _REFUSED.get(error.errno or 0)
            raise (refused(name, why) if why else unreadable(name, error)) from error


def refused(path: str, why: str) -> Refused:
    """Return the error of a path that leads, or may lead, out of the directory."""
    shown = names.printable(path)
    sentence = f"the path {shown} is refused: {why}"
    return Refused(sentence, kind="path_refused", path=shown, why=why)


def unreadable(path: str, error: OSError | str) -> Storage:
    """Return the error of a file that is there, but that the system does not let us read."""
    shown, cause = names.printable(path), cause_of(error)
    return Storage(f"{shown} cannot be read: {cause}", hint=_HINT, path=shown, cause=cause)


def unwritable(path: str, error: OSError | str) -> Storage:
    """Return the error of a disk that refused a file; what was there before is as it was."""
    cause = cause_of(error)
    return Storage(
        f"{names.printable(path)} cannot be written: {cause}",
        hint="free space or mend the disk or its permissions; no restart is needed",
        path=path,
        cause=cause,
    )


def cause_of(error: OSError | str) -> str:
    """Return the system's message for an error, or the error's class name."""
    if isinstance(error, str):
        return error
    return error.strerror or str(error) or type(error).__name__


def _make_directory(path: str) -> None:
    """Make a directory and all that is missing above it, mode 0700, and flush their names."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        target = os.path.realpath(path) if os.path.islink(path) else path
        if not os.path.lexists(target):  # a link to a directory that is gone
            _make_directory(target)
        return
    except FileNotFoundError:
        _make_directory(os.path.dirname(path.rstrip("/")))
        with suppress(FileExistsError):  # another thread has just made it
            os.mkdir(path, 0o700)
    fd = os.open(os.path.dirname(path.rstrip("/")) or "/", FOLDER)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
