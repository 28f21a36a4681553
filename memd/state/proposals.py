"""Store proposals: edits of a dream that its judge kept back, and that wait for a person.

Rules of this file
- A proposal is open while one of its files is open, and accepted, partly or rejected afterwards.
  Accepted edits become a change of their own, with which the decision becomes true.
- A directory has at most twenty open ones; the oldest are dropped. A proposal that equals an open
  one is not stored again.
- Refused edits are known to the next dreams as long as the proposal is stored.
"""

import os
from collections.abc import Callable, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from memd.base.names import is_text
from memd.base.text import one_line
from memd.base.values import Effect
from memd.state import docs
from memd.state.database import Cursor, Database
from memd.state.docs import Docs

OPEN, ACCEPTED, PARTLY, REJECTED = "open", "accepted", "partly", "rejected"
_MOST_OPEN = 20  # of one directory
_MOST_STORED = 200
# The most that one proposal stores.
_BYTES = 4 * 1024 * 1024  # of its texts
_SAID_CHARACTERS = 20_000
_PROBLEMS = 200
_PROBLEM_CHARACTERS = 1000
_FILES = 2000  # four times what one change may have
_PATH_CHARACTERS = 1000
_REASON_CHARACTERS = 500


class ProposedEdit(Struct, frozen=True, omit_defaults=True):
    """One file of a proposal: its text before and after; ``None`` if there is no file.

    ``base`` is the hash of the text before, "" for none. ``before`` is ``None`` too if that text
    was not stored. ``merged_into`` names the memory with which a removed one is merged, "" for
    none. ``mtime_ns`` is set if the change must not make the memory look newer. ``decided`` is when
    a person decided (seconds since 1970), ``refusal`` why they rejected it.
    """

    path: str
    content: bytes | None
    base: str = ""
    before: bytes | None = None
    reason: str = ""
    merged_into: str = ""
    state: str = OPEN
    mtime_ns: int | None = None
    decided: float | None = None
    refusal: str = ""


class Proposal(Struct, frozen=True, omit_defaults=True):
    """Edits of a dream that wait for a person; times are seconds since 1970.

    ``engine`` is a model's name, "" for the fixed pass. ``problems`` say why the edits were kept
    back, ``said`` is the model's last message. ``state`` is open, accepted, partly or rejected;
    ``decided`` is the time of the last decision, ``reason`` that of a refusal. ``edits`` are empty
    if the texts were too large.
    """

    id: str
    directory: str
    at: float
    job: str = ""
    engine: str = ""
    said: str = ""
    problems: tuple[str, ...] = ()
    state: str = OPEN
    decided: float | None = None
    reason: str = ""
    edits: tuple[ProposedEdit, ...] = ()


class ProposalDecision(Struct, frozen=True):
    """A person's decision on a proposal: the edits of ``paths`` are accepted or rejected.

    ``state`` is accepted or rejected, with the ``reason`` for that.
    """

    proposal: str
    state: str
    paths: tuple[str, ...]
    reason: str = ""


class ProposalTable:
    """The proposals of all directories. Methods block and raise Storage.

    A directory may be given by any path that leads to it.
    """

    def __init__(self, database: Database) -> None:
        self._docs = Docs(database)

    def propose(self, proposal: Proposal) -> str:
        """Store a proposal and return its id, as the function ``propose`` does."""
        with self._docs.transaction() as cursor:
            return propose(cursor, proposal)

    def of_directory(self, directory: str, *, decided: bool = False) -> tuple[Proposal, ...]:
        """Return the open proposals for a memory directory, newest first; all with ``decided``."""
        stored = self._docs.list_in(Proposal, os.path.realpath(directory)).values()
        chosen = [each for each in stored if decided or each.state == OPEN]
        return tuple(sorted(chosen, key=lambda each: int(each.id[1:]), reverse=True))

    def find(self, directory: str, proposal: str) -> Proposal | None:
        """Return a proposal of a memory directory by its id, or ``None``."""
        return self._docs.get(Proposal, os.path.realpath(directory), proposal)

    def places(self) -> tuple[str, ...]:
        """Return the real directories that have proposals, open or decided."""
        return tuple(dict.fromkeys(place for place, _ in self._docs.list_all(Proposal)))

    def waiting(self) -> dict[str, int]:
        """Return how many proposals are open, by real directory; those with none are left out."""
        stored = self._docs.list_all(Proposal).values()
        places = sorted(each.directory for each in stored if each.state == OPEN)
        return {place: len(list(group)) for place, group in groupby(places)}

    def waiting_in(self, directory: str) -> int:
        """Return how many proposals of a memory directory are open."""
        return self.waiting().get(os.path.realpath(directory), 0)

    def decide(self, directory: str, decided: ProposalDecision, at: float) -> None:
        """Store a decision about a proposal's open files, as the function ``decide`` does."""
        with self._docs.transaction() as cursor:
            decide(cursor, os.path.realpath(directory), decided, at)

    def refused(self, directory: str, limit: int) -> tuple[ProposedEdit, ...]:
        """Return the refused edits of a memory directory, the newest decision first."""
        proposals = self.of_directory(directory, decided=True)
        edits = [edit for each in proposals for edit in each.edits if edit.state == REJECTED]
        edits.sort(key=lambda edit: edit.decided or 0.0, reverse=True)
        return tuple(edits[:limit])


def propose(cursor: Cursor, proposal: Proposal) -> str:
    """Store a proposal, inside a transaction; return its id.

    If one with the same edits is open, its id is returned.
    """
    real = os.path.realpath(proposal.directory)
    new = _bounded(replace(proposal, directory=real))
    stored = docs.list_in(cursor, Proposal, real)
    for other in stored.values():
        if other.state == OPEN and _what(other) == _what(new):
            return other.id
    new = replace(new, id=f"p{docs.next_number(cursor, Proposal)}", state=OPEN)
    docs.put(cursor, new, real, new.id)
    open_ones = [each for each in stored.values() if each.state == OPEN]
    for old in open_ones[: max(0, len(open_ones) + 1 - _MOST_OPEN)]:
        if old.decided is None:
            docs.delete(cursor, Proposal, real, old.id)
        else:  # partly decided: its refusals stay known
            docs.put(cursor, replace(old, state=PARTLY), real, old.id)
    docs.keep_newest(cursor, Proposal, _MOST_STORED, real)
    return new.id


def decide(cursor: Cursor, directory: str, decided: ProposalDecision, at: float) -> None:
    """Store a decision about a proposal, inside a transaction; earlier decisions stay.

    A rejection without paths rejects the whole proposal.
    """
    proposal = docs.get(cursor, Proposal, directory, decided.proposal)
    if proposal is None or proposal.state != OPEN:
        return
    paths = set(decided.paths)
    whole = decided.state == REJECTED and not paths
    edits = tuple(
        replace(edit, state=decided.state, decided=at, refusal=decided.reason)
        if edit.state == OPEN and (whole or edit.path in paths)
        else edit
        for edit in proposal.edits
    )
    if edits == proposal.edits and not whole:
        return
    state = REJECTED if whole else state_of([edit.state for edit in edits])
    reason = decided.reason or proposal.reason
    changed = replace(proposal, edits=edits, state=state, decided=at, reason=reason)
    docs.put(cursor, changed, directory, proposal.id)


def proposal_decided(directory: str, decided: ProposalDecision, at: float) -> Effect:
    """Return the effect that stores a decision together with the change that it accepts."""
    real = os.path.realpath(directory)
    return lambda cursor, _change: decide(cursor, real, decided, at)


def forget(cursor: Cursor, holds: Callable[[bytes], bool]) -> None:
    """Delete the proposals with a text for which ``holds`` returns true."""
    cursor.execute("SELECT place, key FROM docs WHERE kind = 'Proposal'")
    for place, key in cursor.fetchall():
        proposal = docs.get(cursor, Proposal, place, key)
        edits = proposal.edits if proposal else ()
        texts = [text for edit in edits for text in (edit.content, edit.before)]
        if any(text is not None and holds(text) for text in texts):
            docs.delete(cursor, Proposal, place, key)


def state_of(states: Sequence[str]) -> str:
    """Return the state of a whole proposal from its files' states: open if one of them is."""
    distinct = set(states)
    if OPEN in distinct or not distinct:
        return OPEN
    return distinct.pop() if len(distinct) == 1 else PARTLY


def _what(proposal: Proposal) -> object:
    """Return what makes a proposal the same as another: its edits, or its problems without any."""
    edits = {(edit.path, edit.base, edit.content) for edit in proposal.edits}
    return edits or proposal.problems


def _bounded(proposal: Proposal) -> Proposal:
    """Return a proposal within the limits, without edits if their texts are too large."""
    problems = [each[:_PROBLEM_CHARACTERS] for each in proposal.problems[:_PROBLEMS]]
    edits = tuple(
        replace(edit, reason=one_line(edit.reason, _REASON_CHARACTERS)) for edit in proposal.edits
    )
    size = sum(len(text) for edit in edits for text in (edit.content, edit.before) if text)
    # Of a name that is no text the document would have another one.
    names = [name for edit in edits for name in (edit.path, edit.merged_into)]
    are_storable = all(is_text(name) and len(name) <= _PATH_CHARACTERS for name in names)
    if len(edits) > _FILES or size > _BYTES or not are_storable:
        sentence = f"the texts of {len(edits)} files are too large to be kept"
        edits, problems = (), [*problems[: _PROBLEMS - 1], sentence]
    said = proposal.said[:_SAID_CHARACTERS]
    return replace(proposal, said=said, problems=tuple(problems), edits=edits)
