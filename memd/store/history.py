"""Older versions of a memory, who wrote them, and the plans that bring them back.

Pure but for the journal and the live file, which come in as functions; called in a worker thread.
"""

import os
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from memd.core.errors import MemdError, WrongParameterError
from memd.core.names import INDEX, check_name
from memd.core.team import Author
from memd.core.text import iso_time, sha256
from memd.core.values import Actor, Change, CursorMove, FileEdit, MemoryFile, Plan, Tree
from memd.documents import index
from memd.state.changes import (
    CONFLICT,
    ChangeRecord,
    CombinedChange,
    Filter,
    Journal,
    JournalHistory,
    Step,
    compose,
)
from memd.store.drafts import Blobs, StoreDraft
from memd.store.purge import Purged as Purged
from memd.store.purge import PurgeRefusedError as PurgeRefusedError
from memd.store.purge import purge_request as purge_request
from memd.store.tree import StoredFile, memory_file
from memd.store.undo import ChangeNotFoundError as ChangeNotFoundError
from memd.store.undo import PurgedError as PurgedError
from memd.store.undo import UndoPlan
from memd.text import unified

At = str | float  # a change's id (the state after it), or seconds since 1970
_MODE = 0o600


class VersionNotFoundError(MemdError):
    """The journal has no such version of the file."""

    code = 1001
    kind = "version_not_found"
    hint = "ask the history of the file for the changes that it knows"
    exit_status = 66

    def __init__(self, path: str) -> None:
        super().__init__(f"the journal has no such version of {path[:400]}", path=path)


class RangeReversedError(WrongParameterError):
    """A range of changes ends before it begins."""

    hint = "name the older change first"

    def __init__(self, first: str, last: str) -> None:
        super().__init__(f"{last[:40]} is older than {first[:40]}", first=first, last=last)


class Range(Struct, frozen=True):
    """Changes from one id to another, both included; a ``last`` of "" means the newest."""

    first: str
    last: str = ""


class Writer(Struct, frozen=True):
    """The author of one version of a file; ``at`` is ISO 8601 in UTC.

    If the version was extracted from a ``transcript``, ``message`` is the last message read there.
    """

    change: str
    at: str
    action: str
    actor: str
    client: str
    session: str
    model: str
    reason: str
    origin: str
    message: str
    transcript: str


class FileDiff(Struct, frozen=True):
    """A unified diff of one file."""

    path: str
    diff: str


class Writers(Struct, frozen=True):
    """The authors of a file: its first and last change in the journal, and the ids of all.

    ``member`` is the team member who wrote a team's file, if the server has sent that.
    """

    first: Writer | None
    last: Writer | None
    changes: tuple[str, ...]
    member: Author | None


class Past:
    """Queries of the journal and live files; ``live`` returns a file's bytes or ``None``."""

    def __init__(
        self,
        journal: Journal,
        live: Callable[[str, str], bytes | None],
        author: Callable[[str, str], Author | None] = lambda *_: None,
    ) -> None:
        self._journal = journal
        self._history = JournalHistory(journal)
        self._live = live
        self._author = author

    def changes(self, only: Filter, *, limit: int, before: str = "") -> tuple[Change, ...]:
        """Return the changes that pass a filter, newest first; with ``before`` only older ones.

        Raises ChangeNotFoundError for a ``before`` that is no change's id.
        """
        real = os.path.realpath(only.directory) if only.directory else ""
        number = self._record(real, before).number if before else 0
        return self._history.changes(replace(only, directory=real, before=number), limit)

    def diff(self, directory: str, change: str | None, path: str = "") -> tuple[FileDiff, ...]:
        """Return the unified diff of each file of a change, or only of ``path``.

        ``None`` means the newest change; the tuple is empty if there is none yet. Raises
        ChangeNotFoundError, and VersionNotFoundError if the change has no such file.
        """
        real = os.path.realpath(directory)
        if change is None:
            change = f"c{self._history.last(real)}"
            if change == "c0":
                return ()
        record = self._record(real, change, refused=True)
        steps = [step for step in record.steps if path in {"", step.path}]
        if path and not steps:
            raise VersionNotFoundError(path)
        texts = ((s.path, self._body(s.before), self._body(s.after)) for s in steps)
        return tuple(FileDiff(path, _unified(path, *both)) for path, *both in texts)

    def compare(self, directory: str, path: str, old: At | None, new: At | None) -> str:
        """Return the unified diff of two versions of a file.

        The new version is the live file by default; the old one is the one before the last change
        up to the new one. Raises ChangeNotFoundError, VersionNotFoundError and what reading the
        file raises.
        """
        real = os.path.realpath(directory)
        records = self._history.of_file(real, path)
        if not records:
            raise VersionNotFoundError(path)
        if new is None:
            last = _step(records[-1], path)
            after: bytes | None = self._live(directory, path) or b""
        else:
            last = _last(records, path, self._position(real, new))
            after = self._body(last.after)
        first = last if old is None else _last(records, path, self._position(real, old))
        before = first.before if old is None else first.after
        return _unified(path, self._body(before), after)

    def version(self, directory: str, path: str, at: At) -> MemoryFile:
        """Return a memory as it was after a change or at a time.

        Raises NameRefusedError, ChangeNotFoundError, and VersionNotFoundError where there was no
        file then, or its text is not kept any more.
        """
        check_name(path, index=True)
        real = os.path.realpath(directory)
        records = self._history.of_file(real, path)
        position = self._position(real, at)
        key = _last(records, path, position).after if records else None
        content = self._journal.blob(key) if key else None
        if content is None or key is None:
            raise VersionNotFoundError(path)
        later = [record for record in records if record.number > position]
        written = [record.at for record in records if record.number <= position]
        mtime = _step(later[0], path).before_mtime_ns if later else None
        if mtime is None:
            mtime = int((written[-1] if written else records[0].at) * 1e9)
        return memory_file(path, StoredFile(content, key, (0, mtime, len(content)), mtime, _MODE))

    def writers(self, directory: str, path: str) -> Writers:
        """Return the authors of a file, as far as the journal goes back."""
        records = self._history.of_file(os.path.realpath(directory), path)
        member = self._author(directory, path)
        if not records:
            return Writers(None, None, (), member)
        ids = tuple(record.id for record in reversed(records))
        return Writers(_writer(records[0], path), _writer(records[-1], path), ids, member)

    def repeats(self, directory: str, edits: Iterable[FileEdit]) -> frozenset[str]:
        """Return the paths of edits that a dream already made to the same text.

        If the live text is the one before that dream, somebody took the dream's work back, and it
        must not be done again. An edit without a ``base`` is never a repeat.
        """
        steps = (
            Step(
                edit.path,
                edit.base or None,
                None if edit.content is None else sha256(edit.content),
            )
            for edit in edits
            if edit.base is not None
        )
        return self._history.done_before(os.path.realpath(directory), Actor.DREAM, steps)

    def undo(self, directory: str, which: str | Range | float) -> Plan:
        """Return the plan that takes back one change, a range of them, or all after a time.

        Raises ChangeNotFoundError and RangeReversedError.
        """
        real = os.path.realpath(directory)
        if isinstance(which, str):
            return UndoPlan(self._record(real, which), self._journal.blob)
        if isinstance(which, Range):
            first = self._record(real, which.first)
            last = self._record(real, which.last).number if which.last else self._history.last(real)
            if last < first.number:
                raise RangeReversedError(which.first, which.last)
            records = self._history.between(real, first.number, last)
        else:
            start = self._history.last(real, which) + 1
            records = self._history.between(real, start, self._history.last(real))
        span = compose(records)
        return SpanPlan(span, self._journal.blob) if span else lambda _: StoreDraft()

    def restore(self, directory: str, path: str, change: str = "") -> Plan:
        """Return the plan that brings back a version of a file.

        By default that is the last version that differs from the live one. With ``change`` it is
        the version after that change, or the one before it if it deleted the file. For a conflict
        it is the refused text.
        Raises NameRefusedError, ChangeNotFoundError and VersionNotFoundError.
        """
        check_name(path)
        real = os.path.realpath(directory)
        wanted = self._record(real, change, refused=True) if change else None
        if wanted and wanted.state == CONFLICT:
            if all(step.path != path for step in wanted.steps):
                raise VersionNotFoundError(path)
            return RestorePlan(wanted, path, self._journal.blob, exact=True)
        records = self._history.of_file(real, path)
        if not records:
            raise VersionNotFoundError(path)
        if wanted is None:
            return RestorePlan(records[-1], path, self._journal.blob)
        number = wanted.number
        upto = [record for record in records if record.number <= number]
        later = [_step(record, path) for record in records if record.number > number]
        record, mtime = (upto or records[:1])[-1], later[0].before_mtime_ns if later else None
        return RestorePlan(record, path, self._journal.blob, exact=True, mtime_ns=mtime)

    def _record(self, real: str, change: str, *, refused: bool = False) -> ChangeRecord:
        record = self._journal.change(real, change, refused=refused)
        if record is None:
            raise ChangeNotFoundError(change)
        return record

    def _position(self, real: str, at: At) -> int:
        """Return the number of a change, or of the last change up to a time."""
        if isinstance(at, str):
            return self._record(real, at).number
        return self._history.last(real, at)

    def _body(self, key: str | None) -> bytes | None:
        """Return the text of a hash, b"" for no file, ``None`` if the journal has lost it."""
        return b"" if key is None else self._journal.blob(key)


class SpanPlan:
    """The plan that undoes several sets at once: each file gets its text from before them."""

    def __init__(self, span: CombinedChange, blobs: Blobs) -> None:
        self._span = span
        self._plan = UndoPlan(span.record, blobs)
        key = span.first_index
        self._pointers = index.pointers(blobs(key) if key else None)

    def __call__(self, tree: Tree) -> StoreDraft:
        """Return the draft of the undo; files that others changed in between become conflicts."""
        draft = self._plan(tree)
        restored = {edit.path for edit in draft.edits if edit.content is not None}
        lines = {path: self._pointers[path] for path in restored & set(self._pointers)}
        return replace(
            draft,
            pointers=lines | dict(draft.pointers),
            conflicts=(*draft.conflicts, *self._span.gaps),
        )


class RestorePlan:
    """The plan that restores one file as it was after a set, or before it if the set deleted it.

    If the file is in that state already, it goes back one version, unless ``exact`` is set.
    ``mtime_ns`` is the mtime of the version after the set, if it is known.
    """

    def __init__(
        self,
        record: ChangeRecord,
        path: str,
        blobs: Blobs,
        *,
        exact: bool = False,
        mtime_ns: int | None = None,
    ) -> None:
        self._id = record.id
        self._steps = {step.path: step for step in record.steps if not step.conflict}
        self._path = path
        self._blobs = blobs
        self._exact = exact
        self._mtime_ns = mtime_ns

    def __call__(self, tree: Tree) -> StoreDraft:
        """Return a draft with the edit of the file, empty if its text is already right.

        Raises VersionNotFoundError if there is no earlier version, PurgedError if it was purged.
        """
        path, step = self._path, self._steps[self._path]
        result = tree.read(path)
        live = result.hash if result else None
        goes_before = step.after is None or (step.after == live and not self._exact)
        wanted = step.before if goes_before else step.after
        content = self._blobs(wanted) if wanted else None
        if content is None and step.purged:
            raise PurgedError(self._id, path)
        if content is None:
            raise VersionNotFoundError(path)
        if wanted == live:
            return StoreDraft()
        mtime = step.before_mtime_ns if goes_before else self._mtime_ns or step.after_mtime_ns
        listed = self._steps.get(INDEX)
        key = listed and (listed.before if goes_before else listed.after)
        lines = index.pointers(self._blobs(key) if key else None)
        return StoreDraft(
            (FileEdit(path, content, live or "", mtime),),
            {path: lines[path]} if path in lines else {},
            restores=True,
            modes={path: step.mode},
        )


def _step(record: ChangeRecord, path: str) -> Step:
    """Return the step of a file in a set that has one."""
    return next(step for step in record.steps if step.path == path and not step.conflict)


def _last(records: Sequence[ChangeRecord], path: str, position: int) -> Step:
    """Return the last step of a file up to a position.

    Before its first step, return one whose ``after`` is the text that the first step replaced.
    """
    upto = [record for record in records if record.number <= position]
    if upto:
        return _step(upto[-1], path)
    first = _step(records[0], path)
    return replace(first, before=None, after=first.before)


def _writer(record: ChangeRecord, path: str) -> Writer:
    """Return the author of a version; if it was extracted, also the message it came from."""
    change = replace(record, steps=(_step(record, path),)).change()
    moves = [effect for effect in record.effects if isinstance(effect, CursorMove)]
    return Writer(
        change.id,
        iso_time(change.at),
        change.files[0].action,
        message=moves[0].message or moves[0].marker if moves else "",
        transcript=moves[0].source if moves else "",
        **asdict(change.by),
    )


def _unified(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return the unified diff of two bodies, or a sentence if one is lost (``None``) or binary."""
    if before is None or after is None:
        return f"{path}: the journal does not hold this text any more\n"
    try:
        old, new = before.decode(), after.decode()
    except UnicodeDecodeError:
        return f"{path}: binary\n"
    return "".join(unified.diff(path, unified.lines(old), unified.lines(new)))
