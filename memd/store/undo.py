"""Taking a change set back: a plan like any other, so an undo is journalled and can be undone.

A file is restored only where it is still exactly what the set left behind; its bytes, its mtime
and its mode come back. Where somebody has worked on it since, it is left alone and named. Pure:
bodies come in through a function.
"""

from collections.abc import Callable

from memd.core.errors import MemdError
from memd.core.text import sha256
from memd.core.values import FileEdit, Pointer, Tree
from memd.state.journal import Record, Step
from memd.store import index
from memd.store.drafts import StoreDraft
from memd.store.names import INDEX

Blobs = Callable[[str], bytes | None]


class ChangeNotFoundError(MemdError):
    """The journal has no such applied change of this directory."""

    code = 1001
    kind = "change_not_found"
    hint = "ask the history for the ids of changes"
    exit_status = 66

    def __init__(self, change: str) -> None:
        super().__init__(f"there is no change {change[:40]!r} of this directory", change=change)


class UndoPlan:
    """The plan that undoes one recorded set on whatever the directory is now."""

    def __init__(self, record: Record, blobs: Blobs) -> None:
        self._steps = [step for step in record.steps if not step.conflict and step.path != INDEX]
        self._index = next(
            (step for step in record.steps if step.path == INDEX and not step.conflict), None
        )
        self._blobs = blobs

    def __call__(self, tree: Tree) -> StoreDraft:
        """Return what restores every file that nobody touched since."""
        edits: list[FileEdit] = []
        conflicts: list[str] = []
        modes: dict[str, int | None] = {}
        for step in self._steps:
            found = tree.read(step.path)
            live = found.hash if found else None
            edit = self._restore(step, live)
            if edit is None and live != step.before:
                conflicts.append(step.path)
            elif edit is not None:
                edits.append(edit)
                modes[step.path] = step.mode
        exact = self._index_edit(tree, edits, conflicts)
        pointers = self._pointers({edit.path for edit in edits if edit.content is not None})
        return StoreDraft(
            tuple(edits),
            pointers,
            restores=True,
            modes=modes,
            exact_index=exact,
            conflicts=tuple(conflicts),
        )

    def _restore(self, step: Step, live: str | None) -> FileEdit | None:
        """Return the edit that restores a file, or ``None`` when it must be left alone."""
        if live != step.after:
            return None
        content = None if step.before is None else self._blobs(step.before)
        if content is None and step.before is not None:
            return None  # the journal does not have it any more
        return FileEdit(step.path, content, live or "", step.before_mtime_ns)

    def _index_edit(self, tree: Tree, edits: list[FileEdit], conflicts: list[str]) -> bool:
        """Add the edit of the index, if any; true when its bytes shall come back exactly."""
        step = self._index
        if step is None:
            return False
        current = tree.index()
        live = None if current is None else sha256(current)
        edit = self._restore(step, live)
        if edit is not None:
            edits.append(edit)
            return not conflicts
        if not self._steps and live != step.before:
            conflicts.append(INDEX)
        elif current is not None and (lines := self._lines(current, edits)) != current:
            edits.append(FileEdit(INDEX, lines, live))
        return False

    def _lines(self, current: bytes, edits: list[FileEdit]) -> bytes:
        """Return the index with the old lines of restored files whose line the set had changed."""
        restored = {edit.path for edit in edits if edit.content is not None}
        before, after = self._entries("before"), self._entries("after")
        now = {entry.path: Pointer(entry.title, entry.hook) for entry in index.entries(current)}
        for path in sorted(restored & set(before) & set(now)):
            if now[path] == after.get(path) != before[path]:
                current = index.with_pointer(current, path, before[path])
        return current

    def _pointers(self, restored: set[str]) -> dict[str, Pointer]:
        before = self._entries("before")
        return {path: before[path] for path in restored & set(before)}

    def _entries(self, side: str) -> dict[str, Pointer]:
        key = self._index and getattr(self._index, side)
        content = self._blobs(key) if key else None
        return {
            entry.path: Pointer(entry.title, entry.hook) for entry in index.entries(content or b"")
        }
