"""Restoring one file as an earlier change set left it: a plan like any other. Pure."""

from memd.base.errors import MemdError
from memd.base.names import INDEX
from memd.base.values import FileEdit, Pointer, Tree
from memd.state.changes import ChangeRecord, Step
from memd.store import index
from memd.store.drafts import Blobs, StoreDraft
from memd.store.undo import PurgedError


class VersionNotFoundError(MemdError):
    """The journal has no such version of the file."""

    code = 1001
    kind = "version_not_found"
    hint = "ask the history of the file for the changes that it knows"

    def __init__(self, path: str) -> None:
        super().__init__(f"the journal has no such version of {path[:400]}", path=path)


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
        self._id = record.id  # of the set, for errors
        self._steps = {step.path: step for step in record.steps if not step.conflict}
        self._path = path  # of the file to restore
        self._blobs = blobs  # returns a text of the journal by its hash
        self._exact = exact
        self._mtime_ns = mtime_ns

    def __call__(self, tree: Tree) -> StoreDraft:
        """Return a draft with the edit of the file, empty if its text is already right.

        Raises VersionNotFoundError if there is no earlier version, PurgedError if it was purged.
        """
        path, step = self._path, self._steps[self._path]
        live = tree.read(path)
        live_hash = live.hash if live else None
        is_in_that_state = step.after == live_hash
        use_before = step.after is None or (is_in_that_state and not self._exact)
        wanted_hash = step.before if use_before else step.after
        content = self._blobs(wanted_hash) if wanted_hash else None
        if content is None and step.purged:
            raise PurgedError(self._id, path)
        if content is None:
            raise VersionNotFoundError(path)
        if wanted_hash == live_hash:
            return StoreDraft()
        mtime_ns = self._wanted_mtime_ns(step, use_before=use_before)
        return StoreDraft(
            (FileEdit(path, content, live_hash or "", mtime_ns),),
            self._index_line(use_before=use_before),
            restores=True,
            modes={path: step.mode},
        )

    def _wanted_mtime_ns(self, step: Step, *, use_before: bool) -> int | None:
        """Return the mtime of the version before or after the step, ``None`` if unknown."""
        if use_before:
            return step.before_mtime_ns
        return step.after_mtime_ns if self._mtime_ns is None else self._mtime_ns

    def _index_line(self, *, use_before: bool) -> dict[str, Pointer]:
        """Return the file's index line before or after the set, by path; empty if unknown."""
        index_step = self._steps.get(INDEX)
        if index_step is None:
            return {}
        index_hash = index_step.before if use_before else index_step.after
        lines = index.pointers(self._blobs(index_hash) if index_hash else None)
        return {self._path: lines[self._path]} if self._path in lines else {}
