"""What an import answers: where everything went, and what stayed out. Pure."""

from collections.abc import Iterable

from msgspec import Struct

from memd.portable.plan import ImportPlan
from memd.portable.values import LISTED, LeftOutFile, LeftOutList, SourceKind


class ImportedFile(Struct, frozen=True):
    """One file: its path here, what became of it, and its name in the source where it differs.

    ``action`` is created, updated, merged (with what was here) or beside (another of its name).
    """

    path: str
    action: str
    name: str = ""


class ImportedFolder(Struct, frozen=True):
    """What became of one project, or of one sub-agent's memory: ``id`` is the source's name for it.

    It is one ``change``, or a ``proposal`` that a person decides; neither where nothing is new or
    nothing was to be done. ``files`` of one answer are at most a thousand, ``files_more`` counts
    the others, and ``same`` what is here already.
    """

    id: str
    directory: str
    change: str | None = None
    proposal: str = ""
    files: tuple[ImportedFile, ...] = ()
    files_more: int = 0
    same: int = 0


class ImportResult(Struct, frozen=True):
    """What an import did, or with ``dry_run`` would do.

    ``notes`` counts session notes, ``past_changes`` those that are new in the history, ``learning``
    the jobs that learn from conversations. ``left_out`` names what was not taken and why, at most a
    thousand, and ``left_out_more`` counts the others. ``diff`` is a text to be applied by hand.
    """

    kind: SourceKind
    dry_run: bool
    projects: tuple[ImportedFolder, ...] = ()
    agents: tuple[ImportedFolder, ...] = ()
    notes: int = 0
    past_changes: int = 0
    learning: tuple[str, ...] = ()
    left_out: tuple[LeftOutFile, ...] = ()
    left_out_more: int = 0
    problems: tuple[str, ...] = ()
    diff: str = ""


class ImportReport:
    """What an import did so far; its lists are bounded together, so that an answer has room."""

    def __init__(self, kind: SourceKind, *, dry_run: bool) -> None:
        self.projects: list[ImportedFolder] = []
        self.agents: list[ImportedFolder] = []
        self.notes = self.past_changes = 0
        self.learning: list[str] = []
        self.problems: list[str] = []
        self.diff = ""
        self._kind, self._dry_run = kind, dry_run
        self._left = LeftOutList()
        self._room = LISTED

    def folder(
        self, key: str, directory: str, plan: ImportPlan, change: str | None, proposal: str
    ) -> ImportedFolder:
        """Return what became of a directory by its plan; what stays out of it is noted."""
        self.leave_out(plan.left_out, key)
        files = tuple(
            ImportedFile(file.edit.path, file.action, file.name if file.is_renamed else "")
            for file in plan.files[: self._room]
        )
        self._room -= len(files)
        more = len(plan.files) - len(files)
        return ImportedFolder(key, directory, change, proposal, files, more, plan.same)

    def leave_out(self, files: Iterable[LeftOutFile], place: str = "", more: int = 0) -> None:
        """Note what stays out, whose names are below a place, and how many more do."""
        self._left.more += more
        for file in files:
            self._left.add(f"{place}/{file.name}" if place else file.name, file.reason)

    def result(self) -> ImportResult:
        """Return all of it."""
        return ImportResult(
            self._kind,
            self._dry_run,
            tuple(self.projects),
            tuple(self.agents),
            self.notes,
            self.past_changes,
            tuple(self.learning),
            tuple(self._left.files),
            self._left.more,
            tuple(self.problems),
            self.diff,
        )
