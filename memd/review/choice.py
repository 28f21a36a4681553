"""Which edits of a proposal are meant, and what accepting them makes of the live files. Pure.

Rules of this file
- Others' work wins: a file that is not what the dream had read any more is merged, where both
  can stand, else it is left, and so is every memory that was to go into it.
- What a proposal would take away because another memory says it goes only if that memory says it:
  its proposed text comes along, stands there already, or what stands there has each of its words.
- A name is input, as the whole row is: what the name rule refuses is left.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memd.core.errors import MemdError
from memd.core.names import INDEX, NameRefusedError, check_name, in_catalogue, printable
from memd.core.text import decode, sha256
from memd.core.values import FileEdit, ProposalDecided, Tree
from memd.documents import document, index
from memd.documents.document import parse
from memd.state.proposed import ACCEPTED, OPEN, ProposedEdit
from memd.store.drafts import StoreDraft

_CHANGED = "it was changed since the dream had read it"
_GONE = "it was removed since the dream had read it"
_TAKEN = "there is a file of this name by now"
_NO_TOPIC = "only topic files are written here"
_WORD = re.compile(r"\w+")


class PathNotProposedError(MemdError):
    """The proposal has no such file."""

    code = 1001
    kind = "path_not_proposed"
    hint = "memctl dream review shows the files of each proposal"
    exit_status = 66

    def __init__(self, proposal: str, path: str) -> None:
        shown = printable(path)
        super().__init__(f"proposal {proposal} has no file {shown}", proposal=proposal, path=shown)


class ProposalDecidedError(MemdError):
    """A proposal, or a file of it, was accepted or rejected before; nothing is done twice."""

    code = 1002
    kind = "proposal_decided"
    hint = "memctl log shows what was accepted; memctl undo takes it back"

    def __init__(self, proposal: str, state: str, path: str = "") -> None:
        what = f"{path} of proposal {proposal}" if path else f"proposal {proposal}"
        was = "decided" if state == "partly" else state
        super().__init__(f"{what} was {was} before", proposal=proposal, state=state, path=path)


class NotTakenInError(MemdError):
    """A memory would go because another one says it, and that one does not."""

    code = 1002
    kind = "not_taken_in"
    hint = "accept that file as well, or reject this one"

    def __init__(self, path: str, into: str) -> None:
        path, into = printable(path), printable(into)
        super().__init__(
            f"{path} was to go into {into}, which does not say what it says; nothing was written",
            path=path,
            into=into,
        )


@dataclass(frozen=True, slots=True)
class Left:
    """A file that stays as it is although its edit was accepted, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What accepting makes: the edits on the live files, and what became of each proposed one.

    ``accepted`` are paths whose proposed text is there afterwards; ``merged`` are those of them
    where it is put together with newer work.
    """

    edits: tuple[FileEdit, ...] = ()
    accepted: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()

    def draft(self, proposal: str) -> StoreDraft:
        """Return the change set, in which the decision becomes true with the files."""
        if not self.accepted:
            return StoreDraft()
        decided = ProposalDecided(proposal, ACCEPTED, json.dumps(self.accepted))
        return StoreDraft(self.edits, effects=(decided,), merged=self.merged)


@dataclass(frozen=True, slots=True)
class _Fate:
    """What becomes of one file; no ``edit`` where it is so already. ``left`` says why it stays."""

    old: bytes | None = None
    new: bytes | None = None
    edit: FileEdit | None = None
    merged: bool = False
    left: str = ""


def chosen(
    proposal: str, edits: Sequence[ProposedEdit], paths: Collection[str]
) -> tuple[ProposedEdit, ...]:
    """Return the open edits of these paths, or all open ones where none is named.

    Raises PathNotProposedError and ProposalDecidedError.
    """
    known = {edit.path: edit for edit in edits}
    for path in paths:
        if path not in known:
            raise PathNotProposedError(proposal, path)
        if known[path].state != OPEN:
            raise ProposalDecidedError(proposal, known[path].state, path)
    wanted = set(paths or known)
    return tuple(edit for edit in edits if edit.state == OPEN and edit.path in wanted)


def settle(
    edits: Sequence[ProposedEdit], wanted: Sequence[ProposedEdit], tree: Tree, *, strict: bool
) -> Settled:
    """Return what accepting ``wanted``, some of the ``edits``, makes of the live files.

    ``strict``: what would be lost is an error, NotTakenInError; otherwise it is left.
    """
    fates = {edit.path: _fate(edit, tree) for edit in wanted}
    leaving = [edit for edit in wanted if edit.content is None and edit.merged_into]
    texts = {edit.path: edit.content for edit in edits}
    again = True
    while again:  # what is left may be what another one was to go into
        again = False
        for edit in leaving:
            fate = fates[edit.path]
            if fate.edit is None:
                continue
            into = _last(edit, leaving, fates)
            if into in fates and fates[into].left:
                reason = f"{printable(into)}, which was to say it, stays as it is"
            elif _says(into, fate.old or b"", fates, texts, tree):
                continue
            elif strict:
                raise NotTakenInError(edit.path, into)
            else:
                reason = NotTakenInError(edit.path, into).sentence
            fates[edit.path] = _Fate(left=reason)
            again = True
    return Settled(
        tuple(fate.edit for fate in fates.values() if fate.edit is not None),
        tuple(path for path, fate in fates.items() if not fate.left),
        tuple(path for path, fate in fates.items() if fate.merged),
        tuple(Left(path, fate.left) for path, fate in fates.items() if fate.left),
    )


def _fate(edit: ProposedEdit, tree: Tree) -> _Fate:
    try:
        check_name(edit.path, index=edit.content is not None)
        if edit.path != INDEX and not in_catalogue(edit.path):
            raise NameRefusedError(edit.path, _NO_TOPIC)
        found = tree.read(edit.path)
    except MemdError as error:
        return _Fate(left=error.sentence)
    live, key = (found.content, found.hash) if found else (None, "")
    if live == edit.content:
        return _Fate(live, live)
    if key == edit.base:
        made = FileEdit(edit.path, edit.content, key, edit.mtime_ns)
        return _Fate(live, edit.content, made)
    if live is None:
        return _Fate(left=_GONE)
    merged = _merged(edit, live)
    if merged is None:
        return _Fate(left=_CHANGED if edit.base else _TAKEN)
    made = FileEdit(edit.path, merged, key)
    return _Fate(live, merged, made if merged != live else None, merged=True)


def _merged(edit: ProposedEdit, live: bytes) -> bytes | None:
    """Return what both made of the text that the dream had read; ``None`` where both cannot be."""
    before = edit.before
    if edit.path == INDEX and not edit.base:
        before = b""
    elif before is None or sha256(before) != edit.base:
        return None
    if edit.content is None:
        return None
    if edit.path == INDEX:
        return index.merge(before, edit.content, live)
    return document.merge(before, edit.content, live, edit.path)


def _last(edit: ProposedEdit, leaving: Sequence[ProposedEdit], fates: Mapping[str, _Fate]) -> str:
    """Return what a memory goes into in the end, where that one goes into another in turn."""
    into = {e.path: e.merged_into for e in leaving if fates[e.path].edit is not None}
    path, seen = edit.merged_into, {edit.path}
    while path in into and path not in seen:
        seen.add(path)
        path = into[path]
    return path


def _says(
    path: str,
    old: bytes,
    fates: Mapping[str, _Fate],
    texts: Mapping[str, bytes | None],
    tree: Tree,
) -> bool:
    """Say whether a memory, as it will be, says what one says that goes."""
    if path in fates:
        return fates[path].new is not None
    try:
        found = tree.read(path)
    except MemdError:
        return False
    if found is None:
        return False
    return found.content == texts.get(path) or _words(old, path) <= set(
        _found(decode(found.content))
    )


def _words(content: bytes, path: str) -> frozenset[str]:
    return frozenset(_found(parse(content, path).body))


def _found(text: str) -> Iterator[str]:
    return (match[0] for match in _WORD.finditer(text.casefold()))
