"""What a direct write means for the files: pure plans over a tree.

A write names the whole file or its parts. The index line is the store's business, except where the
writer says what its title and hook are: then the line that is already there is rewritten. Who says
which index they had read may write it whole; the store merges it by entries and makes it true.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memd.core.errors import MemdError
from memd.core.names import INDEX, TEAM, NameRefusedError, check_name, in_catalogue
from memd.core.text import one_line, sha256
from memd.core.values import Draft, FileEdit, MemoryFile, MemoryType, Plan, Pointer, Scope, Tree
from memd.documents import document, index

_TITLE_CHARACTERS = 80
_HOOK_CHARACTERS = 120
_DESCRIPTION_CHARACTERS = 1000
_TEAMS = "a memory of the team is written with scope team"
_NO_PLACE = "logs and indexes are not memories"


class IncompleteMemoryError(MemdError):
    """A write must bring the whole file or enough parts to make one."""

    code = 1011
    kind = "invalid_memory"
    hint = "give content, or name, description, type and body"
    exit_status = 2

    def __init__(self, path: str, missing: Sequence[str]) -> None:
        listed = ", ".join(missing)
        super().__init__(f"{path} cannot be written: it needs {listed}", path=path, missing=listed)


class UnknownTypeError(MemdError):
    """A memory has one of four types."""

    code = 1011
    kind = "invalid_memory"
    hint = f"types are {', '.join(kind.value for kind in MemoryType)}"
    exit_status = 2

    def __init__(self, path: str, wanted: str) -> None:
        known = ", ".join(kind.value for kind in MemoryType)
        super().__init__(
            f"{path} cannot be written: its type must be one of {known}", path=path, type=wanted
        )


class LongDescriptionError(MemdError):
    """A description is one specific line, since it decides what the memory is found for."""

    code = 1011
    kind = "invalid_memory"
    hint = "say it in one line and put the rest into the body"
    exit_status = 2

    def __init__(self, path: str, characters: int) -> None:
        limit = _DESCRIPTION_CHARACTERS
        super().__init__(
            f"{path} cannot be written: its description has {characters} characters of {limit}",
            path=path,
            characters=characters,
        )


class NothingThereError(MemdError):
    """A memory that is to be deleted does not exist."""

    code = 1001
    kind = "not_found"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no memory {path}", path=path)


class NotImportedError(MemdError):
    """Only what an import brought is taken as the person's own."""

    code = 1086
    kind = "not_imported"
    hint = "memctl list shows which memories an import brought"
    exit_status = 65

    def __init__(self, path: str) -> None:
        super().__init__(f"no import brought {path}, or its head cannot be changed", path=path)


class SharedMemoryError(MemdError):
    """A team's memory is not deleted: a sync cannot tell that from one that is not here yet."""

    code = 1026
    kind = "team_refused"
    hint = "memctl team remove <path> --reason … removes it for the whole team"
    exit_status = 77

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is the team's and would come back", path=path)


class AlreadySharedError(MemdError):
    """The team has a memory of the path that a private one would move to."""

    code = 1002
    kind = "already_shared"
    hint = "write what is new into the team's memory, or share it under another name"
    exit_status = 65

    def __init__(self, path: str) -> None:
        super().__init__(f"the team already has {path}; nothing was moved", path=path)


@dataclass(frozen=True, slots=True)
class Writing:
    """One request to write a memory; ``None`` is what the writer did not say.

    With the scope of a team the ``path`` is one below ``team/``.
    """

    path: str
    content: str | None = None
    name: str | None = None
    description: str | None = None
    type: str | None = None
    body: str | None = None
    title: str | None = None
    hook: str | None = None
    base_hash: str | None = None
    scope: str = Scope.PRIVATE


def plan_write(writing: Writing, *, session: str, modified: str) -> Plan:
    """Return the plan of one write; the plan raises what makes the write impossible."""

    def plan(tree: Tree) -> Draft:
        if writing.path == INDEX and writing.base_hash is not None:
            return Draft(edits=(_index_edit(writing),))
        _check_place(writing.path)
        team = writing.path.startswith(TEAM)
        if team and writing.scope != Scope.TEAM:
            raise NameRefusedError(writing.path, _TEAMS)
        if len(writing.description or "") > _DESCRIPTION_CHARACTERS:
            raise LongDescriptionError(writing.path, len(writing.description or ""))
        old = tree.read(writing.path)
        # What is shared names no session of this machine.
        content = _content(writing, old, session="" if team else session, modified=modified)
        read = document.validate(content, writing.path)
        pointer = Pointer(
            one_line(writing.title or read.name, _TITLE_CHARACTERS),
            one_line(writing.hook or read.description, _HOOK_CHARACTERS),
        )
        edits = [FileEdit(writing.path, content, base=_base(writing.base_hash, old))]
        raw = tree.index()
        if raw is not None and (writing.title or writing.hook):
            changed = index.with_pointer(raw, writing.path, pointer)
            if changed != raw:
                edits.append(FileEdit(INDEX, changed, base=sha256(raw)))
        return Draft(edits=tuple(edits), pointers={} if team else {writing.path: pointer})

    return plan


def plan_delete(path: str, base_hash: str | None) -> Plan:
    """Return the plan of one removal."""

    def plan(tree: Tree) -> Draft:
        _check_place(path)
        if path.startswith(TEAM):
            raise SharedMemoryError(path)
        old = tree.read(path)
        if old is None:
            raise NothingThereError(path)
        return Draft(edits=(FileEdit(path, None, base=_base(base_hash, old)),))

    return plan


def _index_edit(writing: Writing) -> FileEdit:
    if writing.content is None:
        raise IncompleteMemoryError(INDEX, ["content"])
    return FileEdit(INDEX, writing.content.encode(), base=writing.base_hash)


def _check_place(path: str) -> None:
    check_name(path)
    if not in_catalogue(path):
        raise NameRefusedError(path, _NO_PLACE)


def _base(wanted: str | None, old: MemoryFile | None) -> str:
    """Return what the writer relies on: the hash it named, else what stands there now."""
    if wanted is not None:
        return wanted
    return old.hash if old else ""


def _content(writing: Writing, old: MemoryFile | None, *, session: str, modified: str) -> bytes:
    if writing.content is not None:
        return writing.content.encode()
    if old is None or old.header.damaged:
        missing = [
            name
            for name in ("name", "description", "type", "body")
            if getattr(writing, name) is None
        ]
        if missing:
            raise IncompleteMemoryError(writing.path, missing)
        return document.new(
            document.slug(writing.name or "", writing.path),
            writing.description or "",
            _type(writing),
            writing.body or "",
            session=session,
            modified=modified,
        )
    header = old.header
    name = document.slug(writing.name, writing.path) if writing.name else writing.name
    said = {
        "name": (name, header.name),
        "description": (writing.description, header.description),
        "metadata.type": (_type(writing) if writing.type is not None else None, header.type),
    }
    # All that is given is written: the header may be older than the text, which another program
    # has emptied meanwhile.
    fields = {key: str(new) for key, (new, _) in said.items() if new is not None}
    same = all(new in (None, known) for new, known in said.values())
    content = old.content
    if writing.body is not None:
        content = document.with_body(content, writing.body)
    if content == old.content and same:
        return content
    return document.with_fields(content, {"metadata.modified": modified, **fields})


def _type(writing: Writing) -> MemoryType:
    try:
        return MemoryType(writing.type or "")
    except ValueError as error:
        raise UnknownTypeError(writing.path, writing.type or "") from error
