"""The plan of an import into one directory, and the values from which it is made. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from memd.base.names import beginnings
from memd.base.values import Draft, FileEdit, Pointer
from memd.portable.values import LeftOutFile, ReadFile
from memd.store.check import ImportedTexts

CREATED, UPDATED, BESIDE = "created", "updated", "beside"
_OTHER_CASE = "another name differs from it in case alone"
_FILE_IS_FOLDER = "a memory is called as a folder of it, or it as a folder"


class Incoming(Struct, frozen=True):
    """The files that a source brings into one directory; ``now_ns`` is the time since 1970.

    ``was_imported`` returns whether an import wrote a path last, and wrote the text with this hash.
    If the project has ``joined`` a team, team memories are left out.
    """

    files: Sequence[ReadFile]
    now_ns: int
    was_imported: Callable[[str, str], bool]
    joined: bool = False


class PlannedFile(Struct, frozen=True):
    """A planned file: its ``name`` in the import, the ``action`` and the edit."""

    name: str
    action: str
    edit: FileEdit

    @property
    def is_renamed(self) -> bool:
        """Whether it has another path here than in the import."""
        return self.edit.path != self.name


class ImportPlan(Struct, frozen=True):
    """The planned changes of a directory by an import.

    ``same`` counts the files that are there already. ``pointers`` are the index lines of new files,
    by path. ``imported`` are the texts that passed the store's check already.
    """

    files: tuple[PlannedFile, ...] = ()
    same: int = 0
    left_out: tuple[LeftOutFile, ...] = ()
    pointers: Mapping[str, Pointer] = field(default_factory=dict)
    imported: ImportedTexts = field(default_factory=ImportedTexts)

    def draft(self) -> Draft:
        """Return the change set that the store is to commit."""
        edits = tuple(file.edit for file in self.files)
        return Draft(edits, self.pointers, check_import=self.imported.check)


class TakenNames:
    """The paths of a tree and of planned files, to find names that clash."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._spellings: dict[str, str] = {}  # from a case-folded path to its first spelling
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Add a file and the folders above it."""
        folders_and_file = list(beginnings(path))
        self._files.add(path)
        self._folders.update(folders_and_file[:-1])
        for name in folders_and_file:
            self._spellings.setdefault(name.casefold(), name)

    def conflict(self, path: str) -> str:
        """Return why a new file cannot have this path, "" if it can."""
        folders_and_file = list(beginnings(path))
        has_file_as_folder = not self._files.isdisjoint(folders_and_file[:-1])
        if path in self._folders or has_file_as_folder:
            return _FILE_IS_FOLDER
        for name in folders_and_file:
            if self._spellings.get(name.casefold(), name) != name:
                return _OTHER_CASE
        return ""
