"""Plan how the memories of one directory are moved to another. Pure.

Nothing is lost or overwritten. A memory whose name is taken in the other directory gets a name with
a number, unless the same bytes are there already. It is removed from its old place only after it is
in the new one.
"""

from collections.abc import Iterator

from memd.core.names import INDEX, SUFFIX, TEAM, NameRefusedError, check_name
from memd.core.text import sha256
from memd.core.values import Draft, FileEdit, MemoryFile, Plan, Pointer, Tree
from memd.documents import index

_MOST_NAMES = 100  # that are tried for one memory
_NO_TEAM = "a sub-agent has no team"
_NAMES_ARE_TAKEN = "there are too many memories of this name"


def plan_take(file: MemoryFile, old_index: bytes) -> Plan:
    """Return the plan that adds a memory to a directory, with its index line.

    ``old_index`` is that of its old directory. The plan raises NameRefusedError for an invalid
    or team path, and if too many names are taken.
    """
    header = file.header
    entries = {entry.path: entry for entry in index.entries(old_index)}
    entry = entries.get(header.path)

    def plan(tree: Tree) -> Draft:
        """Return the new file under the first free name, nothing if it is already there."""
        check_name(header.path)
        if header.path.startswith(TEAM):
            raise NameRefusedError(header.path, _NO_TEAM)
        for path in _possible_names(header.path):
            old = tree.read(path)
            if old is None:
                edit = FileEdit(
                    path, file.content, base="", mtime_ns=header.mtime_ns, origin=header.origin
                )
                line = {path: Pointer(entry.title, entry.hook)} if entry else {}
                return Draft(edits=(edit,), pointers=line)
            if old.content == file.content:
                return Draft()
        raise NameRefusedError(header.path, _NAMES_ARE_TAKEN)

    return plan


def plan_leave(file: MemoryFile) -> Plan:
    """Return the plan that removes a memory after it was moved; it must not have changed."""
    return lambda _: Draft(edits=(FileEdit(file.header.path, None, base=file.hash),))


def plan_lines(lines: list[bytes]) -> Plan:
    """Return the plan that adds a person's own lines to the index, if it lacks them."""

    def plan(tree: Tree) -> Draft:
        """Return the index with the missing lines added at its end."""
        raw_index = tree.index() or b""
        existing = set(raw_index.splitlines())
        missing = [line for line in lines if line not in existing]
        if not missing:
            return Draft()
        content = raw_index
        if content and not content.endswith(b"\n"):
            content += b"\n"
        content += b"\n".join(missing) + b"\n"
        base = sha256(raw_index) if raw_index else ""
        return Draft(edits=(FileEdit(INDEX, content, base=base),))

    return plan


def plan_without_lines(lines: list[bytes]) -> Plan:
    """Return the plan that removes lines from the index."""

    def plan(tree: Tree) -> Draft:
        """Return the index without the lines."""
        raw_index = tree.index() or b""
        rows = raw_index.splitlines(keepends=True)
        content = b"".join(row for row in rows if row.rstrip(b"\r\n") not in lines)
        if content == raw_index:
            return Draft()
        return Draft(edits=(FileEdit(INDEX, content, base=sha256(raw_index)),))

    return plan


def _possible_names(path: str) -> Iterator[str]:
    """Yield a path, then the path with a number from 2 on."""
    yield path
    stem = path.removesuffix(SUFFIX)
    for number in range(2, _MOST_NAMES):
        yield f"{stem}-{number}{SUFFIX}"
