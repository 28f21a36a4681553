"""The plan of an import into one directory, and the values from which it is made. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct, field

from memd.core.imports import Original, PastChange, imported
from memd.core.names import beginnings
from memd.core.values import FileEdit, Pointer, ProposalDecided
from memd.portable.values import LeftOutFile, ProposedMemory
from memd.state.changes import ProposedEdit
from memd.store.drafts import ImportedTexts, StoreDraft

CREATED, UPDATED, MERGED, BESIDE = "created", "updated", "merged", "beside"
_OTHER_CASE = "another name differs from it in case alone"
_FILE_IS_FOLDER = "a memory is called as a folder of it, or it as a folder"


class KnownFiles(Struct, frozen=True):
    """A directory's history in the state file: the originals of imports, and earlier versions.

    The keys of ``originals`` are a path and the hash of the text that memd wrote there.
    ``versions`` returns the hashes of all texts that a path had, ``body`` the text with a hash.
    """

    originals: Mapping[tuple[str, str], Original] = field(default_factory=dict)
    versions: Callable[[str], Collection[str]] = lambda _: ()
    body: Callable[[str], bytes | None] = lambda _: None


class Incoming(Struct, frozen=True):
    """The files that a source of some ``kind`` brings into one directory.

    ``now_ns`` is the time since 1970. ``past`` is the source's history of these files. If the
    project has ``joined`` a team, team memories are left out.
    """

    files: Sequence[ProposedMemory]
    kind: str
    now_ns: int
    past: Sequence[PastChange] = ()
    joined: bool = False


class MergedFile(Struct, frozen=True):
    """A planned file: its ``name`` in the import, the ``action``, the edit, and the text before.

    ``before`` is the live text that the edit replaces, ``None`` for a new file. ``exported`` are
    the import's own bytes. The ``original`` is the row that the state file stores about them,
    ``None`` if the text is merged.
    """

    name: str
    action: str
    edit: FileEdit
    before: bytes | None = None
    exported: bytes = b""
    original: Original | None = None

    @property
    def is_renamed(self) -> bool:
        """Whether it has another path here than in the import."""
        return self.edit.path != self.name

    @property
    def proposed(self) -> ProposedEdit:
        """The edit in the form of a proposal, which a person decides."""
        edit = self.edit
        reason = f"{self.action}, from {self.name}" if self.is_renamed else self.action
        before, base = self.before, edit.base or ""
        return ProposedEdit(
            edit.path, edit.content, base, before, reason, "", mtime_ns=edit.mtime_ns
        )


class ImportPlan(Struct, frozen=True):
    """The planned changes of a directory by an import.

    ``same`` counts the files that are there already. ``pointers`` are the index lines of new files,
    by path. ``absent`` are originals of indexes that the source does not have and the store makes.
    ``imported`` are the texts that passed the store's check already.
    """

    files: tuple[MergedFile, ...] = ()
    absent: tuple[Original, ...] = ()
    same: int = 0
    left_out: tuple[LeftOutFile, ...] = ()
    pointers: Mapping[str, Pointer] = field(default_factory=dict)
    imported: ImportedTexts = field(default_factory=ImportedTexts)

    def draft(self, decided: Sequence[ProposalDecided] = ()) -> StoreDraft:
        """Return the change set that the store is to commit, with decisions about proposals."""
        edits = tuple(file.edit for file in self.files)
        originals = [*self.absent, *(file.original for file in self.files if file.original)]
        # The store completes these texts, and then records their hashes.
        without_hash = [original for original in originals if not original.live]
        return StoreDraft(
            edits,
            self.pointers,
            (*decided, imported(without_hash)) if without_hash else (*decided,),
            imports=True,
            imported=self.imported,
        )


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
