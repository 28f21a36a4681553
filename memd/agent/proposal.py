"""Turn the changes of a run into a plan that applies them to the live directory. Pure.

Rules of this file
- Each change is based on the content that the run had read. If somebody else changed the file
  meanwhile, both changes are merged; if that fails, the file stays and is named in ``left``.
- A plan never raises because one file conflicts: the rest of the run's work is kept.
- The journal says where a memory came from; a text's own claim about that is replaced.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memd.base.errors import Invalid
from memd.base.names import INDEX, TEAM
from memd.base.text import sha256
from memd.base.values import Draft, Effect, FileEdit, Pointer, Tree
from memd.store import index, memory
from memd.store.merge import merge_index, merge_memory


class Proposed(Struct, frozen=True):
    """One file's change, from ``base`` to ``content``; ``None`` means that there is no file.

    ``reason`` says why a memory is removed. ``origin`` says whose words the file holds, if that
    differs from the origin of the whole change.
    """

    path: str
    base: bytes | None
    content: bytes | None
    reason: str = ""
    origin: str = ""


class RunProposal(Struct, frozen=True):
    """All files that a run wants to change, also the index if the run edited it."""

    files: tuple[Proposed, ...]

    @property
    def saved(self) -> tuple[str, ...]:
        """The paths of new memories."""
        return tuple(file.path for file in self._memories if file.base is None)

    @property
    def updated(self) -> tuple[str, ...]:
        """The paths of existing memories with new content."""
        return tuple(
            file.path
            for file in self._memories
            if file.base is not None and file.content is not None
        )

    @property
    def removed(self) -> tuple[tuple[str, str], ...]:
        """The paths of memories to remove, each with the run's reason."""
        return tuple((file.path, file.reason) for file in self._memories if file.content is None)

    @property
    def _memories(self) -> tuple[Proposed, ...]:
        """The changed files without the index."""
        return tuple(file for file in self.files if file.path != INDEX)


class ChangePlan:
    """A plan for ``Store.commit``; afterwards ``left`` names the files that were not changed.

    ``session`` and ``modified`` (ISO 8601) are stamped into the memories; ``effects`` are committed
    with them. ``pointers`` has the index lines that the run chose; other new memories get one from
    name and description. The store checks sizes, names and secrets, and orders the index.
    """

    def __init__(
        self,
        proposal: RunProposal,
        *,
        session: str,
        modified: str,
        effects: tuple[Effect, ...] | Callable[["ChangePlan"], tuple[Effect, ...]] = (),
        pointers: Mapping[str, Pointer] | None = None,
    ) -> None:
        self.proposal = proposal
        self.left: tuple[str, ...] = ()
        self.merged: tuple[str, ...] = ()
        self._session = session
        self._modified = modified
        self._effects = effects  # or a function that returns them for the planned changes
        self._pointers = pointers or {}

    def plan(self, tree: Tree) -> Draft:
        """Return the change set for the directory as it is now. May run more than once."""
        edits: list[FileEdit] = []
        left: list[str] = []
        merged: list[str] = []
        for file in self.proposal.files:
            live = tree.index() if file.path == INDEX else _content(tree, file.path)
            stamped_file = stamped(file, session=self._session, modified=self._modified)
            edit = _edit(stamped_file, live)
            if edit is None:
                left.append(file.path)
                continue
            edits.append(edit)
            if edit.content is None:
                continue
            if live != file.base:
                merged.append(file.path)
        pointers = {path: line for path, line in self._pointers.items() if path not in left}
        edits += _index_edit(tree.index(), self._pointers, edits)
        self.left, self.merged = tuple(left), tuple(merged)
        effects = self._effects(self) if callable(self._effects) else self._effects
        return Draft(tuple(edits), pointers, effects)


def _index_edit(
    live: bytes | None, pointers: Mapping[str, Pointer], edits: Sequence[FileEdit]
) -> list[FileEdit]:
    """Return the edit of the index that sets the edited memories' chosen lines, or no edit.

    There is none if the index does not exist, is edited already, or does not change.
    """
    if live is None or any(edit.path == INDEX for edit in edits):
        return []
    content = live
    for edit in edits:
        if edit.path in pointers and edit.content is not None:
            content = index.with_pointer(content, edit.path, pointers[edit.path])
    return [] if content == live else [FileEdit(INDEX, content, sha256(live))]


def stamped(file: Proposed, *, session: str, modified: str) -> Proposed:
    """Return the file with session and time (ISO 8601) in its frontmatter, if that is editable.

    The index and a removal are returned as they are; only a new memory gets the session.
    """
    if file.content is None or file.path == INDEX:
        return file
    fields = {"metadata.modified": modified}
    if file.base is None:
        fields["metadata.node_type"] = "memory"
        if session and not file.path.startswith(TEAM):
            fields["metadata.originSessionId"] = session
    try:
        return replace(file, content=memory.with_fields(file.content, fields))
    except Invalid:
        return file


def _content(tree: Tree, path: str) -> bytes | None:
    """Return a file's content in the live directory, ``None`` if there is no file."""
    result = tree.read(path)
    return None if result is None else result.content


def _edit(file: Proposed, live: bytes | None) -> FileEdit | None:
    """Return the edit of the live file, merged if needed; ``None`` if that is not possible."""
    base = "" if live is None else sha256(live)
    if live == file.base:
        return FileEdit(file.path, file.content, base, origin=file.origin)
    if live is None or file.base is None or file.content is None:
        return None  # one of three texts is missing, so there is nothing to merge
    if file.path == INDEX:
        content = merge_index(file.base, file.content, live)
    else:
        content = merge_memory(file.base, file.content, live, file.path)
    return None if content is None else FileEdit(file.path, content, base, origin=file.origin)
