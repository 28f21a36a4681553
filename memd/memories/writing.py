"""Plan direct writes and deletions of memories. Pure.

A write has the whole file or its parts. The store adds the index line; if the writer gives a title
or hook, an existing line is rewritten here. A writer who names the hash of the index they read may
write the index as a whole, which the store merges by entries.
"""

from collections.abc import Sequence

from msgspec import Struct

from memd.base.errors import Conflict, Invalid, NotFound, Refused
from memd.base.names import INDEX, TEAM, check_name, check_stored_name, in_catalogue, name_refused
from memd.base.text import sha256
from memd.base.values import (
    Draft,
    FileEdit,
    MemoryFile,
    MemoryType,
    Plan,
    Pointer,
    Scope,
    Tree,
)
from memd.store import index, memory

_DESCRIPTION_CHARACTERS = 1000
_NEEDS_TEAM_SCOPE = "a memory of the team is written with scope team"
_NO_PLACE = "logs and indexes are not memories"


def _incomplete_memory(path: str, missing: Sequence[str]) -> Invalid:
    listed = ", ".join(missing)
    return Invalid(
        f"{path} cannot be written: it needs {listed}",
        hint="give content (with memctl: --file), or name, description, type and body",
        path=path,
        missing=listed,
    )


def _unknown_type(path: str, wanted: str) -> Invalid:
    known = ", ".join(kind.value for kind in MemoryType)
    return Invalid(
        f"{path} cannot be written: its type must be one of {known}",
        hint=f"types are {known}",
        path=path,
        type=wanted,
    )


def _long_description(path: str, characters: int) -> Invalid:
    limit = _DESCRIPTION_CHARACTERS
    return Invalid(
        f"{path} cannot be written: its description has {characters} characters of {limit}",
        hint="say it in one line and put the rest into the body",
        path=path,
        characters=characters,
    )


def nothing_there(path: str) -> NotFound:
    """Return the error that the memory to delete or share does not exist."""
    return NotFound(f"there is no memory {path}", path=path)


def already_shared(path: str) -> Conflict:
    """Return the error that the team has a memory of this path already."""
    return Conflict(
        f"the team already has {path}; nothing was moved",
        hint="write what is new into the team's memory, or share it under another name",
        path=path,
    )


class Writing(Struct, frozen=True):
    """One request to write a memory; ``None`` stands for what the writer did not give.

    With the scope ``team`` the ``path`` is below ``team/``. ``by_person`` makes it the person's,
    whoever wrote it before. With ``new_time`` the head gets the time also if nothing else changes.
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
    by_person: bool = False
    new_time: bool = False


def plan_write(writing: Writing, *, session: str, modified: str) -> Plan:
    """Return the plan that writes a memory, or the whole index if its ``base_hash`` is given.

    The plan raises Refused, Invalid
    and Invalid.
    """

    def plan(tree: Tree) -> Draft:
        """Return the change set that writes the memory and its index line."""
        if writing.path == INDEX and writing.base_hash is not None:
            return Draft(edits=(_index_edit(writing),))
        check_place(writing.path)
        is_team = writing.path.startswith(TEAM)
        if is_team and writing.scope != Scope.TEAM:
            raise name_refused(writing.path, _NEEDS_TEAM_SCOPE)
        if len(writing.description or "") > _DESCRIPTION_CHARACTERS:
            raise _long_description(writing.path, len(writing.description or ""))
        old = tree.read(writing.path)
        # A shared memory does not name a session of this machine.
        content = _new_content(writing, old, session="" if is_team else session, modified=modified)
        if writing.new_time:
            content = memory.with_fields(content, {"metadata.modified": modified})
        parsed = memory.validate(content, writing.path)
        own = index.of_memory(parsed.name, parsed.description)
        hook = writing.hook or (parsed.description if writing.title else own.hook)
        pointer = Pointer(writing.title or own.title, hook)
        edits = [FileEdit(writing.path, content, base=_replaced_hash(writing.base_hash, old))]
        old_index = tree.index()
        # The store makes memd's lines of the heads; these words are the writer's.
        if old_index is not None and (writing.title or writing.hook):
            new_index = index.with_pointer(old_index, writing.path, pointer)
            if new_index != old_index:
                edits.append(FileEdit(INDEX, new_index, base=sha256(old_index)))
        return Draft(
            edits=tuple(edits),
            pointers={} if is_team else {writing.path: pointer},
            by_person=writing.by_person,
        )

    return plan


def plan_delete(path: str, base_hash: str | None, *, joined: bool) -> Plan:
    """Return the plan that deletes a memory; ``joined`` says whether a team keeps ``team/`` equal.

    The plan raises Refused and NotFound.
    """

    def plan(tree: Tree) -> Draft:
        """Return the change set that deletes the memory."""
        check_stored_name(path)
        old = tree.read(path)
        if old is None:
            raise nothing_there(path)
        if joined and path.startswith(TEAM):
            raise Refused(
                f"{path} is the team's and would come back",
                kind="team_refused",
                hint="memctl team remove <path> --reason … removes it for the whole team",
                path=path,
            )
        return Draft(edits=(FileEdit(path, None, base=_replaced_hash(base_hash, old)),))

    return plan


def _index_edit(writing: Writing) -> FileEdit:
    """Return the edit that writes the whole index. Raises Invalid."""
    if writing.content is None:
        raise _incomplete_memory(INDEX, ["content"])
    return FileEdit(INDEX, writing.content.encode(), base=writing.base_hash)


def check_place(path: str) -> None:
    """Raise Refused for a path that no memory may have."""
    check_name(path)
    if not in_catalogue(path):
        raise name_refused(path, _NO_PLACE)


def _replaced_hash(base_hash: str | None, old: MemoryFile | None) -> str:
    """Return the hash of the file that a write replaces: the given one, else the live file's."""
    if base_hash is not None:
        return base_hash
    return old.hash if old else ""


def _new_content(writing: Writing, old: MemoryFile | None, *, session: str, modified: str) -> bytes:
    """Return the bytes to write: the given content, a new memory, or the old one with new parts.

    Raises Invalid.
    """
    if writing.content is not None:
        return writing.content.encode()
    if old is None or old.header.damaged:
        missing = [
            name
            for name in ("name", "description", "type", "body")
            if getattr(writing, name) is None
        ]
        if missing:
            raise _incomplete_memory(writing.path, missing)
        return memory.new(
            memory.slug(writing.name or "", writing.path),
            writing.description or "",
            _known_type(writing),
            writing.body or "",
            session=session,
            modified=modified,
        )
    return _with_new_parts(writing, old, modified)


def _with_new_parts(writing: Writing, old: MemoryFile, modified: str) -> bytes:
    """Return an old memory's content with the parts that the writer gave.

    Raises Invalid.
    """
    header = old.header
    name = memory.slug(writing.name, writing.path) if writing.name else writing.name
    changes = {  # by field, the new value (None if it was not given) and the old one
        "name": (name, header.name),
        "description": (writing.description, header.description),
        "metadata.type": (_known_type(writing) if writing.type is not None else None, header.type),
    }
    # All given fields are written, even unchanged ones: the header may be older than the file,
    # from which another program may have removed them.
    fields = {key: str(new) for key, (new, _) in changes.items() if new is not None}
    is_same = all(new in (None, old_value) for new, old_value in changes.values())
    content = old.content
    if writing.body is not None:
        content = memory.with_body(content, writing.body)
    if content == old.content and is_same:
        return content
    return memory.with_fields(content, {"metadata.modified": modified, **fields})


def _known_type(writing: Writing) -> MemoryType:
    """Return the type to write. Raises Invalid."""
    try:
        return MemoryType(writing.type or "")
    except ValueError as error:
        raise _unknown_type(writing.path, writing.type or "") from error
