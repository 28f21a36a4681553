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

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.names import INDEX, INDEXES
from memd.core.text import sha256
from memd.core.values import Actor, Draft, FileEdit, Plan, Provenance, Tree
from memd.documents import document, index
from memd.files.directory import Directory
from memd.files.disk import NOT_A_MEMORY, Disk
from memd.state.changes import Step
from memd.store.apply import beside
from memd.store.drafts import StoreDraft

PUT_BACK = Provenance(
    Actor.EXTERNAL, reason="the text before, while a program that emptied the file still writes"
)


class DelayedSave(Struct, frozen=True):
    """A text that was written into a replaced file; ``step`` is what replaced that file."""

    step: Step
    body: bytes


class _Replaced(Struct, frozen=True):
    """A step whose replaced file is kept, since a time in monotonic seconds."""

    step: Step
    since: float


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
        self._files: dict[str, list[_Replaced]] = {}

    def add(self, directory: str, step: Step, now: float) -> None:
        """Keep a step's temporary file until it is due; ``now`` is monotonic seconds."""
        self._files.setdefault(directory, []).append(_Replaced(step, now))

    def late_saves(self, directory: str, now: float) -> tuple[list[DelayedSave], bool]:
        """Return the late saves of a directory, and whether another call is wanted later.

        The caller passes each to ``remove`` once it is in the journal. Raises OSError and
        MemdError if the directory cannot be opened; all files stay listed then.
        """
        result: list[DelayedSave] = []
        left: list[_Replaced] = []
        files = self._files.get(directory)
        if files:
            with Directory(directory) as opened:
                for each in files:
                    if self._is_due(opened, each, now):
                        save = self._late_save(opened, each.step)
                        result += [save] if save else []
                    else:
                        left.append(each)
            self._files[directory] = left
        return result, bool(left)

    def remove(self, directory: str, save: DelayedSave) -> None:
        """Remove a file whose late save is in the journal, unless it was written to since."""
        with suppress(OSError, MemdError), Directory(directory) as opened:
            self._remove(opened, save.step, (sha256(save.body),))

    def paths(self) -> tuple[str, ...]:
        """Return the absolute paths of all replaced files that are kept now."""
        return tuple(
            f"{directory}/{beside(each.step)}"
            for directory, files in self._files.items()
            for each in files
        )

    def close(self) -> None:
        """Remove files without late save that nobody writes to; the next start handles the rest."""
        for directory, files in self._files.items():
            with suppress(OSError, MemdError), Directory(directory) as opened:
                for each in files:
                    if self._open_for_writing(opened, beside(each.step)) is False:
                        self._remove(opened, each.step, (each.step.before, each.step.after))
        self._files.clear()

    def _is_due(self, opened: Directory, file: _Replaced, now: float) -> bool:
        """Say whether a replaced file may be read now: nobody writes to it any more."""
        written_to = self._open_for_writing(opened, beside(file.step))
        if written_to is None:
            return now >= file.since + limits.HOLD_SECONDS
        # A program may have looked up the file just before it was replaced, and open it a moment
        # after.
        return not written_to and now >= file.since + limits.LOOK_SECONDS

    def _late_save(self, opened: Directory, step: Step) -> DelayedSave | None:
        """Return the late save in a replaced file, or ``None``; remove a file without one."""
        try:
            with opened.parent(step.path) as (folder, _):
                result = self._disk.read(folder, step.temp)
                if result is None or result.hash == NOT_A_MEMORY:
                    return None  # too large for a memory: it stays, and each start reports it
                if result.hash not in (step.before, step.after):
                    return DelayedSave(step, result.content)
                self._disk.unlink(folder, step.temp)
        except (OSError, MemdError):
            pass  # the next start tries again
        return None

    def _remove(self, opened: Directory, step: Step, known: tuple[str | None, ...]) -> None:
        """Remove a step's temporary file if its hash is among ``known``."""
        with opened.parent(step.path) as (folder, _):
            result = self._disk.read(folder, step.temp)
            if result is not None and result.hash in known:
                self._disk.unlink(folder, step.temp)


def late_save_plan(save: DelayedSave, blobs: Callable[[str], bytes | None]) -> Plan:
    """Return the plan that brings a late save into the live file, or changes nothing.

    The plan merges the program's changes with the live file. If both changed the same lines, the
    later save wins, unless somebody else changed the file since memd wrote it. An empty text is no
    save: a program that died before it filled the file leaves one.
    """
    step = save.step

    def plan(tree: Tree) -> Draft:
        content = _text(tree, step.path)
        live = None if content is None else sha256(content)
        wanted: bytes | None = None
        if live in (step.before, step.after):
            wanted = save.body
        if content is not None:
            # A program that emptied the file began with the text from before.
            before = step.before and blobs(step.before)
            base = before or (step.after and blobs(step.after)) or b""
            texts = (base, save.body, content)
            in_index = step.path in INDEXES
            merged = index.merge(*texts) if in_index else document.merge(*texts, step.path)
            wanted = wanted if merged is None else merged
        if wanted is None or not save.body or wanted == content:
            return StoreDraft()
        return StoreDraft((FileEdit(step.path, wanted, live or ""),), restores=True)

    return plan


def put_back_plan(path: str, text: bytes, mtime_ns: int | None) -> Plan:
    """Return the plan that gives an emptied file the text that it had, if it is still empty."""

    def plan(tree: Tree) -> Draft:
        content = _text(tree, path)
        edits = (FileEdit(path, text, sha256(b""), mtime_ns),) if content == b"" else ()
        return StoreDraft(edits, restores=True, exact_index=True)

    return plan


def _text(tree: Tree, path: str) -> bytes | None:
    """Return the live text of a memory or the index, or ``None``."""
    if path == INDEX:
        return tree.index()
    result = tree.read(path)
    return result.content if result else None
