"""Plan how a person adopts memories as their own: imported ones, or what others wrote. Pure."""

from memd.core.names import INDEX, TEAM
from memd.core.text import iso_time, sha256
from memd.core.values import (
    ASSISTANT,
    FOREIGN,
    IMPORT,
    PERSON,
    Draft,
    FileEdit,
    MemoryFile,
    Plan,
    Tree,
)
from memd.documents import document, index
from memd.memories.writing import NothingThereError, NotImportedError
from memd.store.drafts import StoreDraft


def plan_adopt(path: str, *, changed_outside: bool = False) -> Plan:
    """Return the plan that makes one memory the person's own, or all imported ones for "".

    ``changed_outside`` says that another program wrote the memory last: an editor, or an assistant
    with its own tools. Text, mtime and path do not change. The plan raises NothingThereError and
    NotImportedError.
    """

    def plan(tree: Tree) -> Draft:
        """Return the change set for the directory as it is now."""
        if path:
            file = tree.read(path)
            if file is None:
                raise NothingThereError(path)
            if _is_imported(file):
                return StoreDraft((_adopting_edit(file),), imports=True)
            if (changed_outside or file.header.origin == ASSISTANT) and _may_be_own(file):
                # A new time makes it a change of its own, which says from now on who wrote it.
                modified = iso_time(file.header.mtime_ns / 1e9)
                return StoreDraft((_adopting_edit(file, modified),), imports=True)
            raise NotImportedError(path)
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
    return file.header.origin == IMPORT and _is_private(file)


def _may_be_own(file: MemoryFile) -> bool:
    """Return whether a memory does not say that its words come from elsewhere."""
    return file.header.origin not in FOREIGN and _is_private(file)


def _is_private(file: MemoryFile) -> bool:
    """Return whether a memory is undamaged and not a team's."""
    return not file.header.damaged and not file.header.path.startswith(TEAM)


def _adopting_edit(file: MemoryFile, modified: str = "") -> FileEdit:
    """Return the edit that marks a memory as the person's own, and as ``modified`` if given."""
    fields = {"metadata.origin": PERSON}
    if modified:
        fields["metadata.modified"] = modified
    content = document.with_fields(file.content, fields)
    return FileEdit(file.header.path, content, file.hash, file.header.mtime_ns, PERSON)
