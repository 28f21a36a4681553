"""Commits of the service, which also handle other programs writing the same files.

Blocks; the caller holds the lock of the directory.
"""

from contextlib import suppress

from msgspec.structs import replace

from memd.base.errors import MemdError
from memd.base.events import MEMORY_CHANGED, Event
from memd.base.values import CommitResult, Provenance
from memd.files.directory import Directory
from memd.state.changes import Journal
from memd.state.database import StateUnusableError
from memd.store.changes import BeingWrittenError, ChangeRequest, Changes, OpenFiles
from memd.store.detection import Detection
from memd.store.replaced import PUT_BACK, DelayedSave, Replaced, late_save_plan, put_back_plan
from memd.watch.external import LATE_SAVE, ExternalEdits


class Commits:
    """Commits changes, and the late saves of other programs into files that memd has replaced.

    ``detection`` and ``external`` learn which files changed here, so that a change of memd is not
    taken for another program's.
    """

    def __init__(
        self,
        journal: Journal,
        changes: Changes,
        external: ExternalEdits,
        detection: Detection,
        replaced: Replaced,
    ) -> None:
        self._journal = journal
        self._changes = changes
        self._external = external
        self._detection = detection
        self._replaced = replaced  # files that other programs may still be writing to

    def change(self, request: ChangeRequest) -> CommitResult:
        """Commit and update catalogue and baseline; raises what ``Changes.commit`` does.

        With ``OpenFiles.EMPTIED`` a file that a program has emptied and not yet filled again first
        gets its last text back, so that the change is made to that text.
        """
        try:
            return self._commit(request)
        except BeingWrittenError as error:
            if request.writers is OpenFiles.WAIT:
                raise
            for path in error.paths:
                self._put_back_text(request, path)
            return self._commit(replace(request, writers=OpenFiles.IGNORE))

    def directories(self) -> frozenset[str]:
        """Return all directories that memd changed or compared; empty if the state file fails."""
        with suppress(StateUnusableError):
            return frozenset((*self._journal.directories(), *self._external.directories()))
        return frozenset()  # each is compared when it is used

    def commit_late_saves(
        self, real_path: str, at: float, now: float
    ) -> tuple[list[CommitResult], bool]:
        """Commit the saves that went into files which memd had just replaced; return the results.

        The second value says whether to call again later. ``at`` is seconds since 1970, ``now``
        monotonic seconds.
        """
        results: list[CommitResult] = []
        saves, some_left = self._replaced.late_saves(real_path, now)
        for save in saves:
            if save.body:  # a program that died before it filled the file again has saved nothing
                results.append(self._commit_late_save(real_path, save, at, now))
            # Only now is the text in the journal, so only now may the file go.
            self._replaced.remove_saved(real_path, save)
        return results, some_left

    def _commit(self, request: ChangeRequest) -> CommitResult:
        """Commit a request and update the baseline and the catalogue for its paths."""
        result = self._changes.commit(request)
        record = self._journal.change(request.directory, result.change or "")
        if record is not None and not result.repeated:
            paths = [step.path for step in record.steps]
            self._external.learn(request.directory, paths, request.at)
            for path in paths:
                self._detection.note_change(request.directory, path)
        return result

    def _put_back_text(self, request: ChangeRequest, path: str) -> None:
        """Commit the last text known of an emptied file, if the journal has it."""
        last = self._external.last_state(request.directory, path)
        text = self._journal.blob(last.hash) if last else None
        if last and text:
            plan = put_back_plan(path, text, last.mtime_ns)
            self._commit(replace(request, plan=plan, by=PUT_BACK, id="", writers=OpenFiles.IGNORE))

    def _commit_late_save(
        self, real_path: str, save: DelayedSave, at: float, now: float
    ) -> CommitResult:
        """Commit one late save; where it changes no file, record it in the history alone."""
        plan = late_save_plan(save, self._journal.blob)
        request = ChangeRequest(real_path, plan, LATE_SAVE, at, monotonic=now)
        with suppress(MemdError):  # a refused text goes into the history as well
            result = self._commit(request)
            if result.change is not None:
                return result
        return self._external.record_late_save(real_path, save.step, save.body, at).result()


def make_folder(directory: str, path: str) -> str:
    """Make a directory and a path's folder in it, mode 0700; return "" or the problem."""
    try:
        with Directory(directory, create=True) as opened, opened.parent(path, create=True):
            return ""
    except MemdError as error:
        return error.sentence


def event_of(directory: str, result: CommitResult, by: Provenance) -> Event:
    """Return the event that tells subscribers of a commit.

    ``directory`` is the path that callers use, which need not be the real one.
    """
    files = [{"path": file.path, "action": file.action} for file in result.files]
    params = {
        "change": result.change,
        "actor": by.actor.value,
        "client": by.client,
        "files": files,
    }
    return Event(MEMORY_CHANGED, directory, params)
