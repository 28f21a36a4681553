"""The one way to change a memory directory: record, apply, mark, and only then say "done".

This holds at every instant, also when the process dies:
- A reader sees the old body of a file or the new one; never a torn, empty or missing file.
- The journal has the whole set on the disk (what was there, what shall be there, and its effects)
  before a live file is touched.
- ``recovery.py`` finishes a set that is recorded but not marked: at the next start, and before the
  next commit in the same directory. So a directory has at most one such set.
- A live file is only replaced by an exchange. The body that comes out is compared with the one that
  the set was made from. If it is another one, it is put back and the plan runs again: no save of
  another program is overwritten unseen.
- A file that a program has open for writing is replaced only once the program closes it, or once
  the caller has waited for long enough (``OpenFiles``). ``replaced.py`` keeps replaced files.
- "Done" is said after the new bodies, the folders and the mark are on the disk.
- A set that cannot be applied is taken back by the same exchanges. If even that fails, the set
  stays recorded, the caller is told, and nothing is lost.
- A failed fsync fails the set, and no descriptor is fsynced again after that. Two failures in a row
  close the directory for writing until a probe succeeds (``files/disk.py``).

A write of one memory and its index line waits five times for the disk: the record, two bodies, one
folder, the mark (FSYNCS_PER_COMMIT, which a test holds). There is no lock in here: one daemon owns
the state file, and ``service.py`` lets one thread at a time commit in a directory.
"""

import secrets as tokens
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from memd.core.errors import MemdError
from memd.core.health import Health
from memd.core.names import INDEXES
from memd.core.recent import Recent
from memd.core.values import Actor, CommitResult, Draft, Plan, Provenance, Tree
from memd.files.directory import Directory, cause_of
from memd.files.disk import Disk, ensure_writable
from memd.state.changes import (
    ABANDONED,
    FAILED,
    ChangeRecord,
    Journal,
    PlannedChange,
    Step,
    file_changes,
)
from memd.state.database import StateUnusableError
from memd.store.apply import Application, ForeignSaveError
from memd.store.door import ConflictError, storable
from memd.store.drafts import Prepared, StoreDraft, prepare, refused
from memd.store.recent_texts import RecentTexts
from memd.store.recovery import roll_forward, sweep_strays
from memd.store.replaced import Replaced
from memd.store.tree import Listing, LiveTree

FSYNCS_PER_COMMIT = 5
_MENDED = Provenance(Actor.EXTERNAL, reason="the index after an interrupted change")
_ATTEMPTS = 10  # a program that saves the same file ten times in a row is a conflict to report


class StorageFailedError(MemdError):
    """The disk refused; the directory is as it was before, unless the sentence says otherwise."""

    code = 1012
    kind = "storage_failed"
    retryable = True
    of_disk = True
    hint = "free space or mend the disk or its permissions; no restart is needed"
    exit_status = 75

    def __init__(self, directory: str, cause: str, *, unfinished: bool = False) -> None:
        end = "; memd completes the change before the next one" if unfinished else ""
        super().__init__(
            f"{directory} cannot be written: {cause}{end}",
            directory=directory,
            cause=cause,
            unfinished=unfinished,
        )


class DirectoryBusyError(MemdError):
    """Another program saved the same files again and again while memd tried to write them."""

    code = 1002
    kind = "conflict"
    retryable = True

    def __init__(self, path: str, attempts: int) -> None:
        super().__init__(
            f"{path} was changed by another program {attempts} times in a row; nothing was written",
            path=path,
            attempts=attempts,
        )


class BeingWrittenError(Exception):
    """Another program has files open for writing that a set would replace.

    It never reaches a client: callers that pass ``OpenFiles.WAIT`` or ``EMPTIED`` catch it.
    """

    def __init__(self, paths: Collection[str]) -> None:
        self.paths = tuple(sorted(paths))
        super().__init__(f"another program is writing {', '.join(self.paths)}")


class OpenFiles(Enum):
    """What a commit does about files that another program has open for writing.

    ``WAIT`` refuses to replace them (BeingWrittenError), ``EMPTIED`` only those that are empty at
    the moment, ``IGNORE`` replaces them.
    """

    WAIT = "wait"
    EMPTIED = "emptied"
    IGNORE = "ignore"


class ChangeRequest(Struct, frozen=True):
    """A request to change a directory (its real path).

    ``at`` is seconds since 1970, ``monotonic`` is monotonic seconds.
    """

    directory: str
    plan: Plan
    by: Provenance
    at: float
    id: str = ""
    monotonic: float = 0.0
    writers: OpenFiles = OpenFiles.IGNORE


class Changes:
    """Commits change sets. Blocks: call it from a worker thread, one at a time per directory.

    ``recent`` has texts that readers were given and that the journal may lack. ``replaced`` keeps
    replaced files; without it they are removed at once. ``listing`` returns the list of a
    directory's files; without it the directory is scanned.
    """

    def __init__(
        self,
        journal: Journal,
        disk: Disk,
        recent: RecentTexts | None = None,
        replaced: Replaced | None = None,
        listing: Callable[[str], Listing | None] = lambda _: None,
    ) -> None:
        self._journal = journal
        self._recent = recent or RecentTexts()
        self._disk = disk
        self._replaced = replaced
        self._listing = listing
        self._health: Recent[str, Health] = Recent()

    def commit(self, request: ChangeRequest) -> CommitResult:
        """Run the plan on the live directory and apply what it wants, all of it or nothing.

        Raises what ``door.py`` refuses, DirectoryBusyError, BeingWrittenError, ReadOnlyError,
        StorageFailedError, StateUnusableError, and what the plan and opening the directory raise.
        """
        try:
            answer = self._earlier_result(request)
            if answer is not None:
                return answer
            with Directory(request.directory, create=True) as directory:
                health = self._health.setdefault(request.directory, Health())
                ensure_writable(health, self._disk, directory, request.at)
                finished = roll_forward(self._journal, self._disk, directory, request.at, health)
                self._hold_replaced(directory, finished.open, request.monotonic)
                if finished.sentences:
                    answer = self._earlier_result(request)
                return answer or self._commit_with_retries(request, directory)
        except OSError as error:
            raise StorageFailedError(request.directory, _cause(error)) from error

    def rehearse(self, request: ChangeRequest) -> CommitResult:
        """Return what ``commit`` would do to the directory as it is now, and do nothing.

        Raises what ``commit`` raises before it writes.
        """
        with Directory(request.directory) as directory:
            tree = self._tree(directory)
            prepared = prepare(request.plan(tree), tree, self._body, request.by.origin)
        files = tuple(file for file in file_changes(prepared.steps) if file.path not in INDEXES)
        conflicts = prepared.conflicts
        return CommitResult(
            None, files, merged=prepared.merged, note=prepared.note, conflicts=conflicts
        )

    def recover(self, at: float, now: float = 0.0) -> tuple[str, ...]:
        """Finish every recorded set and clean up; return sentences about what was done or failed.

        ``at`` is seconds since 1970, ``now`` monotonic seconds. A directory that cannot be used
        now is left for later. Raises StateUnusableError.
        """
        sentences: list[str] = []
        unfinished = {record.directory for record in self._journal.pending()}
        for path in self._journal.directories():
            try:
                with Directory(path) as directory:
                    health = self._health.setdefault(path, Health())
                    finished = roll_forward(self._journal, self._disk, directory, at, health)
                    sentences += finished.sentences
                    strays = sweep_strays(self._journal, self._disk, directory)
                    sentences += strays.sentences
                    self._hold_replaced(directory, strays.open, now)
                if finished.conflicts:
                    self.commit(ChangeRequest(path, _mend_index, _MENDED, at))
            except StateUnusableError:
                raise
            except (OSError, MemdError) as error:
                if path in unfinished:
                    sentences.append(f"a change in {path} waits to be completed: {_cause(error)}")
        return tuple(sentences)

    def _earlier_result(self, request: ChangeRequest) -> CommitResult | None:
        """Return the result of a request that was already carried out, or ``None``."""
        return self._journal.answered(request.directory, request.by.client, request.id)

    def _tree(self, directory: Directory) -> LiveTree:
        """Return a directory (opened by its real path) as a plan sees it."""
        path = directory.path
        return LiveTree(directory, self._listing(path), partial(self._journal.known, path))

    def _commit_with_retries(self, request: ChangeRequest, directory: Directory) -> CommitResult:
        """Plan, record and apply; retry while another program saves the same files."""
        path = ""
        for _ in range(_ATTEMPTS):
            tree = self._tree(directory)
            draft, prepared = self._plan_and_check(request, directory, tree)
            intent = _intent(request, draft, prepared)
            if not prepared.steps:
                self._journal.effects_only(intent)
                return CommitResult(None, conflicts=prepared.conflicts)
            record = self._journal.record(intent)
            try:
                self._apply(directory, record, prepared.bodies, request.monotonic)
            except ForeignSaveError as error:
                path = error.path
                continue
            try:
                done = self._journal.applied(record, request.at)
            except StateUnusableError as error:
                why = error.sentence
                raise StorageFailedError(record.directory, why, unfinished=True) from error
            return replace(done.result(), note=prepared.note)
        raise DirectoryBusyError(path, _ATTEMPTS)

    def _plan_and_check(
        self, request: ChangeRequest, directory: Directory, tree: LiveTree
    ) -> tuple[Draft, Prepared]:
        """Run the plan and check its draft; keep the text of a conflict in the journal."""
        draft: Draft | None = None
        try:
            draft = request.plan(tree)
            prepared = prepare(draft, tree, self._body, request.by.origin)
        except MemdError as error:
            # The plan or the merge may have failed because it read a half-written save.
            _refuse_open(request, directory, tree, tree.paths_read())
            if draft is None or not isinstance(error, ConflictError):
                raise
            if all(edit.content is None for edit in draft.edits):
                raise
            retained = self._journal.refused(_intent(request, draft, refused(draft, tree)))
            raise ConflictError(error.path, error.expected, error.actual, retained.id) from error
        replaced = [step.path for step in prepared.steps if step.before is not None]
        _refuse_open(request, directory, tree, replaced)
        return draft, prepared

    def _body(self, key: str) -> bytes | None:
        """Return the text with this hash from the journal or the recent texts, or ``None``."""
        body = self._journal.blob(key)
        return self._recent.get(key) if body is None else body

    def _apply(
        self, directory: Directory, record: ChangeRecord, bodies: Mapping[str, bytes], now: float
    ) -> None:
        """Put the recorded files in place, or take all of them back."""
        health = self._health.setdefault(record.directory, Health())
        with Application(directory, self._disk, health) as application:
            try:
                for step in record.steps:
                    if step.after is not None:
                        application.stage(step, bodies[step.after])
                for step in record.steps:
                    application.swap(step)
                application.sync()
                for step in record.steps:
                    application.verify(step)
            except (OSError, MemdError) as error:
                self._take_back(application, record, bodies, error)
                self._hold_replaced(directory, record.steps, now)
                raise
            if self._replaced is None:
                _sweep(application, record, {})
            else:
                self._hold_replaced(directory, record.steps, now)

    def _take_back(
        self,
        application: Application,
        record: ChangeRecord,
        bodies: Mapping[str, bytes],
        error: OSError | MemdError,
    ) -> None:
        """Undo what was applied of a set, after an error."""
        try:
            application.take_back()
            _sweep(application, record, bodies)
            foreign = isinstance(error, ForeignSaveError)
            self._journal.ended(record, ABANDONED if foreign else FAILED)
        except (OSError, MemdError) as again:
            causes = f"{_cause(error)}; {_cause(again)}"
            raise StorageFailedError(record.directory, causes, unfinished=True) from again

    def _hold_replaced(self, directory: Directory, steps: Iterable[Step], now: float) -> None:
        """Let ``replaced`` look after the files that these steps took out, if it was given."""
        for step in steps:
            if self._replaced is not None and step.before is not None:
                self._replaced.add(directory.path, step, now)


def _refuse_open(
    request: ChangeRequest, directory: Directory, tree: LiveTree, paths: Iterable[str]
) -> None:
    """Raise BeingWrittenError if the request refuses to replace files that are open now."""
    if request.writers is OpenFiles.IGNORE:
        return
    protected = [path for path in paths if request.writers is OpenFiles.WAIT or tree.is_empty(path)]
    open_now = [path for path in protected if directory.open_for_writing(path)]
    if open_now:
        raise BeingWrittenError(open_now)


def _mend_index(_: Tree) -> Draft:
    """Return a plan's draft that rebuilds the index if it is wrong, and changes nothing else."""
    return StoreDraft(mend_index=True)


def _sweep(application: Application, record: ChangeRecord, unfinished: Mapping[str, bytes]) -> None:
    # What cannot be removed now is removed at the next start; no reader ever sees it.
    for step in record.steps:
        with suppress(OSError, MemdError):
            application.sweep(step, unfinished.get(step.after or ""))


def _intent(request: ChangeRequest, draft: Draft, prepared: Prepared) -> PlannedChange:
    """Return the change set as the journal records it before it is applied."""
    return PlannedChange(
        request.directory,
        request.at,
        request.by,
        request.id,
        tokens.token_hex(4),
        prepared.steps,
        prepared.bodies,
        storable(draft.effects),
        prepared.conflicts,
        prepared.merged,
    )


def _cause(error: OSError | MemdError) -> str:
    return error.sentence if isinstance(error, MemdError) else cause_of(error)
