"""Plan how a person adopts imported memories as their own. Pure."""

from memd.core.names import INDEX, TEAM
from memd.core.text import sha256
from memd.core.values import IMPORT, PERSON, Draft, FileEdit, MemoryFile, Plan, Tree
from memd.documents import document, index
from memd.memories.writing import NothingThereError, NotImportedError
from memd.store.drafts import StoreDraft


def plan_adopt(path: str) -> Plan:
    """Return the plan that makes one imported memory the person's own, or all for "".

    Text, mtime and path do not change. The plan raises NothingThereError and NotImportedError.
    """

    def plan(tree: Tree) -> Draft:
        """Return the change set for the directory as it is now."""
        if path:
            file = tree.read(path)
            if file is None:
                raise NothingThereError(path)
            if not _is_imported(file):
                raise NotImportedError(path)
            return StoreDraft((_adopting_edit(file),), imports=True)
        paths = [header.path for header in tree.headers() if header.origin == IMPORT]
        files = [tree.read(path) for path in paths]
        edits = [_adopting_edit(file) for file in files if file and _is_imported(file)]
        old_index = tree.index() or b""
        new_index = index.with_own_marks(old_index, marked=False)
        if new_index != old_index:  # lines that an import added to the index lose their mark
            edits.append(FileEdit(INDEX, new_index, sha256(old_index)))
        return StoreDraft(tuple(edits), imports=True)

    return plan


def _is_imported(file: MemoryFile) -> bool:
    """Return whether a memory is an import's, undamaged and not a team's."""
    header = file.header
    return header.origin == IMPORT and not header.damaged and not header.path.startswith(TEAM)


def _adopting_edit(file: MemoryFile) -> FileEdit:
    """Return the edit that marks a memory as the person's own."""
    content = document.with_fields(file.content, {"metadata.origin": PERSON})
    return FileEdit(file.header.path, content, file.hash, file.header.mtime_ns, PERSON)
