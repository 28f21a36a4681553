"""What it means that a person takes imported memories as their own: a pure plan over a tree."""

from memd.core.names import TEAM
from memd.core.values import IMPORT, PERSON, Draft, FileEdit, MemoryFile, Plan, Tree
from memd.documents import document
from memd.memories.writing import NothingThereError, NotImportedError
from memd.store.drafts import StoreDraft


def plan_adopt(path: str) -> Plan:
    """Return the plan that makes one imported memory the person's own, or all where it is "".

    Words, time and place stay as they are. The plan raises NothingThereError and NotImportedError.
    """

    def plan(tree: Tree) -> Draft:
        if path:
            file = tree.read(path)
            if file is None:
                raise NothingThereError(path)
            if not _is_imported(file):
                raise NotImportedError(path)
            return StoreDraft((_own(file),), imports=True)
        wanted = (header.path for header in tree.headers() if header.origin == IMPORT)
        files = filter(None, map(tree.read, wanted))
        return StoreDraft(tuple(map(_own, filter(_is_imported, files))), imports=True)

    return plan


def _is_imported(file: MemoryFile) -> bool:
    header = file.header
    return header.origin == IMPORT and not header.damaged and not header.path.startswith(TEAM)


def _own(file: MemoryFile) -> FileEdit:
    content = document.with_fields(file.content, {"metadata.origin": PERSON})
    return FileEdit(file.header.path, content, file.hash, file.header.mtime_ns, PERSON)
