"""Files that a change set has replaced, kept until no program can write to them any more.

A program that has a file open while memd replaces it goes on writing into the replaced file. That
file keeps the temporary name that the journal gave it, so that a late text is found, also after a
crash. Rules of this file:
- A text is not read while a program has the file open for writing: it may be half of a save.
- Where the system does not say who has a file open, it is kept for ``limits.HOLD_SECONDS``.
- A file is removed when the change set knows its text. Any other text is a late save, and the file
  stays until the journal has that save.
"""

from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEX, INDEXES
from memd.base.text import sha256
from memd.base.values import Actor, Draft, FileEdit, Plan, Provenance, Tree
from memd.files.directory import Directory
from memd.files.disk import NOT_A_MEMORY, Disk
from memd.state.changes import Step
from memd.store.apply import temporary_path
from memd.store.drafts import StoreDraft
from memd.store.merge import merge_index, merge_memory

PUT_BACK = Provenance(
    Actor.EXTERNAL, reason="the text before, while a program that emptied the file still writes"
)


class DelayedSave(Struct, frozen=True):
    """A text that another program wrote into a file which ``step`` had just replaced."""

    step: Step
    body: bytes


class _ReplacedFile(Struct, frozen=True):
    """A replaced file that is kept."""

    step: Step  # that replaced the file, and knows its temporary name
    since: float  # monotonic seconds


class Replaced:
    """The replaced files of all directories. Blocks; the caller holds the directory's lock.

    ``open_for_writing`` says whether a program has a path open for writing, ``None`` if unknown.
    """

    def __init__(
        self,
        disk: Disk,
        open_for_writing: Callable[[Directory, str], bool | None] = Directory.open_for_writing,
    ) -> None:
        self._disk = disk
        self._open_for_writing = open_for_writing
        self._files: dict[str, list[_ReplacedFile]] = {}  # by the directory's real path

    def add_file(self, directory: str, step: Step, now: float) -> None:
        """Keep the file that a step replaced until ``late_saves`` may read it.

        ``now`` is monotonic seconds.
        """
        self._files.setdefault(directory, []).append(_ReplacedFile(step, now))

    def late_saves(self, directory: str, now: float) -> tuple[list[DelayedSave], bool]:
        """Return the late saves in replaced files that no program can write to any more.

        The second value says whether files are left to be read later. The caller passes each save
        to ``remove_saved`` once it is in the journal. Of a directory that cannot be opened now,
        all files stay listed for the next call.
        """
        files = self._files.get(directory)
        if not files:
            return [], False
        saves: list[DelayedSave] = []
        not_due: list[_ReplacedFile] = []
        try:
            opened = Directory(directory)
        except MemdError:  # removed or replaced: that must not refuse a change
            return [], False
        with opened:
            for file in files:
                if not self._is_due(opened, file, now):
                    not_due.append(file)
                    continue
                save = self._late_save(opened, file.step)
                if save is not None:
                    saves.append(save)
        self._files[directory] = not_due
        return saves, bool(not_due)

    def remove_saved(self, directory: str, save: DelayedSave) -> None:
        """Remove a file whose late save is in the journal, unless it was written to since."""
        with suppress(OSError, MemdError), Directory(directory) as opened:
            self._remove_known(opened, save.step, (sha256(save.body),))

    def paths(self) -> tuple[str, ...]:
        """Return the absolute paths of all replaced files that are kept now."""
        return tuple(
            f"{directory}/{temporary_path(file.step)}"
            for directory, files in self._files.items()
            for file in files
        )

    def close(self) -> None:
        """Remove the files without a late save that no program has open for writing.

        The next start of memd handles the rest.
        """
        for directory, files in self._files.items():
            with suppress(OSError, MemdError), Directory(directory) as opened:
                for file in files:
                    step = file.step
                    # ``None`` means unknown: a program may have the file open.
                    if self._open_for_writing(opened, temporary_path(step)) is False:
                        self._remove_known(opened, step, (step.before, step.after))
        self._files.clear()

    def _is_due(self, opened: Directory, file: _ReplacedFile, now: float) -> bool:
        """Say whether a replaced file may be read now: nobody writes to it any more."""
        is_open = self._open_for_writing(opened, temporary_path(file.step))
        if is_open is None:  # the system does not say who has the file open
            return now >= file.since + limits.HOLD_SECONDS
        # A program may have looked up the file just before it was replaced, and open it a moment
        # after.
        return not is_open and now >= file.since + limits.LOOK_SECONDS

    def _late_save(self, opened: Directory, step: Step) -> DelayedSave | None:
        """Return the late save in a replaced file; if there is none, remove the file.

        A file holds a late save if its text is neither the old nor the new one of the step.
        """
        try:
            with opened.parent(step.path) as (folder, _):
                file = self._disk.read(folder, step.temp)
                if file is None or file.hash == NOT_A_MEMORY:
                    return None  # too large for a memory: it stays, and each start reports it
                if file.hash not in (step.before, step.after):
                    return DelayedSave(step, file.content)
                self._disk.unlink(folder, step.temp)
        except (OSError, MemdError):
            pass  # the next start tries again
        return None

    def _remove_known(
        self, opened: Directory, step: Step, known_hashes: tuple[str | None, ...]
    ) -> None:
        """Remove a step's replaced file if its text is known, so that nothing is lost with it."""
        with opened.parent(step.path) as (folder, _):
            file = self._disk.read(folder, step.temp)
            if file is not None and file.hash in known_hashes:
                self._disk.unlink(folder, step.temp)


def late_save_plan(save: DelayedSave, blobs: Callable[[str], bytes | None]) -> Plan:
    """Return the plan that brings a late save into the live file, or changes nothing.

    The plan merges the program's changes with the live file. If both changed the same lines, the
    late save wins, unless somebody else changed the file since memd wrote it. An empty text is no
    save: a program that died before it filled the file leaves one. ``blobs`` returns a text by its
    hash.
    """
    step = save.step

    def plan(tree: Tree) -> Draft:
        """Return the draft with the late save's changes, empty if the live file has them."""
        live = _live_text(tree, step.path)
        live_hash = None if live is None else sha256(live)
        wanted = None if live is None else _merge_late_save(save, live, blobs)
        # If the file is as memd left it, no work of others is lost when the late save replaces it.
        if wanted is None and live_hash in (step.before, step.after):
            wanted = save.body
        is_empty_save = not save.body
        if wanted is None or is_empty_save or wanted == live:
            return StoreDraft()
        # ``restores``: the text is saved already, so its size and secrets are not checked.
        return StoreDraft((FileEdit(step.path, wanted, live_hash or ""),), restores=True)

    return plan


def _merge_late_save(
    save: DelayedSave, live: bytes, blobs: Callable[[str], bytes | None]
) -> bytes | None:
    """Return the live text with a late save's changes, ``None`` if both changed the same lines.

    The program began with the text before memd's change, as far as memd still has that.
    """
    step = save.step
    base = blobs(step.before) if step.before else None
    if not base and step.after:
        base = blobs(step.after)
    base = base or b""
    if step.path in INDEXES:
        return merge_index(base, save.body, live)
    return merge_memory(base, save.body, live, step.path)


def put_back_plan(path: str, text: bytes, mtime_ns: int | None) -> Plan:
    """Return the plan that gives an emptied file the text that it had, if it is still empty."""

    def plan(tree: Tree) -> Draft:
        """Return the draft that puts the text back, without an edit if the file has one."""
        is_empty = _live_text(tree, path) == b""
        edits = (FileEdit(path, text, sha256(b""), mtime_ns),) if is_empty else ()
        return StoreDraft(edits, restores=True, exact_index=True)

    return plan


def _live_text(tree: Tree, path: str) -> bytes | None:
    """Return the live text of a memory or the index, or ``None``."""
    if path == INDEX:
        return tree.index()
    memory = tree.read(path)
    return memory.content if memory else None
