"""Putting the files of one change in place by exchanges, and putting them back.

After each call a live file is either as it was or as the change wants it. ``write.py`` decides what
is to be done.
"""

import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import Self

from memd.base.text import sha256
from memd.store import memory
from memd.store.directory import Directory
from memd.store.disk import FILE_MODE, Disk, write_new
from memd.store.log import ChangeLog, Step
from memd.store.sync import FileRow, header_of

_EMPTY = sha256(b"")


class ForeignSaveError(Exception):
    """Another program changed a file while memd was replacing it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Folders:
    """The folders of a change, held open in a ``with`` block."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._stack = ExitStack()
        self._folders: dict[str, int] = {}  # descriptors by path, "" is the directory itself

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, path: str, *, create: bool = False) -> int:
        """Return the descriptor of a path's folder; raises what ``Directory.parent`` does."""
        folder = os.path.dirname(path)
        if folder not in self._folders:
            opened = self._directory.parent(path, create=create)
            self._folders[folder] = self._stack.enter_context(opened)[0]
        return self._folders[folder]

    def changed(self, steps: Iterable[Step]) -> list[int]:
        """Return the descriptors of folders whose entries changed.

        A new file may have needed new folders, whose names are entries of the folders above.
        """
        paths = set()
        for step in steps:
            folder = os.path.dirname(step.path)
            if folder in self._folders:
                paths.add(folder)
            while folder and step.before is None and folder in self._folders:
                folder = os.path.dirname(folder)
                self.of(os.path.join(folder, "x"))
                paths.add(folder)
        return [self._folders[path] for path in sorted(paths)]


def stage(disk: Disk, folder: int, step: Step, body: bytes) -> FileRow:
    """Write a new file beside the live one and flush it to the medium; return its row."""
    mode = FILE_MODE if step.mode is None else step.mode
    status = write_new(disk, folder, step.temp, body, mode=mode, mtime_ns=step.after_mtime_ns)
    parsed = memory.parse(body, step.path)
    header = header_of(step.path, parsed, step.after or "", status.st_mtime_ns, len(body))
    return FileRow(header, "", status.st_mode & 0o777)


def swap(disk: Disk, folder: int, step: Step, *, emptied: bool = False) -> None:
    """Put the new file of a step in place; the live one gets the temporary name.

    What comes out is compared with what the change was made from. Raises ForeignSaveError.
    """
    live = os.path.basename(step.path)
    try:
        if step.before is None:
            disk.move(folder, step.temp, live)
            return
        if step.after is None:
            disk.move(folder, live, step.temp)
        else:
            disk.exchange(folder, step.temp, live)
    except (FileExistsError, FileNotFoundError) as error:  # just created, or deleted
        raise ForeignSaveError(step.path) from error
    replaced = disk.read(folder, step.temp)
    expected = (step.before, _EMPTY) if emptied else (step.before,)
    if replaced is None or replaced.hash not in expected:
        raise ForeignSaveError(step.path)


def put_back(disk: Disk, folder: int, step: Step, log: ChangeLog) -> None:
    """Put one file back as it was before a change; doing it twice changes nothing more.

    A file that somebody saved since stays as they saved it. What is under the temporary name is
    removed later, when nobody can write to it (``write.py``).
    """
    name = os.path.basename(step.path)
    _end_two_calls(disk, folder, step.temp, name)
    live, temp = disk.read(folder, name), disk.read(folder, step.temp)
    if step.before is None:
        if live and live.hash == step.after and temp is None:
            disk.move(folder, name, step.temp)
            temp = disk.read(folder, step.temp)
            if temp and temp.hash != step.after:  # saved in between
                with suppress(FileExistsError):
                    disk.move(folder, step.temp, name)
    elif step.after is None:
        if temp and live is None:
            with suppress(FileExistsError):
                disk.move(folder, step.temp, name)
    elif temp and live and live.hash == step.after:
        # What was never whole was never exchanged: another program saved the same text.
        if temp.hash != step.before and is_torn(temp.content, step, log):
            return
        disk.exchange(folder, step.temp, name)
        temp = disk.read(folder, step.temp)
        if temp and temp.hash != step.after:  # saved in between: the newest text stays live
            disk.exchange(folder, step.temp, name)


def _end_two_calls(disk: Disk, folder: int, temp: str, live: str) -> None:
    """Put right what a death left between the two calls of an exchange or a move."""
    spare = disk.spare(temp)
    if disk.read(folder, spare) is not None:
        if disk.read(folder, temp) is None:
            os.rename(spare, temp, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            disk.unlink(folder, spare)
    if disk.is_same(folder, temp, live):
        disk.unlink(folder, temp)


def is_torn(content: bytes, step: Step, log: ChangeLog) -> bool:
    """Say whether a text is a part of a step's new one, as a crash leaves it: zeros fill gaps."""
    body = log.body(step.after)
    if body is None or len(content) > len(body):
        return False
    return all(byte in (0, whole) for byte, whole in zip(content, body, strict=False))
