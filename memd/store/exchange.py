"""Putting the files of one change in place by exchanges, and putting them back.

After each call a live file is either as it was or as the change wants it. ``write.py`` decides what
is to be done.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from memd.base.errors import NotFound, Refused
from memd.base.text import sha256
from memd.store.directory import Directory
from memd.store.disk import Content, Disk
from memd.store.log import ChangeLog, Step

_EMPTY = sha256(b"")


class ForeignSaveError(Exception):
    """Another program changed a file while memd was replacing it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@contextmanager
def open_folders(
    directory: Directory, steps: Iterable[Step], *, create: bool
) -> Iterator[dict[str, int]]:
    """Hold open the folders whose entries a change touches; their descriptors by path.

    These are the folder of each file and, above a new file, all up to the directory itself (""),
    since they may be new as well. ``create`` makes those that are missing; without it they are left
    out. Raises what ``Directory.parent`` does.
    """
    with ExitStack() as stack:
        folders: dict[str, int] = {}
        for step in steps:
            path = step.path
            while path:
                folder = path.rpartition("/")[0]
                if folder not in folders:
                    try:
                        opened = directory.parent(path, create=create and step.before is None)
                        folders[folder] = stack.enter_context(opened)[0]
                    except (NotFound, Refused):
                        if create:
                            raise
                path = folder if step.before is None else ""
        yield folders


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


def put_back(
    disk: Disk, folder: int, step: Step, log: ChangeLog, save: Callable[[Content], None]
) -> None:
    """Put one file back as it was before a change; doing it twice changes nothing more.

    A file that somebody saved since stays as they saved it. What is under the temporary name is
    removed later, when nobody can write to it (``write.py``). What gets the live name goes to
    ``save`` before, since the next save of others may replace it there.
    """
    name = os.path.basename(step.path)
    _end_two_calls(disk, folder, step.temp, name)
    live, temp = disk.read(folder, name), disk.read(folder, step.temp)
    if step.before is None:
        if live and live.hash == step.after and temp is None:
            disk.move(folder, name, step.temp)
            temp = disk.read(folder, step.temp)
            if temp and temp.hash != step.after:  # saved in between
                save(temp)
                with suppress(FileExistsError):
                    disk.move(folder, step.temp, name)
    elif step.after is None:
        if temp and live is None:
            save(temp)
            with suppress(FileExistsError):
                disk.move(folder, step.temp, name)
    elif temp and live and live.hash == step.after:
        # What was never whole was never exchanged: another program saved the same text.
        if temp.hash != step.before and is_torn(temp.content, step, log):
            return
        save(temp)
        disk.exchange(folder, step.temp, name)
        temp = disk.read(folder, step.temp)
        if temp and temp.hash != step.after:  # saved in between: the newest text stays live
            save(temp)
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
