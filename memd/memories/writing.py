"""Plan direct writes and deletions of memories. Pure.

A write has the whole file or its parts. The store adds the index line; if the writer gives a title
or hook, an existing line is rewritten here. A writer who names the hash of the index they read may
write the index as a whole, which the store merges by entries.
"""

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
from memd.store.check import check_size

_DESCRIPTION_CHARACTERS = 1000
_TYPES = tuple(kind.value for kind in MemoryType)
_PARTS = ("name", "description", "type", "body")  # that a new memory needs


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
    when: str | None = None


def plan_write(writing: Writing, *, session: str, modified: str, origin: str = "") -> Plan:
    """Return the plan that writes a memory, or the whole index if its ``base_hash`` is given.

    ``origin`` says whose words a new memory holds, "" if unknown. The plan raises Refused and
    Invalid.
    """
    path, base = writing.path, writing.base_hash

    def plan(tree: Tree) -> Draft:
        """Return the change set that writes the memory and its index line."""
        if path == INDEX and base is not None:
            if writing.content is None:
                raise _incomplete_memory(INDEX, "content")
            return Draft(edits=(FileEdit(INDEX, writing.content.encode(), base=base),))
        check_place(path)
        is_team = path.startswith(TEAM)
        if is_team and writing.scope != Scope.TEAM:
            raise name_refused(path, "a memory of the team is written with scope team")
        old = tree.read(path)
        # A shared memory names neither a session of this machine nor an author.
        stamps = ("", "") if is_team else (session, origin)
        content = _new_content(writing, old, modified, *stamps)
        if writing.by_person and writing.content is not None and old is not None:
            content = memory.following_statement(old.content, content)
        if writing.new_time:
            content = memory.with_fields(content, {"metadata.modified": modified})
        check_size(path, content)
        parsed = memory.validate(content, path)
        pointer = index.of_memory(parsed.name, parsed.description)
        replaced_hash = old.hash if old else ""
        edits = [FileEdit(path, content, base=replaced_hash if base is None else base)]
        # The store makes memd's lines of the heads; these words are the writer's.
        if writing.title or writing.hook:
            hook = writing.hook or (parsed.description if writing.title else pointer.hook)
            pointer = Pointer(writing.title or pointer.title, hook)
            old_index = tree.index()
            new_index = index.with_pointer(old_index or b"", path, pointer)
            if old_index is not None and new_index != old_index:
                edits.append(FileEdit(INDEX, new_index, base=sha256(old_index)))
        pointers = {} if is_team else {path: pointer}
        return Draft(edits=tuple(edits), pointers=pointers, by_person=writing.by_person)

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
        base = old.hash if base_hash is None else base_hash
        return Draft(edits=(FileEdit(path, None, base=base),))

    return plan


def check_place(path: str) -> None:
    """Raise Refused for a path that no memory may have."""
    check_name(path)
    if not in_catalogue(path):
        raise name_refused(path, "logs and indexes are not memories")


def _new_content(
    writing: Writing, old: MemoryFile | None, modified: str, session: str, origin: str
) -> bytes:
    """Return the bytes to write: the given content, a new memory, or the old one with new parts.

    Raises Invalid.
    """
    path, characters = writing.path, len(writing.description or "")
    if characters > _DESCRIPTION_CHARACTERS:
        limit = _DESCRIPTION_CHARACTERS
        raise Invalid(
            f"{path} cannot be written: its description has {characters} characters of {limit}",
            hint="say it in one line and put the rest into the body",
            path=path,
            characters=characters,
        )
    if writing.content is not None:
        return writing.content.encode()
    if writing.type is not None and writing.type not in _TYPES:
        known = ", ".join(_TYPES)
        raise Invalid(
            f"{path} cannot be written: its type must be one of {known}",
            hint=f"types are {known}",
            path=path,
            type=writing.type,
        )
    if old is not None and not old.header.damaged:
        return _with_new_parts(writing, old, modified)
    missing = ", ".join(name for name in _PARTS if getattr(writing, name) is None)
    if missing:
        raise _incomplete_memory(path, missing)
    return memory.new(
        memory.slug(writing.name or "", path),
        writing.description or "",
        MemoryType(writing.type or ""),
        writing.body or "",
        session=session,
        modified=modified,
        origin=origin,
        when=writing.when or "",
    )


def _with_new_parts(writing: Writing, old: MemoryFile, modified: str) -> bytes:
    """Return an old memory's content with the parts that the writer gave. Raises Invalid."""
    given = {
        "name": writing.name and memory.slug(writing.name, writing.path),
        "description": writing.description,
        "metadata.type": writing.type,
        "metadata.when": writing.when,
    }
    when = memory.parse(old.content, old.header.path).metadata.get("when") if writing.when else None
    old_values = (old.header.name, old.header.description, old.header.type, when)
    # All given fields are written, even unchanged ones: the header may be older than the file,
    # from which another program may have removed them.
    fields = {key: new for key, new in given.items() if new is not None}
    is_same = all(
        new in (None, old_value) for new, old_value in zip(given.values(), old_values, strict=True)
    )
    content = old.content
    if writing.body is not None:
        content = memory.with_body(content, writing.body)
    if content == old.content and is_same:
        return content
    return memory.with_fields(content, {"metadata.modified": modified, **fields})


def _incomplete_memory(path: str, missing: str) -> Invalid:
    return Invalid(
        f"{path} cannot be written: it needs {missing}",
        hint="give content (with memctl: --file), or name, description, type and body",
        path=path,
        missing=missing,
    )
