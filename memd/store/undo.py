"""Taking a change set back: a plan like any other, so an undo is journalled and can be undone.

A file that is still as the set left it gets its old bytes, mtime and mode. In a file that somebody
changed since, only the set's own changes are taken out; if that is not possible without touching
newer work, the file is left alone and named as a conflict. The index is merged by entries. Pure.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from memd.core.errors import MemdError
from memd.core.names import INDEX, TEAM_INDEX
from memd.core.text import sha256
from memd.core.values import FileEdit, MemoryFile, Pointer, Tree
from memd.documents import document, index
from memd.files.directory import FileTooLargeError
from memd.state.changes import ChangeRecord, Step
from memd.store.drafts import Blobs, StoreDraft


class ChangeNotFoundError(MemdError):
    """The journal has no applied change with this id for this directory."""

    code = 1001
    kind = "change_not_found"
    hint = "ask the history for the ids of changes"
    exit_status = 66

    def __init__(self, change: str) -> None:
        super().__init__(f"there is no change {change[:40]!r} of this directory", change=change)


class PurgedError(MemdError):
    """A text that the undo would restore was purged, so it no longer exists."""

    code = 1001
    kind = "purged"
    hint = "what was purged is gone for good; memctl log marks the changes that it was part of"
    exit_status = 66

    def __init__(self, change: str, path: str) -> None:
        super().__init__(
            f"{change} cannot be taken back: a text of {path} was purged from the history",
            change=change,
            path=path,
        )


class UndoPlan:
    """The plan that undoes one recorded set in the directory as it is now.

    It raises PurgedError if a text that it needs was purged.
    """

    def __init__(self, record: ChangeRecord, blobs: Blobs) -> None:
        self._id = record.id
        self._steps = [step for step in record.steps if not step.conflict and step.path != INDEX]
        self._index = next(
            (step for step in record.steps if step.path == INDEX and not step.conflict), None
        )
        self._blobs = blobs

    def __call__(self, tree: Tree) -> StoreDraft:
        """Return the draft that undoes the set in each file where newer changes can stay."""
        edits: list[FileEdit] = []
        conflicts: list[str] = []
        merged: list[str] = []
        modes: dict[str, int | None] = {}
        for step in self._steps:
            try:
                result = tree.read(step.path)
            except FileTooLargeError:
                conflicts.append(step.path)  # too large now to be compared
                continue
            live = result.hash if result else None
            edit = self._restore(step, live)
            if edit is not None:
                modes[step.path] = step.mode
            elif live == step.before:
                continue
            elif step.path == TEAM_INDEX:
                continue  # its entries are derived from the memories; its other lines are newer
            elif (edit := self._merged(step, result)) is not None:
                merged.append(step.path)
            elif step.purged:
                raise PurgedError(self._id, step.path)
            if edit is None:
                conflicts.append(step.path)
            else:
                edits.append(edit)
        exact = self._index_edit(tree, edits, conflicts, merged)
        return StoreDraft(
            tuple(edits),
            self._pointers(tree, edits, conflicts),
            restores=True,
            modes=modes,
            exact_index=exact,
            conflicts=tuple(conflicts),
            merged=tuple(merged),
        )

    def _restore(self, step: Step, live: str | None) -> FileEdit | None:
        """Return the edit that restores a file; ``None`` if it changed or its text is lost."""
        if live != step.after:
            return None
        content = None if step.before is None else self._blobs(step.before)
        if content is None and step.before is not None:
            return None  # the journal does not have it any more
        return FileEdit(step.path, content, live or "", step.before_mtime_ns)

    def _merged(self, step: Step, result: MemoryFile | None) -> FileEdit | None:
        """Return the edit that removes the set's changes and keeps newer ones, or ``None``."""
        if result is None or step.before is None or step.after is None:
            return None
        after, before = self._blobs(step.after), self._blobs(step.before)
        if after is None or before is None:
            return None
        content = document.merge(after, before, result.content, step.path)
        return None if content is None else FileEdit(step.path, content, result.hash)

    def _index_edit(
        self, tree: Tree, edits: list[FileEdit], conflicts: list[str], merged: list[str]
    ) -> bool:
        """Add the index's edit, if any; return whether its old bytes come back exactly."""
        step, current = self._index, tree.index()
        if step is None:
            return False
        live = None if current is None else sha256(current)
        edit = self._restore(step, live)
        if edit is not None:
            if edit.content is not None and current is not None:
                retained = _with_pointers(edit.content, current, conflicts)
                edit = replace(edit, content=retained)
            edits.append(edit)
            return not conflicts
        index_only = not self._steps
        lines = self._merged_lines(step, current)
        if lines is None and index_only and live != step.before:
            if step.purged:
                raise PurgedError(self._id, INDEX)
            conflicts.append(INDEX)
        elif current is not None and live is not None:
            lines = self._old_lines(current, edits) if lines is None else lines
            lines = _with_pointers(lines, current, conflicts)
            edits += [FileEdit(INDEX, lines, live)] if lines != current else []
            merged += [INDEX] if index_only else []
        return False

    def _merged_lines(self, step: Step, current: bytes | None) -> bytes | None:
        """Return the index with the set's changes removed by entries, or ``None``."""
        after, before = (self._blobs(key) if key else b"" for key in (step.after, step.before))
        if after is None or before is None or current is None:
            return None
        return index.merge(after, before, current)

    def _old_lines(self, current: bytes, edits: list[FileEdit]) -> bytes:
        """Return the index with the old lines of restored files, where the set changed the line."""
        restored = {edit.path for edit in edits if edit.content is not None}
        before, after = self._entries("before"), self._entries("after")
        now = index.pointers(current)
        for path in sorted(restored & set(before) & set(now)):
            if now[path] == after.get(path) != before[path]:
                current = index.with_pointer(current, path, before[path])
        return current

    def _pointers(
        self, tree: Tree, edits: Iterable[FileEdit], conflicts: Iterable[str]
    ) -> dict[str, Pointer]:
        """Return the index lines of restored files, and of files left alone as conflicts."""
        restored = {edit.path for edit in edits if edit.content is not None}
        before, now = self._entries("before"), index.pointers(tree.index())
        retained = {path: now[path] for path in conflicts if path in now}
        return {path: before[path] for path in restored & set(before)} | retained

    def _entries(self, side: str) -> dict[str, Pointer]:
        """Return the index's lines on the ``before`` or ``after`` side of the set, by path."""
        key = self._index and getattr(self._index, side)
        return index.pointers(self._blobs(key) if key else None)


def _with_pointers(lines: bytes, current: bytes, paths: Iterable[str]) -> bytes:
    """Return the index ``lines``, but with the current lines of ``paths``, which stay as is."""
    now, merged = index.pointers(current), index.pointers(lines)
    for path in paths:
        if path in now and path in merged and now[path] != merged[path]:
            lines = index.with_pointer(lines, path, now[path])
    return lines
