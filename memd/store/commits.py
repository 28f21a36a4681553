"""Commits of the service, which also handle other programs writing the same files.

Blocks; the caller holds the lock of the directory.
"""

from contextlib import suppress

from msgspec.structs import replace

from memd.core.errors import MemdError
from memd.core.events import MEMORY_CHANGED, Event
from memd.core.values import CommitResult, Provenance
from memd.files.directory import Directory
from memd.state.changes import Journal
from memd.state.database import StateUnusableError
from memd.store.changes import BeingWrittenError, ChangeRequest, Changes, OpenFiles
from memd.store.detection import Detection
from memd.store.replaced import PUT_BACK, DelayedSave, Replaced, late_save_plan, put_back_plan
from memd.watch.external import LATE_SAVE, ExternalEdits


class Commits:
    """Commits changes, and saves that other programs make into the files they replace."""

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
        self._replaced = replaced

    def change(self, request: ChangeRequest) -> CommitResult:
        """Commit and update catalogue and baseline; raises what ``Changes.commit`` does.

        With ``OpenFiles.EMPTIED`` a file that a program has emptied and not yet filled again first
        gets its last text back, so that the change is made to that text.
        """
        try:
            return self._change(request)
        except BeingWrittenError as error:
            if request.writers is OpenFiles.WAIT:
                raise
            for path in error.paths:
                self._put_back(request, path)
            return self._change(replace(request, writers=OpenFiles.IGNORE))

    def directories(self) -> frozenset[str]:
        """Return all directories that memd changed or compared; empty if the state file fails."""
        with suppress(StateUnusableError):
            return frozenset((*self._journal.directories(), *self._external.directories()))
        return frozenset()  # each is compared when it is used

    def late_saves(self, real: str, at: float, now: float) -> tuple[list[CommitResult], bool]:
        """Commit the saves that went into files which memd had just replaced; return the results.

        The second value says whether to call again later. ``at`` is seconds since 1970, ``now``
        monotonic seconds.
        """
        results: list[CommitResult] = []
        saves, again = self._replaced.late_saves(real, now)
        for each in saves:
            if each.body:  # a program that died before it filled the file again has saved nothing
                results.append(self._commit_late(real, each, at, now))
            self._replaced.remove(real, each)
        return results, again

    def _change(self, request: ChangeRequest) -> CommitResult:
        """Commit a request and update the baseline and the catalogue for its paths."""
        result = self._changes.commit(request)
        record = self._journal.change(request.directory, result.change or "")
        if record is not None and not result.repeated:
            paths = [step.path for step in record.steps]
            self._external.learn(request.directory, paths, request.at)
            for path in paths:
                self._detection.tell(request.directory, path)
        return result

    def _put_back(self, request: ChangeRequest, path: str) -> None:
        """Commit the last text known of an emptied file, if the journal has it."""
        last = self._external.last_state(request.directory, path)
        text = last and self._journal.blob(last.hash)
        if last and text:
            plan = put_back_plan(path, text, last.mtime_ns)
            self._change(replace(request, plan=plan, by=PUT_BACK, id="", writers=OpenFiles.IGNORE))

    def _commit_late(self, real: str, save: DelayedSave, at: float, now: float) -> CommitResult:
        """Commit one late save; where it changes no file, record it in the history alone."""
        request = ChangeRequest(
            real, late_save_plan(save, self._journal.blob), LATE_SAVE, at, monotonic=now
        )
        with suppress(MemdError):
            result = self._change(request)
            if result.change is not None:
                return result
        return self._external.record_late_save(real, save.step, save.body, at).result()


def make_folder(directory: str, path: str) -> str:
    """Make a directory and a path's folder in it, mode 0700; return "" or the problem."""
    try:
        with Directory(directory, create=True) as opened, opened.parent(path, create=True):
            return ""
    except MemdError as error:
        return error.sentence


def event_of(directory: str, result: CommitResult, by: Provenance) -> Event:
    """Return the event of a commit; ``directory`` is the path that callers use."""
    files = [{"path": file.path, "action": file.action} for file in result.files]
    params = {
        "change": result.change,
        "actor": by.actor.value,
        "client": by.client,
        "files": files,
    }
    return Event(MEMORY_CHANGED, directory, params)
