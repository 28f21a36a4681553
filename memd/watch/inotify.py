"""The kernel's queue of changes (inotify), and which file systems report to it.

``watch.py`` states the rules. One descriptor serves all directories. Reading the queue and
reporting what was read happen under one lock, so that a second reader finds all of it reported.
"""

import ctypes
import os
import select
import struct
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from memd.core.names import is_folder_of_memories, is_temporary

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8  # linux/inotify.h
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_ONLY_DIRECTORY, _NO_LINK, _IS_DIRECTORY = 0x1000000, 0x2000000, 0x40000000
_FILES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_WANTED = _FILES | _DELETE_SELF | _MOVE_SELF | _ONLY_DIRECTORY | _NO_LINK
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_BUFFER = 1 << 16
_LARGEST = _EVENT.size + 256  # an event with the longest name
_MOUNTS = "/proc/self/mountinfo"
# inotify does not report changes that another machine makes on these file systems.
_SILENT = frozenset(
    {"9p", "afs", "ceph", "cifs", "coda", "fuse", "gfs2", "glusterfs", "lustre", "ncpfs", "nfs"}
    | {"nfs4", "ocfs2", "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
)
_POINT = 4  # index of the mount point among a line's fields


class Inotify:
    """Reports changes below directories (real paths) to ``tell``. Thread-safe.

    ``calls`` has inotify's system calls; ``concerns`` says which relative paths of files matter.
    """

    exact = True

    def __init__(
        self,
        calls: Any,
        tell: Callable[[str, str | None], None],
        wake: Callable[[], None],
        concerns: Callable[[str], bool],
    ) -> None:
        self._calls = calls
        self._tell = tell
        self._wake = wake
        self._concerns = concerns
        self._lock = threading.Lock()
        self._folders: dict[int, dict[str, str]] = {}  # by inotify watch: folder by directory
        self._watches: dict[str, dict[str, int]] = {}  # by directory: inotify watch by folder
        self._reported = False
        self._queue = _checked(calls.inotify_init())
        os.set_inheritable(self._queue, False)  # noqa: FBT003 - so is the call made
        os.set_blocking(self._queue, False)
        self._bell, self._ring = os.pipe()
        os.set_blocking(self._ring, False)  # a full pipe wakes the thread as well
        self._closed = False
        self._thread = threading.Thread(target=self._follow, name="memd-watch", daemon=True)
        self._thread.start()

    def add(self, directory: str) -> None:
        """Watch a directory; raises OSError."""
        with self._lock:
            self._watches[directory] = {}
            try:
                self._open(directory, "")
            except OSError:
                del self._watches[directory]
                raise

    def enter(self, directory: str, folder: str) -> None:
        """Watch a folder below a watched directory; raises OSError."""
        with self._lock:
            if directory in self._watches:
                self._open(directory, folder)

    def holds(self, directory: str) -> bool:
        """Say whether a directory that was added is still watched."""
        return "" in self._watches.get(directory, {})

    def drop(self, directory: str) -> None:
        """Stop watching a directory."""
        with self._lock:
            for watch in self._watches.pop(directory, {}).values():
                self._end(directory, watch)

    def catch_up(self) -> None:
        """Report all changes made before this call."""
        with self._lock:
            self._read()
            reported = self._reported
        if reported:
            with suppress(OSError):  # closed, or the pipe is full
                os.write(self._ring, b"!")

    def close(self) -> None:
        """Stop watching everything and wait for the thread."""
        self._closed = True
        with suppress(BlockingIOError):
            os.write(self._ring, b"!")
        self._thread.join()
        with self._lock:
            queue, self._queue = self._queue, -1
            for fd in (queue, self._bell, self._ring):
                os.close(fd)

    def _follow(self) -> None:
        """Read the queue whenever it has events, and call ``wake`` if some were reported."""
        poll = select.poll()
        for fd in (self._queue, self._bell):
            poll.register(fd, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._bell:
                    os.read(self._bell, 4096)
            if self._closed:
                return
            with self._lock:
                self._read()
                reported, self._reported = self._reported, False
            if reported:
                self._wake()

    def _open(self, directory: str, folder: str) -> None:
        """Watch a folder and remember which watch it has. Raises OSError."""
        path = os.fsencode(f"{directory}/{folder}" if folder else directory)
        watch = _checked(self._calls.inotify_add_watch(self._queue, path, _WANTED))
        watches = self._watches[directory]
        old = watches.get(folder)
        if old is not None and old != watch:
            self._end(directory, old)
        folders = self._folders.setdefault(watch, {})
        earlier_name = folders.get(directory)
        if earlier_name is not None and earlier_name != folder:
            watches.pop(earlier_name, None)  # the same folder under another name
        folders[directory] = folder
        watches[folder] = watch

    def _end(self, directory: str, watch: int) -> None:
        """Remove a directory from a watch, and the watch when it has no other directory."""
        folders = self._folders.get(watch, {})
        folders.pop(directory, None)
        if not folders and self._folders.pop(watch, None) is not None:
            self._calls.inotify_rm_watch(self._queue, watch)

    def _read(self) -> None:
        """Report every event that is in the queue now; the caller holds the lock."""
        while self._queue >= 0:
            try:
                data = os.read(self._queue, _BUFFER)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                self._on_event(watch, mask, data[at - length : at].rstrip(b"\0"))
            if len(data) <= _BUFFER - _LARGEST:  # there was room: the queue is empty
                return

    def _on_event(self, watch: int, mask: int, name: bytes) -> None:
        """Report what one event of the queue means."""
        if mask & _OVERFLOW:
            for directory in self._watches:
                self._report(directory, None)
        elif mask & _IGNORED:
            for directory, folder in self._folders.pop(watch, {}).items():
                watches = self._watches.get(directory, {})
                if watches.get(folder) == watch:
                    del watches[folder]
                self._report(directory, None)
        else:
            for directory, folder in self._folders.get(watch, {}).items():
                self._on_name(directory, folder, mask, name)

    def _on_name(self, directory: str, folder: str, mask: int, name: bytes) -> None:
        """Report a change of a name in a watched folder."""
        if not name:  # the folder itself
            self._report(directory, None)
            return
        path = os.fsdecode(name) if not folder else f"{folder}/{os.fsdecode(name)}"
        if mask & _IS_DIRECTORY:
            if is_folder_of_memories(path):
                self._report(directory, None)
        elif self._concerns(path) or (mask & _CLOSE_WRITE and is_temporary(os.fsdecode(name))):
            # A program has closed a file that memd had replaced: it may be a late save.
            self._report(directory, path)

    def _report(self, directory: str, path: str | None) -> None:
        """Pass a path on to ``tell``; ``None`` stands for everything below the directory."""
        self._reported = True
        self._tell(directory, path)


def _checked(answer: int) -> int:
    """Return a system call's result. Raises OSError if it is an error."""
    if answer < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return answer


def tells(directory: str, mounts: str = _MOUNTS) -> bool:
    """Say whether inotify reports every change in a directory (its real path). Blocks."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            kind = kind_of(directory, file)
    except OSError:
        return False
    return bool(kind) and kind not in _SILENT and not kind.startswith("fuse.")


def kind_of(directory: str, mounts: Iterable[str]) -> str:
    """Return the type of a directory's file system from mountinfo's lines, "" if unknown."""
    best, kind = "", ""
    for line in mounts:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > _POINT and after:
            point = _unescaped(fields[_POINT])
            below = directory == point or directory.startswith(point.rstrip("/") + "/")
            if below and len(point) >= len(best):  # a later mount hides an earlier one
                best, kind = point, after.split(" ", 1)[0]
    return kind


def _unescaped(text: str) -> str:
    """Return a field of mountinfo with its octal escapes decoded."""
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        text = text.replace(f"\\{code}", character)
    return text
