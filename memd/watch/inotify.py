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

from memd.base.names import is_folder_of_memories, is_temporary

# Bits of an event's mask, from linux/inotify.h.
_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_OVERFLOW = 0x4000  # the kernel has dropped events
_IGNORED = 0x8000  # the kernel has ended a watch
_ONLY_DIRECTORY, _NO_LINK, _IS_DIRECTORY = 0x1000000, 0x2000000, 0x40000000
_FILE_EVENTS = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_WANTED_EVENTS = _FILE_EVENTS | _DELETE_SELF | _MOVE_SELF | _ONLY_DIRECTORY | _NO_LINK
_EVENT_HEADER = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_BUFFER_BYTES = 1 << 16
_LARGEST_EVENT_BYTES = _EVENT_HEADER.size + 256  # with the longest name
_MOUNTS = "/proc/self/mountinfo"
# inotify does not report changes that another machine makes on these file systems.
_SHARED_FILE_SYSTEMS = frozenset(
    {"9p", "afs", "ceph", "cifs", "coda", "fuse", "gfs2", "glusterfs", "lustre", "ncpfs", "nfs"}
    | {"nfs4", "ocfs2", "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
)
_MOUNT_POINT_FIELD = 4  # its position among a line's fields


class Inotify:
    """Reports changes below directories (real paths) to ``report``. Thread-safe.

    ``calls`` has inotify's system calls. ``report`` is called with a directory and a path below it,
    or with ``None`` for everything below it; ``wake`` after such calls, in the thread of this
    object. ``is_relevant`` says which paths of files are reported.
    """

    exact = True  # no change is missed

    def __init__(
        self,
        calls: Any,
        report: Callable[[str, str | None], None],
        wake: Callable[[], None],
        is_relevant: Callable[[str], bool],
    ) -> None:
        self._calls = calls
        self._report_path = report
        self._wake = wake
        self._is_relevant = is_relevant
        self._lock = threading.Lock()  # held while the queue is read and while watches change
        # A folder is named by its path below its directory, "" is the directory itself.
        self._folders: dict[int, dict[str, str]] = {}  # by inotify watch: folder by directory
        self._watches: dict[str, dict[str, int]] = {}  # by directory: inotify watch by folder
        self._has_reported = False  # since ``wake`` was called last
        self._queue = _checked_result(calls.inotify_init())  # a descriptor; -1 once it is closed
        os.set_inheritable(self._queue, False)  # noqa: FBT003 - so is the call made
        os.set_blocking(self._queue, False)
        # A byte in this pipe makes the thread look at the queue and at ``_closed``.
        self._pipe_reader, self._pipe_writer = os.pipe()
        os.set_blocking(self._pipe_writer, False)  # a full pipe wakes the thread as well
        self._closed = False  # ends the thread
        self._thread = threading.Thread(target=self._follow, name="memd-watch", daemon=True)
        self._thread.start()

    def add(self, directory: str) -> None:
        """Watch a directory; raises OSError."""
        with self._lock:
            self._watches[directory] = {}
            try:
                self._watch_folder(directory, "")
            except OSError:
                del self._watches[directory]
                raise

    def enter(self, directory: str, folder: str) -> None:
        """Watch a folder below a watched directory; raises OSError."""
        with self._lock:
            if directory in self._watches:
                self._watch_folder(directory, folder)

    def is_watched(self, directory: str) -> bool:
        """Say whether a directory that was added is still watched."""
        return "" in self._watches.get(directory, {})

    def drop(self, directory: str) -> None:
        """Stop watching a directory."""
        with self._lock:
            for watch in self._watches.pop(directory, {}).values():
                self._leave_watch(directory, watch)

    def catch_up(self) -> None:
        """Report all changes made before this call."""
        with self._lock:
            self._read_queue()
            has_reported = self._has_reported
        if has_reported:
            with suppress(OSError):  # closed, or the pipe is full
                os.write(self._pipe_writer, b"!")

    def close(self) -> None:
        """Stop watching everything and wait for the thread."""
        self._closed = True
        with suppress(BlockingIOError):
            os.write(self._pipe_writer, b"!")
        self._thread.join()
        with self._lock:
            queue, self._queue = self._queue, -1
            for fd in (queue, self._pipe_reader, self._pipe_writer):
                os.close(fd)

    def _follow(self) -> None:
        """Read the queue whenever it has events, and call ``wake`` if some were reported."""
        poll = select.poll()
        for fd in (self._queue, self._pipe_reader):
            poll.register(fd, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._pipe_reader:
                    os.read(self._pipe_reader, 4096)
            if self._closed:
                return
            with self._lock:
                self._read_queue()
                has_reported, self._has_reported = self._has_reported, False
            if has_reported:
                self._wake()

    def _watch_folder(self, directory: str, folder: str) -> None:
        """Watch a folder and remember which watch it has. Raises OSError."""
        path = os.fsencode(f"{directory}/{folder}" if folder else directory)
        # The kernel returns the same watch for the same folder, under whatever name.
        new_watch = _checked_result(
            self._calls.inotify_add_watch(self._queue, path, _WANTED_EVENTS)
        )
        watches = self._watches[directory]
        old_watch = watches.get(folder)
        if old_watch is not None and old_watch != new_watch:
            self._leave_watch(directory, old_watch)
        folders = self._folders.setdefault(new_watch, {})
        earlier_name = folders.get(directory)
        if earlier_name is not None and earlier_name != folder:
            watches.pop(earlier_name, None)  # the same folder under another name
        folders[directory] = folder
        watches[folder] = new_watch

    def _leave_watch(self, directory: str, watch: int) -> None:
        """Remove a directory from a watch, and the watch when it has no other directory."""
        folders = self._folders.get(watch, {})
        folders.pop(directory, None)
        if not folders and self._folders.pop(watch, None) is not None:
            self._calls.inotify_rm_watch(self._queue, watch)

    def _read_queue(self) -> None:
        """Report every event that is in the queue now; the caller holds the lock."""
        while self._queue >= 0:
            try:
                data = os.read(self._queue, _BUFFER_BYTES)
            except BlockingIOError:  # the queue is empty
                return
            position = 0
            while position < len(data):
                watch, mask, _, name_length = _EVENT_HEADER.unpack_from(data, position)
                name_start = position + _EVENT_HEADER.size
                position = name_start + name_length
                self._on_event(watch, mask, data[name_start:position].rstrip(b"\0"))
            had_room_for_more = len(data) <= _BUFFER_BYTES - _LARGEST_EVENT_BYTES
            if had_room_for_more:  # so the queue is empty
                return

    def _on_event(self, watch: int, mask: int, name: bytes) -> None:
        """Report the paths that one event of the queue is about.

        - After an overflow events are missing, so everything below each directory is reported.
        - When the kernel has ended a watch, everything below its directories is reported.
        - Any other event is about the ``name`` in the watch's folder.
        """
        if mask & _OVERFLOW:
            for directory in self._watches:
                self._report(directory, None)
        elif mask & _IGNORED:
            self._on_ended_watch(watch)
        else:
            # The same folder may be below several directories.
            for directory, folder in self._folders.get(watch, {}).items():
                self._on_name(directory, folder, mask, name)

    def _on_ended_watch(self, watch: int) -> None:
        """Remove a watch that the kernel has ended, and report everything below its directories."""
        for directory, folder in self._folders.pop(watch, {}).items():
            watches = self._watches.get(directory, {})
            if watches.get(folder) == watch:  # else the folder has a newer watch
                del watches[folder]
            self._report(directory, None)

    def _on_name(self, directory: str, folder: str, mask: int, name: bytes) -> None:
        """Report a change of a name in a watched folder."""
        if not name:  # the folder itself
            self._report(directory, None)
            return
        file_name = os.fsdecode(name)
        path = f"{folder}/{file_name}" if folder else file_name
        if mask & _IS_DIRECTORY:
            if is_folder_of_memories(path):
                self._report(directory, None)
            return
        # A program has closed a file that memd had replaced: it may be a late save.
        may_be_late_save = mask & _CLOSE_WRITE and is_temporary(file_name)
        if self._is_relevant(path) or may_be_late_save:
            self._report(directory, path)

    def _report(self, directory: str, path: str | None) -> None:
        """Report a path; ``None`` stands for everything below the directory."""
        self._has_reported = True
        self._report_path(directory, path)


def _checked_result(result: int) -> int:
    """Return a system call's result. Raises OSError if it is an error."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def reports_all_changes(directory: str, mounts: str = _MOUNTS) -> bool:
    """Say whether inotify reports every change in a directory (its real path). Blocks."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            kind = file_system_of(directory, file)
    except OSError:
        return False
    return bool(kind) and kind not in _SHARED_FILE_SYSTEMS and not kind.startswith("fuse.")


def file_system_of(directory: str, mounts: Iterable[str]) -> str:
    """Return the type of a directory's file system from mountinfo's lines, "" if unknown."""
    longest_point, kind = "", ""
    for line in mounts:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) <= _MOUNT_POINT_FIELD or not after:  # not a line of mountinfo
            continue
        point = _unescaped(fields[_MOUNT_POINT_FIELD])
        is_below = directory == point or directory.startswith(point.rstrip("/") + "/")
        if is_below and len(point) >= len(longest_point):  # a later mount hides an earlier one
            longest_point, kind = point, after.split(" ", 1)[0]
    return kind


def _unescaped(text: str) -> str:
    """Return a field of mountinfo with its octal escapes decoded."""
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        text = text.replace(f"\\{code}", character)
    return text
