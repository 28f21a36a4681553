"""Plan how the open edits of a proposal are applied to the live files. Pure.

Rules of this file
- A file that changed since the dream read it is merged if possible. Otherwise it is left, and so is
  every memory that was to be merged into it.
- A memory that is to be merged into another one is removed only if that one says it: if its
  proposed text is accepted too or is there already, or if it has each word of the memory.
- Names in a proposal are input: a file with a forbidden name is left.
"""

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from memd.base.errors import MemdError, NotFound
from memd.base.inbox import decided_before
from memd.base.names import INDEX, check_name, in_catalogue, name_refused, printable
from memd.base.text import decode
from memd.base.values import Draft, FileEdit, Reasoned, Tree
from memd.state.proposals import (
    ACCEPTED,
    OPEN,
    Proposal,
    ProposalDecision,
    ProposedEdit,
    proposal_decided,
)
from memd.store.draft import merge_edit
from memd.store.memory import parse

_CHANGED = "it was changed since the dream had read it"
_GONE = "it was removed since the dream had read it"
_TAKEN = "there is a file of this name by now"
_NO_TOPIC = "only topic files are written here"
_NOT_SAID = "it was to go into {}, which does not say what it says"
_WORD = r"\w+"


def _path_not_proposed(proposal: str, path: str) -> NotFound:
    shown = printable(path)
    return NotFound(
        f"proposal {proposal} has no file {shown}",
        hint="memctl review shows the files of each proposal",
        proposal=proposal,
        path=shown,
    )


class Acceptance(Struct, frozen=True):
    """The edits of the live files, and the result for each accepted file.

    ``accepted`` are paths that have the proposed text afterwards; ``merged`` are those of them
    where it is merged with newer work.
    """

    edits: tuple[FileEdit, ...] = ()
    accepted: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    left: tuple[Reasoned, ...] = ()

    def draft(self, directory: str, proposal: str, at: float) -> Draft:
        """Return the change set, which also records the decision in the same transaction."""
        if not self.accepted:
            return Draft()
        decision = ProposalDecision(proposal, ACCEPTED, self.accepted)
        decided = proposal_decided(directory, decision, at)
        return Draft(self.edits, effects=(decided,), merged=self.merged)


class _Result(Struct, frozen=True):
    """The result for one file."""

    old: bytes | None = None  # its content before, ``None`` for no file
    new: bytes | None = None  # its content afterwards, ``None`` for no file
    edit: FileEdit | None = None  # ``None`` if nothing changes
    merged: bool = False  # whether the edit is merged with newer work
    left: str = ""  # why the file stays as it is, "" if it does not


def open_edits(proposal: Proposal, paths: Collection[str]) -> tuple[ProposedEdit, ...]:
    """Return the open edits of these paths, or all open ones if ``paths`` is empty.

    Raises NotFound and Conflict.
    """
    if proposal.state != OPEN:
        raise decided_before(proposal.id, proposal.state)
    edits = {edit.path: edit for edit in proposal.edits}
    for path in paths:
        if path not in edits:
            raise _path_not_proposed(proposal.id, path)
        if edits[path].state != OPEN:
            raise decided_before(proposal.id, edits[path].state, printable(path))
    selected = [edit for path, edit in edits.items() if not paths or path in paths]
    return tuple(edit for edit in selected if edit.state == OPEN)


def accept(
    edits: Sequence[ProposedEdit], selected: Sequence[ProposedEdit], tree: Tree
) -> Acceptance:
    """Return the plan for accepting ``selected``, which are some of the proposal's ``edits``.

    A removal that would lose text is left.
    """
    results = {edit.path: _result_of_edit(edit, tree) for edit in selected}
    proposed_texts = {edit.path: edit.content for edit in edits}
    for edit in selected:
        result = results[edit.path]
        if edit.content is not None or not edit.merged_into or result.edit is None:
            continue
        into = edit.merged_into
        target = results.get(into)
        if target is None:
            is_said = _says(tree, into, result.old or b"", proposed_texts.get(into))
        else:
            is_said = target.new is not None and not target.left
        if not is_said:
            results[edit.path] = _Result(left=_NOT_SAID.format(printable(into)))
    return Acceptance(
        edits=tuple(result.edit for result in results.values() if result.edit is not None),
        accepted=tuple(path for path, result in results.items() if not result.left),
        merged=tuple(path for path, result in results.items() if result.merged),
        left=tuple(Reasoned(path, result.left) for path, result in results.items() if result.left),
    )


def _result_of_edit(edit: ProposedEdit, tree: Tree) -> _Result:
    """Return the result of applying an edit to its live file.

    The file is left if its name is forbidden, or if it changed and cannot be merged.
    """
    try:
        check_name(edit.path, index=edit.content is not None)
        if edit.path != INDEX and not in_catalogue(edit.path):
            raise name_refused(edit.path, _NO_TOPIC)
        file = tree.read(edit.path)
    except MemdError as error:
        return _Result(left=error.sentence)
    live, live_hash = (file.content, file.hash) if file else (None, "")
    if live == edit.content:  # there is nothing to change
        return _Result(live, live)
    new_edit = FileEdit(edit.path, edit.content, edit.base, edit.mtime_ns)
    if live_hash == edit.base:  # the file is as the dream read it
        return _Result(live, edit.content, new_edit)
    if live is None:
        return _Result(left=_GONE)
    merged = merge_edit(new_edit, edit.before if edit.base else None, live)
    if merged is None:
        return _Result(left=_CHANGED if edit.base else _TAKEN)
    new_edit = FileEdit(edit.path, merged, live_hash)
    return _Result(live, merged, new_edit if merged != live else None, merged=True)


def _says(tree: Tree, path: str, old: bytes, proposed: bytes | None) -> bool:
    """Return whether a memory has all words of the ``old`` one, or the body that was proposed.

    ``path`` is the memory's, ``proposed`` its text in the proposal, ``None`` if there is none.
    """
    try:
        file = tree.read(path)
    except MemdError:
        return False
    if file is None:
        return False
    # Only the bodies are compared, since the head is memd's.
    if proposed is not None and parse(proposed, path).body == file.body:
        return True
    return _words(parse(old, path).body) <= _words(decode(file.content))


def _words(text: str) -> frozenset[str]:
    """Return the words of a text, in lower case."""
    return frozenset(re.findall(_WORD, text.casefold()))
