"""What a run wants to change, and the plan that makes it true on the live directory. Pure.

Rules of this file
- Each file is based on what the run had read. Where somebody else has changed it meanwhile, both
  are merged; where that does not go, their file stays as it is and is named in ``left``.
- A plan never raises because one file went another way: the rest of the run's work is kept.
- Where a memory came from is said by the journal. What a text claims of itself there is replaced.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memd.core.names import INDEX, TEAM
from memd.core.text import one_line, sha256
from memd.core.values import Draft, Effect, FileEdit, Pointer, Tree
from memd.documents import document, index
from memd.documents.document import FrontmatterNotEditableError

_TITLE_CHARACTERS, _HOOK_CHARACTERS = 80, 120


@dataclass(frozen=True, slots=True)
class Proposed:
    """One file: what the run had read (``None``: no file) and what it wants (``None``: none).

    ``reason`` says why a memory is to be removed, ``origin`` whose words it holds where that is
    not the origin of the whole change.
    """

    path: str
    base: bytes | None
    content: bytes | None
    reason: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class SourceText:
    """What a run saw of daily logs (``log``) or of transcripts in one answer.

    ``at`` is when the newest of these files changed last, in seconds since 1970.
    """

    text: str
    at: float = 0.0
    log: bool = False


@dataclass(frozen=True, slots=True)
class RunProposal:
    """Everything that a run wants to change, the index among it where the run edited it.

    ``sources`` is what it saw of logs and transcripts.
    """

    files: tuple[Proposed, ...]
    sources: tuple[SourceText, ...] = ()

    @property
    def saved(self) -> tuple[str, ...]:
        """Memories that are new."""
        return tuple(f.path for f in self._memories if f.base is None)

    @property
    def updated(self) -> tuple[str, ...]:
        """Memories that were there and say something else now."""
        result = (f for f in self._memories if f.base is not None and f.content is not None)
        return tuple(f.path for f in result)

    @property
    def removed(self) -> tuple[tuple[str, str], ...]:
        """Memories that are to go, each with the reason that the run gave."""
        return tuple((f.path, f.reason) for f in self._memories if f.content is None)

    @property
    def _memories(self) -> tuple[Proposed, ...]:
        return tuple(file for file in self.files if file.path != INDEX)


class ChangePlan:
    """A plan for ``Store.commit``; after it ran, ``left`` names what was kept as others made it.

    ``session`` and ``modified`` (ISO 8601) are stamped into the memories, ``effects`` move with
    them. ``pointers`` are titles and hooks that the run chose; other new memories get theirs from
    name and description. Size, names and secrets are the store's door; it also brings the index
    into order.
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
        self._effects = effects
        self._pointers = pointers or {}

    def plan(self, tree: Tree) -> Draft:
        """Return the change set for the directory as it is now. May run more than once."""
        edits: list[FileEdit] = []
        left: list[str] = []
        merged: list[str] = []
        pointers: dict[str, Pointer] = {}
        for file in self.proposal.files:
            live = tree.index() if file.path == INDEX else _content(tree, file.path)
            new = stamped(file, session=self._session, modified=self._modified)
            edit = _edit(new, live)
            if edit is None:
                left.append(file.path)
                continue
            if edit.content is not None and live != file.base:
                merged.append(file.path)
            edits.append(edit)
            if file.base is None and edit.content is not None and file.path != INDEX:
                pointers[file.path] = _pointer(file.path, edit.content)
        pointers |= {path: self._pointers[path] for path in self._pointers if path not in left}
        edits += _index_edit(tree.index(), self._pointers, edits)
        self.left, self.merged = tuple(left), tuple(merged)
        effects = self._effects(self) if callable(self._effects) else self._effects
        return Draft(tuple(edits), pointers, effects)


def _index_edit(
    live: bytes | None, pointers: Mapping[str, Pointer], edits: Sequence[FileEdit]
) -> list[FileEdit]:
    """Return the edit that rewrites the lines of memories, where no other edit of the index is."""
    if live is None or any(edit.path == INDEX for edit in edits):
        return []
    content = live
    for edit in edits:
        if edit.path in pointers and edit.content is not None:
            content = index.with_pointer(content, edit.path, pointers[edit.path])
    return [] if content == live else [FileEdit(INDEX, content, sha256(live))]


def stamped(file: Proposed, *, session: str, modified: str) -> Proposed:
    """Put session and time (ISO 8601) into a memory's frontmatter, where it can be edited."""
    if file.content is None or file.path == INDEX:
        return file
    fields = {"metadata.modified": modified}
    if file.base is None:
        fields["metadata.node_type"] = "memory"
        if session and not file.path.startswith(TEAM):
            fields["metadata.originSessionId"] = session
    try:
        return replace(file, content=document.with_fields(file.content, fields))
    except FrontmatterNotEditableError:
        return file


def _content(tree: Tree, path: str) -> bytes | None:
    result = tree.read(path)
    return None if result is None else result.content


def _edit(file: Proposed, live: bytes | None) -> FileEdit | None:
    """Return the edit on the live file, ``None`` where that has to stay as it is."""
    base = "" if live is None else sha256(live)
    if live == file.base:
        return FileEdit(file.path, file.content, base, origin=file.origin)
    if live is None or file.base is None or file.content is None:
        return None
    if file.path == INDEX:
        content = index.merge(file.base, file.content, live)
    else:
        content = document.merge(file.base, file.content, live, file.path)
    return None if content is None else FileEdit(file.path, content, base, origin=file.origin)


def _pointer(path: str, content: bytes) -> Pointer:
    read = document.parse(content, path)
    return Pointer(
        one_line(read.name, _TITLE_CHARACTERS), one_line(read.description, _HOOK_CHARACTERS)
    )
