"""The plans that take changes back and bring versions back. Pure but for reading the log.

An undo is a plan like any other, so it is a change of its own and can be undone. A file that is
still as the change left it gets its old bytes, mtime and mode. In a file that somebody changed
since, only what the change did is taken out; where that is not possible without touching newer
work, the file is left alone and named as a conflict. In the index it is done line by line.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base.errors import NotFound, TooLarge
from memd.base.names import INDEX, INDEXES, TEAM_INDEX
from memd.base.text import sha256
from memd.base.values import Draft, FileEdit, Plan, Pointer, Tree, Undid
from memd.store import index, merge
from memd.store.log import ChangeLog, ChangeRecord, Step


class Undo(Struct):
    """The undo of one change in the directory as it is now."""

    record: ChangeRecord
    log: ChangeLog
    edits: list[FileEdit] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)  # paths of files that are left alone
    merged: list[str] = field(default_factory=list)  # paths of files whose newer changes stay
    modes: dict[str, int | None] = field(default_factory=dict)  # of restored files, by path

    def plan(self, tree: Tree) -> Draft:
        """Return the draft that undoes the change in each file where newer work can stay.

        Raises NotFound if a text that it needs was purged.
        """
        self.edits, self.conflicts, self.merged, self.modes = [], [], [], {}
        steps = [step for step in self.record.steps if not step.conflict]
        for step in steps:
            if step.path != INDEX:
                self._undo_file(step, tree)
        # The index comes last: its lines depend on which memories are restored.
        index_step = next((step for step in steps if step.path == INDEX), None)
        exact = self._undo_index(index_step, tree, alone=len(steps) == 1) if index_step else False
        before = self._lines(index_step.before if index_step else None)
        now = index.pointers(tree.index())
        restored = {edit.path for edit in self.edits if edit.content is not None}
        pointers = {path: before[path] for path in restored & before.keys()}
        pointers |= {path: now[path] for path in self.conflicts if path in now}
        return Draft(
            tuple(self.edits),
            pointers,
            restores=True,
            modes=self.modes,
            exact_index=exact,
            conflicts=tuple(self.conflicts),
            merged=tuple(self.merged),
            undid=(Undid(self.record.number, self.record.number),),
        )

    def _undo_file(self, step: Step, tree: Tree) -> None:
        """Add the edit that takes one step back, or its path as a conflict."""
        try:
            live = tree.read(step.path)
        except TooLarge:
            self.conflicts.append(step.path)  # too large now to be compared
            return
        live_hash = live.hash if live else None
        before = self.log.body(step.before)
        if live_hash == step.after and (before is not None or step.before is None):
            self.modes[step.path] = step.mode
            self.edits.append(FileEdit(step.path, before, live_hash or "", step.before_mtime_ns))
            return
        if live_hash == step.before or step.path == TEAM_INDEX:
            return  # restored already; the entries of a team's index follow from its memories
        after = self.log.body(step.after)
        content = None
        if live is not None and before is not None and after is not None:
            # A merge towards the text before the change takes out just what the change put in.
            content = merge.merge_memory(after, before, live.content, step.path)
        if content is None:
            if step.purged:
                raise purged(self.record.id, step.path)
            self.conflicts.append(step.path)
        elif live is not None and content != live.content:
            self.merged.append(step.path)
            self.edits.append(FileEdit(step.path, content, live.hash))

    def _undo_index(self, step: Step, tree: Tree, *, alone: bool) -> bool:
        """Add the edit of the index, if any; return whether all its old bytes come back.

        If it is as the change left it, its old bytes come back, except the lines of files that the
        undo leaves alone. From any other index what the change did is taken out line by line.
        """
        live = tree.index()
        live_hash = None if live is None else sha256(live)
        before = self.log.body(step.before)
        if live_hash == step.after and (before is not None or step.before is None):
            content = before
            if before is not None and live is not None:
                content = _with_lines_of(before, live, self.conflicts)
            self.edits.append(FileEdit(INDEX, content, live_hash or "", step.before_mtime_ns))
            return not self.conflicts
        merged = None
        after = self.log.body(step.after) if step.after else b""
        if live is not None and after is not None and (before is not None or step.before is None):
            merged = merge.merge_index(after, before or b"", live)
        if merged is None and alone and live_hash != step.before:
            if step.purged:
                raise purged(self.record.id, INDEX)
            self.conflicts.append(INDEX)
        elif live is not None and live_hash is not None:
            undone = self._with_old_lines(live, step) if merged is None else merged
            content = _with_lines_of(undone, live, self.conflicts)
            if content != live:
                self.edits.append(FileEdit(INDEX, content, live_hash))
            if alone:
                self.merged.append(INDEX)
        return False

    def _with_old_lines(self, content: bytes, step: Step) -> bytes:
        """Return the index with the old lines of restored files, where the change made the line."""
        before, after = self._lines(step.before), self._lines(step.after)
        now = index.pointers(content)
        restored = {edit.path for edit in self.edits if edit.content is not None}
        for path in sorted(restored & before.keys() & now.keys()):
            if now[path] == after.get(path) != before[path]:
                content = index.with_pointer(content, path, before[path])
        return content

    def _lines(self, text_hash: str | None) -> dict[str, Pointer]:
        """Return the lines of an index with this hash by path."""
        return index.pointers(self.log.body(text_hash))


def _with_lines_of(content: bytes, live: bytes, paths: Iterable[str]) -> bytes:
    """Return the index ``content``, but with the lines that ``paths`` have in the live index."""
    now, planned = index.pointers(live), index.pointers(content)
    for path in paths:
        if path in now and path in planned and now[path] != planned[path]:
            content = index.with_pointer(content, path, now[path])
    return content


def undo_newest(records: Callable[[], Iterable[ChangeRecord]], log: ChangeLog) -> Plan:
    """Return the plan that undoes the first of some changes whose undo changes a file.

    ``records`` returns them, newest first. Changes whose files are as they were before them count
    as undone as well. What cannot be taken back since its text was purged is passed over.
    """

    def plan(tree: Tree) -> Draft:
        """Return the draft of the undo. Raises NotFound if nothing is left to undo."""
        passed: tuple[Undid, ...] = ()
        for record in records():
            try:
                draft = Undo(record, log).plan(tree)
            except NotFound:
                continue
            if draft.edits or draft.conflicts:
                return replace(draft, undid=(*draft.undid, *passed))
            passed += draft.undid
        raise NotFound(
            "nothing is left to undo: every change is undone already, purged, or an undo",
            hint="an undo is undone by its id, which the history has",
        )

    return plan


def undo_span(records: Sequence[ChangeRecord], log: ChangeLog) -> Plan:
    """Return the plan that gives each file its text from before several changes."""
    first: dict[str, Step] = {}  # by path: the first step of the file
    last: dict[str, Step] = {}  # by path: the last step of the file
    gaps: dict[str, None] = {}  # files that changed in between without a change for it
    for record in records:
        for step in record.steps:
            if step.conflict:
                continue
            if step.path in last and last[step.path].after != step.before:
                gaps[step.path] = None
            first.setdefault(step.path, step)
            last[step.path] = step
    steps = tuple(
        replace(step, after=last[path].after)
        for path, step in first.items()
        if path not in gaps and step.before != last[path].after
    )
    undo = Undo(replace(records[-1], steps=steps), log)
    old_index = first[INDEX].before if INDEX in first else None
    lines_before = index.pointers(log.body(old_index))
    undid = Undid(records[0].number, records[-1].number)

    def plan(tree: Tree) -> Draft:
        """Return the draft of the undo; files that others changed in between are conflicts."""
        draft = undo.plan(tree)
        restored = {edit.path for edit in draft.edits if edit.content is not None}
        old_lines = {path: lines_before[path] for path in restored & lines_before.keys()}
        left = tuple(path for path in gaps if path not in INDEXES)
        return replace(
            draft,
            pointers=old_lines | dict(draft.pointers),
            undid=(undid,),
            conflicts=(*draft.conflicts, *left),
        )

    return plan


def restore_one(
    record: ChangeRecord,
    path: str,
    log: ChangeLog,
    *,
    exact: bool = False,
    mtime_ns: int | None = None,
) -> Plan:
    """Return the plan that restores a file as it was after a change, or before a deletion.

    If it is in that state already, it goes back one version, unless ``exact`` is set.
    ``mtime_ns`` is the mtime of the version after the change, if it is known.
    """
    steps = {step.path: step for step in record.steps if not step.conflict}

    def plan(tree: Tree) -> Draft:
        """Return the draft of one edit, empty if the text is right. Raises NotFound."""
        step, live = steps[path], tree.read(path)
        live_hash = live.hash if live else None
        use_before = step.after is None or (step.after == live_hash and not exact)
        wanted = step.before if use_before else step.after
        content = log.body(wanted)
        if content is None:
            raise purged(record.id, path) if step.purged else no_version(path)
        if wanted == live_hash:
            return Draft()
        after_ns = step.after_mtime_ns if mtime_ns is None else mtime_ns
        edit = FileEdit(
            path, content, live_hash or "", step.before_mtime_ns if use_before else after_ns
        )
        line: dict[str, Pointer] = {}
        if INDEX in steps:
            of_index = steps[INDEX].before if use_before else steps[INDEX].after
            lines = index.pointers(log.body(of_index))
            line = {path: lines[path]} if path in lines else {}
        return Draft((edit,), line, restores=True, modes={path: step.mode})

    return plan


def no_version(path: str) -> NotFound:
    """Return the error of a version that the log does not have."""
    return NotFound(
        f"the history has no such version of {path[:400]}",
        kind="version_not_found",
        hint="ask the history of the file for the changes that it knows",
        path=path,
    )


def purged(change: str, path: str) -> NotFound:
    """Return the error of a text that was purged, so that it no longer exists."""
    return NotFound(
        f"{change} cannot be taken back: a text of {path} was purged from the history",
        hint="what was purged is gone for good; memctl log marks the changes that it was part of",
        change=change,
        path=path,
    )
