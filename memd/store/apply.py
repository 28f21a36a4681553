"""Putting the files of one recorded change set in place, and taking them out again.

``changes.py`` and ``recovery.py`` decide what to do; ``Application`` does it, file by file. After
each step the live file is either as it was or as the set wants it:
- ``stage`` writes the new body under the step's temporary name and flushes it to the disk;
- ``swap`` exchanges it with the live file and compares what came out with what the set expects. If
  another program saved in that instant, ``swap`` puts that program's file back;
- ``take_back`` undoes all swaps, but leaves a file that somebody saved since;
- ``sync`` flushes the folders to the disk;
- ``remove_temporary`` removes a temporary file, unless the set does not know its body or a program
  still writes to it.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from types import MappingProxyType
from typing import Self

from memd.base.errors import MemdError
from memd.files.directory import Directory, DirectoryMissingError
from memd.files.disk import FILE_MODE, Content, Disk, hash_of, write_new
from memd.state.changes import Step

_MODE_BITS = 0o777


class ForeignSaveError(MemdError):
    """Another program changed the file while memd was replacing it."""

    code = 1002
    kind = "conflict"
    retryable = True

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} was changed by another program just now", path=path)
        self.path = path


class Application:
    """Puts a change set's files in place, one step per file; keeps the folders open meanwhile.

    Use it in a ``with`` block.
    """

    def __init__(self, directory: Directory, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._stack = ExitStack()  # closes the open folders
        # Folders are named by their paths below the memory directory, "" is the directory itself.
        self._folders: dict[str, int] = {}  # descriptors of open folders
        self._changed_folders: set[str] = set()  # that ``sync`` has to flush
        self._swapped: list[Step] = []  # steps that are in place, in their order

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def live_content(self, step: Step) -> Content | None:
        """Return the content of the step's file, or ``None`` if there is no file."""
        return self._content(step, os.path.basename(step.path))

    def temporary_content(self, step: Step) -> Content | None:
        """Return the content of the step's temporary file, or ``None`` if there is none."""
        return self._content(step, step.temp)

    def stage(self, step: Step, body: bytes) -> None:
        """Write the new body beside the live file and flush it to the disk. Raises OSError."""
        folder = self._folder(step.path, create=step.before is None)
        write_new(
            self._disk,
            folder,
            step.temp,
            body,
            mode=FILE_MODE if step.mode is None else step.mode & _MODE_BITS,
            mtime_ns=step.after_mtime_ns,
        )

    def swap(self, step: Step) -> None:
        """Put the step's new file in place of the live one; the old file gets the temporary name.

        A step without ``before`` creates the file, one without ``after`` deletes it. Raises
        OSError, and ForeignSaveError if the live file was not the expected one; that stays live.
        """
        folder, live = self._folder(step.path), os.path.basename(step.path)
        self.mark_for_sync(step)
        self._swapped.append(step)
        try:
            if step.before is None:
                self._disk.move(folder, step.temp, live)
            elif step.after is None:
                self._disk.move(folder, live, step.temp)
            else:
                self._disk.exchange(folder, step.temp, live)
        except (FileExistsError, FileNotFoundError) as error:
            # Another program has just created the file, or deleted it.
            self._swapped.remove(step)
            raise ForeignSaveError(step.path) from error
        try:
            self.verify(step)
        except ForeignSaveError:
            self.swap_back(step)
            self._swapped.remove(step)
            raise

    def swap_back(self, step: Step) -> None:
        """Put back the file that a swap took out, because the set was not based on its text."""
        folder, live = self._folder(step.path), os.path.basename(step.path)
        self.mark_for_sync(step)
        if step.after is None:
            self._move_to_live(folder, step.temp, live)
            return
        self._disk.exchange(folder, step.temp, live)
        if hash_of(self.temporary_content(step)) != step.after:
            # Saved once more in between: the newest text stays live, the earlier one temporary.
            self._disk.exchange(folder, step.temp, live)

    def take_back(self) -> None:
        """Undo every swap, the last first, and flush that to the disk. Raises OSError.

        A file that somebody saved since is left as they saved it.
        """
        for step in reversed(self._swapped):
            self._undo_swap(step)
        self.sync()

    def mark_for_sync(self, step: Step) -> None:
        """Mark the step's folder for ``sync``; for a new file also each folder above it.

        A new file may have needed new folders, whose names are entries of the folders above.
        """
        folder_path = os.path.dirname(step.path)
        self._changed_folders.add(folder_path)
        is_new_file = step.before is None
        while folder_path and is_new_file:
            folder_path = os.path.dirname(folder_path)
            self._folder(os.path.join(folder_path, "x"))  # opens the folder
            self._changed_folders.add(folder_path)

    def sync(self) -> None:
        """Flush every folder that was marked to the disk. Raises OSError."""
        for folder_path in sorted(self._changed_folders):
            self._disk.sync_folder(self._folders[folder_path])

    def verify(self, step: Step) -> None:
        """Check that the text swapped out is as expected. Raises ForeignSaveError and OSError.

        An editor that had the old file open may have written into it after the swap.
        """
        if step.before is not None and hash_of(self.temporary_content(step)) != step.before:
            raise ForeignSaveError(step.path)

    def remove_temporary(self, step: Step, unfinished: bytes | None = None) -> bool:
        """Remove the step's temporary file if its text is known; return whether none is left.

        Known are the old and the new body of the step, and a torn beginning of the new body, which
        is ``unfinished`` if a crash may have left one. Any other text stays, and so does a file
        that a program has open for writing.
        """
        # Checked before the text is read: a save that ends after this check is in the text below.
        if self._directory.open_for_writing(temporary_path(step)):
            return False
        temporary = self.temporary_content(step)
        if temporary is None:
            return True
        is_known = temporary.hash in (step.before, step.after)
        is_torn_body = unfinished is not None and is_torn(temporary, unfinished)
        if not is_known and not is_torn_body:
            return False
        self._disk.unlink(self._folder(step.path), step.temp)
        return True

    def remove_temporaries(
        self, steps: Iterable[Step], unfinished: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        """Remove the temporary files of steps as ``remove_temporary`` does, where that is possible.

        ``unfinished`` are new texts by hash, whose file may be only partly written.
        """
        for step in steps:
            # What cannot be removed now is removed at the next start; no reader ever sees it.
            with suppress(OSError, MemdError):
                self.remove_temporary(step, unfinished.get(step.after or ""))

    def _undo_swap(self, step: Step) -> None:
        """Undo one swap, unless another program saved the file after it.

        Such a save may also happen between the check and the renaming. Then the text that comes out
        is not the set's, and is put back.
        """
        folder, live = self._folder(step.path), os.path.basename(step.path)
        if hash_of(self.live_content(step)) != step.after:  # another program saved it
            return
        if step.after is None:  # the file was deleted
            self._move_to_live(folder, step.temp, live)
        elif step.before is None:  # the file was created
            self._disk.move(folder, live, step.temp)
            if hash_of(self.temporary_content(step)) != step.after:
                self._move_to_live(folder, step.temp, live)
        else:
            self._disk.exchange(folder, step.temp, live)
            if hash_of(self.temporary_content(step)) != step.after:
                self._disk.exchange(folder, step.temp, live)

    def _move_to_live(self, folder: int, temp: str, live: str) -> None:
        """Rename the temporary file to the live name, unless a live file is there again."""
        try:
            self._disk.move(folder, temp, live)
        except FileExistsError:
            return  # saved anew meanwhile; the older body stays aside

    def _content(self, step: Step, name: str) -> Content | None:
        """Return the content of a name in the step's folder; ``None`` without file or folder."""
        try:
            folder = self._folder(step.path)
        except DirectoryMissingError:
            return None
        return self._disk.read(folder, name)

    def _folder(self, path: str, *, create: bool = False) -> int:
        """Return the descriptor of a path's folder; it stays open until the ``with`` block ends."""
        folder_path = os.path.dirname(path)
        if folder_path not in self._folders:
            opened = self._directory.parent(path, create=create)
            self._folders[folder_path] = self._stack.enter_context(opened)[0]
        return self._folders[folder_path]


def temporary_path(step: Step) -> str:
    """Return the path of a step's temporary file, relative to the memory directory."""
    return os.path.join(os.path.dirname(step.path), step.temp)


def is_torn(file: Content, body: bytes) -> bool:
    """Say whether a file is the beginning of a body, as a crash leaves it; zeros may follow."""
    is_readable = bool(file.hash)
    return is_readable and body.startswith(file.content.rstrip(b"\0"))
