"""Results of an import: the files and folders that were imported or left out. Pure."""

from collections.abc import Iterable

from msgspec import Struct

from memd.portable.plan import ImportPlan
from memd.portable.values import LISTED, LeftOutFile, LeftOutList, SourceKind


class ImportedFile(Struct, frozen=True):
    """A file of an import: its path here, the action, and its name in the source if that differs.

    ``action`` is created, updated or beside (under another name).
    """

    path: str
    action: str
    name: str = ""


class ImportedFolder(Struct, frozen=True):
    """The import of one project, or of one sub-agent's memory; ``id`` is the source's name for it.

    It made one ``change``, none if nothing is new or this was a dry run. One result has at most a
    thousand ``files``; ``files_more`` counts the others, and ``same`` those that are here already.
    """

    id: str
    directory: str
    change: str | None = None
    files: tuple[ImportedFile, ...] = ()
    files_more: int = 0
    same: int = 0


class ImportResult(Struct, frozen=True):
    """The result of an import, or with ``dry_run`` of a rehearsal.

    ``notes`` counts session notes. ``left_out`` names files that were not imported and why, at most
    a thousand; ``left_out_more`` counts the others.
    """

    kind: SourceKind
    dry_run: bool
    projects: tuple[ImportedFolder, ...] = ()
    agents: tuple[ImportedFolder, ...] = ()
    notes: int = 0
    left_out: tuple[LeftOutFile, ...] = ()
    left_out_more: int = 0
    problems: tuple[str, ...] = ()


class ImportReport:
    """Gathers the result of a running import; at most 1,000 files are listed in all folders."""

    def __init__(self, kind: SourceKind, *, dry_run: bool) -> None:
        self.projects: list[ImportedFolder] = []
        self.agents: list[ImportedFolder] = []
        self.notes = 0
        self.problems: list[str] = []
        self._kind, self._dry_run = kind, dry_run
        self._left_out = LeftOutList()
        self._files_left = LISTED  # how many more files can be listed, in all folders together

    def folder(
        self, key: str, directory: str, plan: ImportPlan, change: str | None
    ) -> ImportedFolder:
        """Return the result for one directory from its plan; note the files left out of it."""
        self.leave_out(plan.left_out, key)
        files = tuple(
            ImportedFile(file.edit.path, file.action, file.name if file.is_renamed else "")
            for file in plan.files[: self._files_left]
        )
        self._files_left -= len(files)
        more = len(plan.files) - len(files)
        return ImportedFolder(key, directory, change, files, more, plan.same)

    def leave_out(self, files: Iterable[LeftOutFile], place: str = "", more: int = 0) -> None:
        """List left-out files, with ``place/`` before their names; count ``more`` without name."""
        self._left_out.more += more
        for file in files:
            self._left_out.add(f"{place}/{file.name}" if place else file.name, file.reason)

    def result(self) -> ImportResult:
        """Return the result of the whole import."""
        return ImportResult(
            self._kind,
            self._dry_run,
            tuple(self.projects),
            tuple(self.agents),
            self.notes,
            tuple(self._left_out.files),
            self._left_out.more,
            tuple(self.problems),
        )
