"""Plan how the memories of one directory are moved to another. Pure.

Nothing is lost or overwritten. A memory whose name is taken in the other directory gets a name with
a number, unless the same bytes are there already. It is removed from its old place only after it is
in the new one.
"""

from collections.abc import Iterator

from memd.core.names import INDEX, SUFFIX, TEAM, NameRefusedError, check_name
from memd.core.text import one_line, sha256
from memd.core.values import Draft, FileEdit, MemoryFile, Plan, Pointer, Tree
from memd.documents import index

_NAMES = 100  # names that are tried for one memory
_TITLE_CHARACTERS, _HOOK_CHARACTERS = 80, 120
_TEAMS = "a sub-agent has no team"
_TAKEN = "there are too many memories of this name"


def plan_take(file: MemoryFile, listed: bytes) -> Plan:
    """Return the plan that adds a memory to a directory, with its index line.

    ``listed`` is the index of its old directory. The plan raises NameRefusedError for an invalid
    or team path, and if too many names are taken.
    """
    header = file.header
    entries = {entry.path: entry for entry in index.entries(listed)}
    entry = entries.get(header.path)
    pointer = Pointer(
        one_line(entry.title if entry else header.name or header.path, _TITLE_CHARACTERS),
        one_line(entry.hook if entry else header.description, _HOOK_CHARACTERS),
    )

    def plan(tree: Tree) -> Draft:
        """Return the new file under the first free name, nothing if it is already there."""
        check_name(header.path)
        if header.path.startswith(TEAM):
            raise NameRefusedError(header.path, _TEAMS)
        for path in _names(header.path):
            old = tree.read(path)
            if old is None:
                edit = FileEdit(
                    path, file.content, base="", mtime_ns=header.mtime_ns, origin=header.origin
                )
                return Draft(edits=(edit,), pointers={path: pointer})
            if old.content == file.content:
                return Draft()
        raise NameRefusedError(header.path, _TAKEN)

    return plan


def plan_leave(file: MemoryFile) -> Plan:
    """Return the plan that removes a memory after it was moved; it must not have changed."""
    return lambda _: Draft(edits=(FileEdit(file.header.path, None, base=file.hash),))


def plan_lines(lines: list[bytes]) -> Plan:
    """Return the plan that adds a person's own lines to the index, if it lacks them."""

    def plan(tree: Tree) -> Draft:
        """Return the index with the missing lines added at its end."""
        raw = tree.index() or b""
        known = set(raw.splitlines())
        new = [line for line in lines if line not in known]
        if not new:
            return Draft()
        start = raw if not raw or raw.endswith(b"\n") else raw + b"\n"
        content = start + b"\n".join(new) + b"\n"
        return Draft(edits=(FileEdit(INDEX, content, base=sha256(raw) if raw else ""),))

    return plan


def plan_without_lines(lines: list[bytes]) -> Plan:
    """Return the plan that removes lines from the index."""

    def plan(tree: Tree) -> Draft:
        """Return the index without the lines."""
        raw = tree.index() or b""
        others = (row for row in raw.splitlines(keepends=True) if row.rstrip(b"\r\n") not in lines)
        content = b"".join(others)
        return Draft(edits=(FileEdit(INDEX, content, base=sha256(raw)),) if content != raw else ())

    return plan


def _names(path: str) -> Iterator[str]:
    """Yield a path, then the path with a number from 2 on."""
    yield path
    stem = path.removesuffix(SUFFIX)
    for number in range(2, _NAMES):
        yield f"{stem}-{number}{SUFFIX}"
