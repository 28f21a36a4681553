"""Undoing a change set: a plan like any other, so an undo is journalled and can be undone.

A file that is still as the set left it gets its old bytes, mtime and mode. In a file that somebody
changed since, only the set's own changes are taken out; if that is not possible without touching
newer work, the file is left alone and named as a conflict. The index is merged by entries. Pure.
"""

from collections.abc import Callable, Iterable
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base.errors import MemdError
from memd.base.names import INDEX, TEAM_INDEX
from memd.base.text import sha256
from memd.base.values import Effect, FileEdit, MemoryFile, Pointer, Tree, Undid
from memd.files.directory import FileTooLargeError
from memd.state.changes import ChangeRecord, CombinedChange, Step
from memd.store import index
from memd.store.drafts import Blobs, StoreDraft
from memd.store.merge import merge_index, merge_memory


class ChangeNotFoundError(MemdError):
    """The journal has no applied change with this id for this directory."""

    code = 1001
    kind = "change_not_found"
    hint = "ask the history for the ids of changes"

    def __init__(self, change: str) -> None:
        super().__init__(f"there is no change {change[:40]!r} of this directory", change=change)


class NothingToUndoError(MemdError):
    """Each change of a directory is undone, or an undo."""

    code = 1001
    kind = "not_found"
    hint = "an undo is undone by its id, which the history has"

    def __init__(self) -> None:
        super().__init__("nothing is left to undo: every change is undone already, or an undo")


class PurgedError(MemdError):
    """A text that the undo would restore was purged, so it no longer exists."""

    code = 1001
    kind = "purged"
    hint = "what was purged is gone for good; memctl log marks the changes that it was part of"

    def __init__(self, change: str, path: str) -> None:
        super().__init__(
            f"{change} cannot be taken back: a text of {path} was purged from the history",
            change=change,
            path=path,
        )


class _FileUndos(Struct):
    """What an undo does to the files of a set; it is filled file by file."""

    edits: list[FileEdit] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)  # paths of files that are left alone
    merged: list[str] = field(default_factory=list)  # paths of files whose newer changes stay
    modes: dict[str, int | None] = field(default_factory=dict)  # of restored files, by path

    def restored_paths(self) -> set[str]:
        """Return the paths of all files that the undo gives a text, not of those it deletes."""
        return {edit.path for edit in self.edits if edit.content is not None}


class UndoPlan:
    """The plan that undoes one recorded set in the directory as it is now.

    It raises PurgedError if a text that it needs was purged.
    """

    def __init__(self, record: ChangeRecord, blobs: Blobs) -> None:
        steps = [step for step in record.steps if not step.conflict]
        self._id = record.id  # of the set, for errors
        self._number = record.number
        self._steps = [step for step in steps if step.path != INDEX]
        self._index_step = next((step for step in steps if step.path == INDEX), None)
        self._blobs = blobs  # returns a text of the journal by its hash

    def __call__(self, tree: Tree) -> StoreDraft:
        """Return the draft that undoes the set in each file where newer changes can stay."""
        undos = _FileUndos()
        for step in self._steps:
            self._undo_step(step, tree, undos)
        # The index comes last: its lines depend on which memories are restored.
        exact_index = self._undo_index(tree, undos)
        return StoreDraft(
            tuple(undos.edits),
            self._pointers(tree, undos),
            (Undid(self._number, self._number),),
            restores=True,
            modes=undos.modes,
            exact_index=exact_index,
            conflicts=tuple(undos.conflicts),
            merged=tuple(undos.merged),
        )

    def _undo_step(self, step: Step, tree: Tree, undos: _FileUndos) -> None:
        """Add to ``undos`` what takes one step back, or its path as a conflict."""
        try:
            live = tree.read(step.path)
        except FileTooLargeError:
            undos.conflicts.append(step.path)  # too large now to be compared
            return
        live_hash = live.hash if live else None
        edit = self._restoring_edit(step, live_hash)
        if edit is not None:
            undos.modes[step.path] = step.mode
            undos.edits.append(edit)
            return
        if live_hash == step.before:
            return  # somebody has restored it already
        if step.path == TEAM_INDEX:
            return  # its entries are derived from the memories; its other lines are newer
        edit = self._merging_edit(step, live)
        if edit is not None and live is not None and edit.content == live.content:
            return  # newer changes have taken it back already
        if edit is not None:
            undos.merged.append(step.path)
            undos.edits.append(edit)
        elif step.purged:
            raise PurgedError(self._id, step.path)
        else:
            undos.conflicts.append(step.path)

    def _restoring_edit(self, step: Step, live_hash: str | None) -> FileEdit | None:
        """Return the edit that restores a file's old bytes.

        It is ``None`` if the file is not as the set left it, or if its old text is lost.
        """
        if live_hash != step.after:
            return None
        content = None if step.before is None else self._blobs(step.before)
        if content is None and step.before is not None:
            return None  # the journal does not have it any more
        return FileEdit(step.path, content, live_hash or "", step.before_mtime_ns)

    def _merging_edit(self, step: Step, live: MemoryFile | None) -> FileEdit | None:
        """Return the edit that removes the set's changes and keeps newer ones, or ``None``."""
        if live is None or step.before is None or step.after is None:
            return None
        after, before = self._blobs(step.after), self._blobs(step.before)
        if after is None or before is None:
            return None
        # A merge towards the text before the set takes out just what the set put in.
        content = merge_memory(after, before, live.content, step.path)
        return None if content is None else FileEdit(step.path, content, live.hash)

    def _undo_index(self, tree: Tree, undos: _FileUndos) -> bool:
        """Add the index's edit to ``undos``, if any; return whether all its old bytes come back.

        If the index is as the set left it, its old bytes come back, except the lines of files that
        the undo leaves alone. Any other index is corrected line by line.
        """
        step, live = self._index_step, tree.index()
        if step is None:  # the set did not change the index
            return False
        live_hash = None if live is None else sha256(live)
        edit = self._restoring_edit(step, live_hash)
        if edit is None:
            self._undo_newer_index(step, live, live_hash, undos)
            return False
        if edit.content is not None and live is not None:
            content = _with_pointers(edit.content, live, undos.conflicts)
            edit = replace(edit, content=content)
        undos.edits.append(edit)
        return not undos.conflicts

    def _undo_newer_index(
        self, step: Step, live: bytes | None, live_hash: str | None, undos: _FileUndos
    ) -> None:
        """Add to ``undos`` what takes the set's changes out of an index that is newer than the set.

        - If the changes can be taken out by entries, the index is merged so.
        - Else, if the set changed other files too, only the lines of restored files are corrected.
        - Else the index is a conflict, or PurgedError is raised if a text of it was purged.
        """
        is_only_file = not self._steps
        was_restored = live_hash == step.before
        merged = self._merged_index(step, live)
        if merged is None and is_only_file and not was_restored:
            if step.purged:
                raise PurgedError(self._id, INDEX)
            undos.conflicts.append(INDEX)
        elif live is not None and live_hash is not None:
            undone = self._with_old_lines(live, undos) if merged is None else merged
            content = _with_pointers(undone, live, undos.conflicts)
            if content != live:
                undos.edits.append(FileEdit(INDEX, content, live_hash))
            if is_only_file:
                undos.merged.append(INDEX)

    def _merged_index(self, step: Step, live: bytes | None) -> bytes | None:
        """Return the live index with the set's changes removed by entries, or ``None``."""
        after = self._blobs(step.after) if step.after else b""
        before = self._blobs(step.before) if step.before else b""
        if after is None or before is None or live is None:
            return None
        return merge_index(after, before, live)

    def _with_old_lines(self, content: bytes, undos: _FileUndos) -> bytes:
        """Return the index with the old lines of restored files, where the set changed the line.

        A line that somebody changed after the set stays.
        """
        before, after = self._set_pointers("before"), self._set_pointers("after")
        now = index.pointers(content)
        for path in sorted(undos.restored_paths() & before.keys() & now.keys()):
            set_changed_line = after.get(path) != before[path]
            if set_changed_line and now[path] == after.get(path):
                content = index.with_pointer(content, path, before[path])
        return content

    def _pointers(self, tree: Tree, undos: _FileUndos) -> dict[str, Pointer]:
        """Return the draft's index lines by path: of restored files, and of files left alone.

        A restored file gets its line from before the set, a conflict the line that it has now.
        """
        before, now = self._set_pointers("before"), index.pointers(tree.index())
        old_lines = {path: before[path] for path in undos.restored_paths() & before.keys()}
        live_lines = {path: now[path] for path in undos.conflicts if path in now}
        return old_lines | live_lines

    def _set_pointers(self, side: Literal["before", "after"]) -> dict[str, Pointer]:
        """Return the index's lines by path, as they were before or after the set."""
        text_hash: str | None = getattr(self._index_step, side) if self._index_step else None
        return index.pointers(self._blobs(text_hash) if text_hash else None)


class NewestUndoPlan:
    """The plan that undoes the first of some sets whose undo changes a file or is a conflict.

    ``sets`` returns them, newest first. Those before it, whose files are as they were before the
    set, count as undone as well. The plan raises NothingToUndoError if there is no set to undo, and
    what ``UndoPlan`` raises.
    """

    def __init__(self, sets: Callable[[], Iterable[ChangeRecord]], blobs: Blobs) -> None:
        self._sets = sets
        self._blobs = blobs

    def __call__(self, tree: Tree) -> StoreDraft:
        """Return the draft of the undo."""
        passed: list[Effect] = []
        for record in self._sets():
            draft = UndoPlan(record, self._blobs)(tree)
            if draft.edits or draft.conflicts:
                return replace(draft, effects=(*draft.effects, *passed))
            passed += draft.effects
        raise NothingToUndoError


class SpanPlan:
    """The plan that undoes several sets at once: each file gets its text from before them.

    ``first`` is the number of the first set.
    """

    def __init__(self, span: CombinedChange, first: int, blobs: Blobs) -> None:
        self._span = span
        self._undid = Undid(first, span.record.number)
        self._plan = UndoPlan(span.record, blobs)  # of the sets as if they were one
        index_hash = span.first_index
        # The index lines from before the first set, by path.
        self._pointers = index.pointers(blobs(index_hash) if index_hash else None)

    def __call__(self, tree: Tree) -> StoreDraft:
        """Return the draft of the undo; files that others changed in between become conflicts."""
        draft = self._plan(tree)
        restored = {edit.path for edit in draft.edits if edit.content is not None}
        old_lines = {path: self._pointers[path] for path in restored & self._pointers.keys()}
        return replace(
            draft,
            pointers=old_lines | dict(draft.pointers),
            effects=(self._undid,),
            conflicts=(*draft.conflicts, *self._span.gaps),
        )


def _with_pointers(content: bytes, live: bytes, paths: Iterable[str]) -> bytes:
    """Return the index ``content``, but with the lines that ``paths`` have in the live index."""
    now, planned = index.pointers(live), index.pointers(content)
    for path in paths:
        if path in now and path in planned and now[path] != planned[path]:
            content = index.with_pointer(content, path, now[path])
    return content
