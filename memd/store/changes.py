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
- A failed fsync fails the set, and no descriptor is fsynced again after that.

A write of one memory and its index line waits five times for the disk: the record, two bodies, one
folder, the mark (FSYNCS_PER_COMMIT, which a test holds). There is no lock in here: one daemon owns
the state file, and ``service.py`` lets one thread at a time commit in a directory.
"""

import secrets as tokens
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from memd.base.errors import MemdError
from memd.base.names import INDEXES
from memd.base.values import Actor, CommitResult, Draft, Plan, Provenance, Tree, undone_by
from memd.files.directory import Directory, cause_of
from memd.files.disk import Disk
from memd.state.changes import (
    ABANDONED,
    FAILED,
    ChangeRecord,
    Journal,
    PlannedChange,
    Step,
    file_changes,
)
from memd.state.database import StateFaultError, StateUnusableError
from memd.store.apply import Application, ForeignSaveError
from memd.store.door import ConflictError, without_secrets
from memd.store.drafts import Prepared, StoreDraft, prepare, prepare_refused
from memd.store.recent_texts import RecentTexts
from memd.store.recovery import roll_forward, sweep_strays
from memd.store.replaced import Replaced
from memd.store.tree import Listing, LiveTree, opened_or_empty

FSYNCS_PER_COMMIT = 5
_INDEX_MENDED = Provenance(Actor.EXTERNAL, reason="the index after an interrupted change")
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
    """A request to change a directory (its real path) as a plan wants it.

    ``by`` names the writer. ``at`` is seconds since 1970, ``monotonic`` is monotonic seconds. A
    request whose ``id`` the same client sent before is answered with the earlier result.
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

    def commit(self, request: ChangeRequest) -> CommitResult:
        """Run the plan on the live directory and apply what it wants, all of it or nothing.

        Raises what ``door.py`` refuses, DirectoryBusyError, BeingWrittenError,
        StorageFailedError, StateUnusableError, and what the plan and opening the directory raise.
        """
        try:
            earlier = self._earlier_result(request)
            if earlier is not None:
                return earlier
            with Directory(request.directory, create=True) as directory:
                finished = roll_forward(self._journal, self._disk, directory, request.at)
                self._keep_replaced(directory, finished.open, request.monotonic)
                # A set that was just finished may be this very request, sent before a crash.
                earlier = self._earlier_result(request) if finished.sentences else None
                return earlier or self._commit_with_retries(request, directory)
        except OSError as error:
            raise StorageFailedError(request.directory, _cause_text(error)) from error

    def rehearse(self, request: ChangeRequest) -> CommitResult:
        """Return what ``commit`` would do to the directory as it is now, and do nothing.

        Raises what ``commit`` raises before it writes.
        """
        with opened_or_empty(request.directory) as directory:
            tree = self._live_tree(directory)
            draft = request.plan(tree)
            prepared = prepare(draft, tree, self._text_by_hash, request.by.origin)
        files = tuple(file for file in file_changes(prepared.steps) if file.path not in INDEXES)
        return CommitResult(
            None,
            files,
            merged=prepared.merged,
            note=prepared.note,
            conflicts=prepared.conflicts,
            undone=undone_by(draft.effects),
        )

    def recover(self, at: float, now: float = 0.0) -> tuple[str, ...]:
        """Finish every recorded set, remove stray files; return sentences about what happened.

        ``at`` is seconds since 1970, ``now`` monotonic seconds. A directory that cannot be used
        now is left for later. Raises StateUnusableError.
        """
        sentences: list[str] = []
        unfinished = {record.directory for record in self._journal.pending()}
        for path in self._journal.directories():
            try:
                with Directory(path) as directory:
                    finished = roll_forward(self._journal, self._disk, directory, at)
                    sentences += finished.sentences
                    strays = sweep_strays(self._journal, self._disk, directory)
                    sentences += strays.sentences
                    self._keep_replaced(directory, strays.open, now)
                if finished.conflicts:
                    # A file was left as another program wrote it, so the set's index may be wrong.
                    self.commit(ChangeRequest(path, _index_check_draft, _INDEX_MENDED, at))
            except StateUnusableError:
                raise
            except (OSError, MemdError) as error:
                if path in unfinished:
                    why = _cause_text(error)
                    sentences.append(f"a change in {path} waits to be completed: {why}")
        return tuple(sentences)

    def _earlier_result(self, request: ChangeRequest) -> CommitResult | None:
        """Return the result of a request that was already carried out, or ``None``."""
        return self._journal.earlier_result(request.directory, request.by.client, request.id)

    def _live_tree(self, directory: Directory) -> LiveTree:
        """Return the tree that a plan gets of a directory that was opened by its real path."""
        path = directory.path
        return LiveTree(directory, self._listing(path), partial(self._journal.known_paths, path))

    def _commit_with_retries(self, request: ChangeRequest, directory: Directory) -> CommitResult:
        """Plan, record and apply; start again if another program saves the same files meanwhile.

        Raises DirectoryBusyError after the last attempt, and what ``commit`` raises.
        """
        path = ""  # of the file that another program saved last
        for _ in range(_ATTEMPTS):
            tree = self._live_tree(directory)
            draft, prepared = self._plan_and_check(request, directory, tree)
            intent = _intent(request, draft, prepared)
            if not prepared.steps:  # no file changes, but the draft may have effects to record
                self._journal.record_effects(intent)
                undone = undone_by(draft.effects)
                return CommitResult(None, conflicts=prepared.conflicts, undone=undone)
            record = self._journal.record(intent)
            try:
                self._apply(directory, record, prepared.bodies, request.monotonic)
            except ForeignSaveError as error:
                path = error.path
                continue
            try:
                applied = self._journal.mark_applied(record, request.at)
            except StateFaultError:
                raise  # it has its entry in the log; the set is completed before the next one
            except StateUnusableError as error:
                why = error.sentence
                raise StorageFailedError(record.directory, why, unfinished=True) from error
            return replace(applied.result(), note=prepared.note)
        raise DirectoryBusyError(path, _ATTEMPTS)

    def _plan_and_check(
        self, request: ChangeRequest, directory: Directory, tree: LiveTree
    ) -> tuple[Draft, Prepared]:
        """Run the plan and turn its draft into checked steps; return both.

        After a conflict the journal stores the refused texts, so that the writer can get them back.
        """
        draft: Draft | None = None
        try:
            draft = request.plan(tree)
            prepared = prepare(draft, tree, self._text_by_hash, request.by.origin)
        except MemdError as error:
            # The plan or the merge may have failed because it read a half-written save.
            _refuse_open(request, directory, tree, tree.paths_read())
            if draft is None or not isinstance(error, ConflictError):
                raise
            if all(edit.content is None for edit in draft.edits):
                raise  # the draft only deletes files, so there is no text to store
            refused_set = _intent(request, draft, prepare_refused(draft, tree))
            stored = self._journal.record_conflict(refused_set)
            raise ConflictError(error.path, error.expected, error.actual, stored.id) from error
        replaced = [step.path for step in prepared.steps if step.before is not None]
        _refuse_open(request, directory, tree, replaced)
        return draft, prepared

    def _text_by_hash(self, text_hash: str) -> bytes | None:
        """Return the text with this hash from the journal or the recent texts, or ``None``."""
        text = self._journal.blob(text_hash)
        return self._recent.get(text_hash) if text is None else text

    def _apply(
        self, directory: Directory, record: ChangeRecord, bodies: Mapping[str, bytes], now: float
    ) -> None:
        """Put the recorded files in place; take all of them back and raise if one fails.

        ``bodies`` are the new texts by hash.
        """
        with Application(directory, self._disk) as application:
            try:
                for step in record.steps:
                    if step.after is not None:
                        application.stage(step, bodies[step.after])
                for step in record.steps:
                    application.swap(step)
                application.sync()
                # Once more after the slow flush: an editor may have written into the old file.
                for step in record.steps:
                    application.verify(step)
            except (OSError, MemdError) as error:
                self._take_back(application, record, bodies, error)
                self._keep_replaced(directory, record.steps, now)
                raise
            if self._replaced is None:
                application.remove_temporaries(record.steps)
            else:
                self._keep_replaced(directory, record.steps, now)

    def _take_back(
        self,
        application: Application,
        record: ChangeRecord,
        bodies: Mapping[str, bytes],
        error: OSError | MemdError,
    ) -> None:
        """Undo what was applied of a set after ``error``, and mark the set as ended.

        If that fails as well, the set stays recorded and StorageFailedError names both causes.
        """
        try:
            application.take_back()
            application.remove_temporaries(record.steps, bodies)
            is_foreign_save = isinstance(error, ForeignSaveError)
            self._journal.mark_ended(record, ABANDONED if is_foreign_save else FAILED)
        except (OSError, MemdError) as second_error:
            causes = f"{_cause_text(error)}; {_cause_text(second_error)}"
            raise StorageFailedError(record.directory, causes, unfinished=True) from second_error

    def _keep_replaced(self, directory: Directory, steps: Iterable[Step], now: float) -> None:
        """Hand the old files that these steps replaced to ``Replaced``, if there is one.

        It removes each once no program can write into it. ``now`` is monotonic seconds.
        """
        for step in steps:
            if self._replaced is not None and step.before is not None:
                self._replaced.add_file(directory.path, step, now)


def _refuse_open(
    request: ChangeRequest, directory: Directory, tree: LiveTree, paths: Iterable[str]
) -> None:
    """Raise BeingWrittenError if a program has one of these paths open for writing.

    ``request.writers`` says for which files that matters: all, only empty ones, or none.
    """
    if request.writers is OpenFiles.IGNORE:
        return
    every_file = request.writers is OpenFiles.WAIT
    protected = [path for path in paths if every_file or tree.is_empty(path)]
    open_now = [path for path in protected if directory.open_for_writing(path)]
    if open_now:
        raise BeingWrittenError(open_now)


def _index_check_draft(_: Tree) -> Draft:
    """Return the draft that rebuilds the index if it is wrong, and changes nothing else."""
    return StoreDraft(mend_index=True)


def _intent(request: ChangeRequest, draft: Draft, prepared: Prepared) -> PlannedChange:
    """Return the change set as the journal records it before it is applied."""
    undone = undone_by(draft.effects)  # the plan may have chosen it only now
    return PlannedChange(
        request.directory,
        request.at,
        replace(request.by, reason=f"undo of {undone}") if undone else request.by,
        request.id,
        tokens.token_hex(4),
        prepared.steps,
        prepared.bodies,
        without_secrets(draft.effects),
        prepared.conflicts,
        prepared.merged,
    )


def _cause_text(error: OSError | MemdError) -> str:
    """Return why a call failed, as words for a sentence."""
    return error.sentence if isinstance(error, MemdError) else cause_of(error)
