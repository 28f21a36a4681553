"""Older versions of a memory, who wrote them, and the plans that bring them back.

Reads only the journal and live files; called in a worker thread.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import asdict, replace

from memd.base.errors import WrongParameterError
from memd.base.names import check_stored_name
from memd.base.team import Author
from memd.base.text import iso_time, sha256
from memd.base.values import Actor, Change, CursorMove, FileEdit, MemoryFile, Plan
from memd.state.changes import (
    CONFLICT,
    ChangeRecord,
    Filter,
    Journal,
    JournalHistory,
    Step,
    compose,
)
from memd.store.drafts import StoreDraft
from memd.store.purge import Purged as Purged
from memd.store.purge import PurgeRefusedError as PurgeRefusedError
from memd.store.purge import purge_request as purge_request
from memd.store.restoring import RestorePlan
from memd.store.restoring import VersionNotFoundError as VersionNotFoundError
from memd.store.tree import StoredFile, memory_file
from memd.store.undo import ChangeNotFoundError as ChangeNotFoundError
from memd.store.undo import NewestUndoPlan, SpanPlan, UndoPlan
from memd.store.undo import NothingToUndoError as NothingToUndoError
from memd.store.undo import PurgedError as PurgedError
from memd.text import unified

At = str | float  # a change's id (the state after it), or seconds since 1970
_MODE = 0o600  # of an earlier version, whose own mode the journal does not have


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
    """Answers questions about earlier versions, from the journal and the live files.

    ``live`` returns the bytes of a file in a directory, or ``None``. ``author`` returns the team
    member who wrote a team's file, or ``None``.
    """

    def __init__(
        self,
        journal: Journal,
        live: Callable[[str, str], bytes | None],
        author: Callable[[str, str], Author | None] = lambda *_: None,
    ) -> None:
        self._journal = journal
        self._history = JournalHistory(journal)
        self._live_bytes = live
        self._author_of = author

    def changes(self, only: Filter, *, limit: int, before: str = "") -> tuple[Change, ...]:
        """Return the changes that pass a filter, newest first; with ``before`` only older ones.

        Raises ChangeNotFoundError for a ``before`` that is no change's id.
        """
        real_path = os.path.realpath(only.directory) if only.directory else ""
        number = self._record(real_path, before).number if before else 0  # 0 sets no bound
        return self._history.changes(replace(only, directory=real_path, before=number), limit)

    def diff(self, directory: str, change: str | None, path: str = "") -> tuple[FileDiff, ...]:
        """Return the unified diff of each file of a change, or only of ``path``.

        ``None`` means the newest change; the tuple is empty if there is none yet. Raises
        ChangeNotFoundError, and VersionNotFoundError if the change has no such file.
        """
        real_path = os.path.realpath(directory)
        if change is None:
            number = self._history.last_number(real_path)
            if number == 0:
                return ()
            change = f"c{number}"
        record = self._record(real_path, change, refused=True)
        steps = [step for step in record.steps if path in {"", step.path}]
        if path and not steps:
            raise VersionNotFoundError(path)
        diffs = []
        for step in steps:
            before, after = self._text(step.before), self._text(step.after)
            diffs.append(FileDiff(step.path, _unified_diff(step.path, before, after)))
        return tuple(diffs)

    def compare(self, directory: str, path: str, old: At | None, new: At | None) -> str:
        """Return the unified diff of two versions of a file.

        The new version is the live file by default; the old one is the one before the last change
        up to the new one. Raises ChangeNotFoundError, VersionNotFoundError and what reading the
        file raises.
        """
        real_path = os.path.realpath(directory)
        records = self._history.sets_of_file(real_path, path)
        if not records:
            raise VersionNotFoundError(path)
        if new is None:
            new_step = _step_of(records[-1], path)
            after: bytes | None = self._live_bytes(directory, path) or b""
        else:
            new_step = _last_step(records, path, self._number_at(real_path, new))
            after = self._text(new_step.after)
        if old is None:
            before = self._text(new_step.before)
        else:
            old_step = _last_step(records, path, self._number_at(real_path, old))
            before = self._text(old_step.after)
        return _unified_diff(path, before, after)

    def version(self, directory: str, path: str, at: At) -> MemoryFile:
        """Return a memory as it was after a change or at a time.

        Raises Refused, ChangeNotFoundError, and VersionNotFoundError where there was no
        file then, or its text is not kept any more.
        """
        check_stored_name(path, index=True)
        real_path = os.path.realpath(directory)
        records = self._history.sets_of_file(real_path, path)
        number = self._number_at(real_path, at)
        text_hash = _last_step(records, path, number).after if records else None
        content = self._journal.blob(text_hash) if text_hash else None
        if content is None or text_hash is None:
            raise VersionNotFoundError(path)
        mtime_ns = _mtime_ns_after(records, path, number)
        fingerprint = (0, mtime_ns, len(content))  # no inode: it need not be a file on the disk
        return memory_file(path, StoredFile(content, text_hash, fingerprint, mtime_ns, _MODE))

    def writers(self, directory: str, path: str) -> Writers:
        """Return the authors of a file, as far as the journal goes back."""
        records = self._history.sets_of_file(os.path.realpath(directory), path)
        member = self._author_of(directory, path)
        if not records:
            return Writers(None, None, (), member)
        ids = tuple(record.id for record in reversed(records))  # newest first
        return Writers(_writer(records[0], path), _writer(records[-1], path), ids, member)

    def repeats(self, directory: str, edits: Iterable[FileEdit]) -> frozenset[str]:
        """Return the paths of edits that a dream already made to the same text.

        If a dream would make such an edit again, somebody took its work back, and the edit must not
        be repeated. An edit without a ``base`` is never a repeat.
        """
        steps = []
        for edit in edits:
            if edit.base is not None:
                after = None if edit.content is None else sha256(edit.content)
                steps.append(Step(edit.path, edit.base or None, after))
        return self._history.repeated_paths(os.path.realpath(directory), Actor.DREAM, steps)

    def undo(self, directory: str, target: str | Range | float | None) -> Plan:
        """Return the plan that takes back one change, a range of them, or all after a time.

        ``None`` stands for the newest change that is neither an undo nor undone. Raises
        ChangeNotFoundError and RangeReversedError; the plan raises NothingToUndoError.
        """
        real_path = os.path.realpath(directory)
        if target is None:
            sets = partial(self._history.not_undone, real_path)
            return NewestUndoPlan(sets, self._journal.blob)
        if isinstance(target, str):
            return UndoPlan(self._record(real_path, target), self._journal.blob)
        if isinstance(target, Range):
            first = self._record(real_path, target.first).number
            if target.last:
                last = self._record(real_path, target.last).number
            else:
                last = self._history.last_number(real_path)
            if last < first:
                raise RangeReversedError(target.first, target.last)
        else:
            first = self._history.last_number(real_path, target) + 1
            last = self._history.last_number(real_path)
        undone = self._history.sets_between(real_path, first, last)
        span = compose(undone)
        if span is None:
            return lambda _: StoreDraft()
        return SpanPlan(span, undone[0].number, self._journal.blob)

    def restore(self, directory: str, path: str, change: str = "") -> Plan:
        """Return the plan that brings back a version of a file.

        By default that is the last version that differs from the live one. With ``change`` it is
        the version after that change, or the one before it if it deleted the file. For a conflict
        it is the refused text.
        Raises Refused, ChangeNotFoundError and VersionNotFoundError.
        """
        check_stored_name(path)
        real_path = os.path.realpath(directory)
        wanted = self._record(real_path, change, refused=True) if change else None
        if wanted and wanted.state == CONFLICT:
            if all(step.path != path for step in wanted.steps):
                raise VersionNotFoundError(path)
            return RestorePlan(wanted, path, self._journal.blob, exact=True)
        records = self._history.sets_of_file(real_path, path)
        if not records:
            raise VersionNotFoundError(path)
        if wanted is None:
            return RestorePlan(records[-1], path, self._journal.blob)
        # ``wanted`` may be a change of other files, so take the file's last change up to it.
        number = wanted.number
        earlier = [record for record in records if record.number <= number]
        record = earlier[-1] if earlier else records[0]
        later_steps = [_step_of(record, path) for record in records if record.number > number]
        mtime_ns = later_steps[0].before_mtime_ns if later_steps else None
        return RestorePlan(record, path, self._journal.blob, exact=True, mtime_ns=mtime_ns)

    def _record(self, real_path: str, change: str, *, refused: bool = False) -> ChangeRecord:
        """Return the change with this id, or raise ChangeNotFoundError.

        With ``refused`` a change that was refused as a conflict counts, too.
        """
        record = self._journal.change(real_path, change, refused=refused)
        if record is None:
            raise ChangeNotFoundError(change)
        return record

    def _number_at(self, real_path: str, at: At) -> int:
        """Return the number of a change given by its id, or of the last change up to a time."""
        if isinstance(at, str):
            return self._record(real_path, at).number
        return self._history.last_number(real_path, at)

    def _text(self, text_hash: str | None) -> bytes | None:
        """Return the text with this hash, ``None`` if the journal has lost it.

        Where there was no file, the hash is ``None`` and the text empty.
        """
        return b"" if text_hash is None else self._journal.blob(text_hash)


def _step_of(record: ChangeRecord, path: str) -> Step:
    """Return the step of a file in a set that has one."""
    return next(step for step in record.steps if step.path == path and not step.conflict)


def _last_step(records: Sequence[ChangeRecord], path: str, number: int) -> Step:
    """Return a file's step in the last of its ``records`` up to a set's number.

    Before the first record, return a step whose ``after`` is the text that the first one replaced.
    """
    earlier = [record for record in records if record.number <= number]
    if earlier:
        return _step_of(earlier[-1], path)
    first = _step_of(records[0], path)
    return replace(first, before=None, after=first.before)


def _mtime_ns_after(records: Sequence[ChangeRecord], path: str, number: int) -> int:
    """Return the mtime of a file's version after a set, from the ``records`` of the file.

    The next change noted the mtime that it met; without one, take the time of the change itself.
    """
    later = [record for record in records if record.number > number]
    if later:
        noted = _step_of(later[0], path).before_mtime_ns
        if noted is not None:
            return noted
    earlier = [record for record in records if record.number <= number]
    seconds = earlier[-1].at if earlier else records[0].at
    return int(seconds * 1e9)


def _writer(record: ChangeRecord, path: str) -> Writer:
    """Return the author of a version; if it was extracted, also the message it came from."""
    change = replace(record, steps=(_step_of(record, path),)).change()
    # An extraction moves the cursor of its transcript in the same set.
    moves = [effect for effect in record.effects if isinstance(effect, CursorMove)]
    return Writer(
        change.id,
        iso_time(change.at),
        change.files[0].action,
        message=moves[0].message or moves[0].marker if moves else "",
        transcript=moves[0].source if moves else "",
        **asdict(change.by),
    )


def _unified_diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return the unified diff of two bodies, or a sentence if one is lost (``None``) or binary."""
    if before is None or after is None:
        return f"{path}: the journal does not hold this text any more\n"
    try:
        old, new = before.decode(), after.decode()
    except UnicodeDecodeError:
        return f"{path}: binary\n"
    return "".join(unified.diff(path, unified.lines(old), unified.lines(new)))
