"""Proposals: edits of dreams that their checks kept back, as items of the inbox.

Rules of this file
- Accepted edits are one change set of a client, which the history shows and undo takes back. The
  decision is committed in the same transaction as the files, so nothing is applied twice after a
  crash.
- Only the person decides about a memory of their own words and wishes (``PERSONAL``).
"""

from collections.abc import Collection, Sequence

from memd.base.clock import Clock
from memd.base.inbox import (
    OPEN,
    Answer,
    Decided,
    InboxItem,
    ItemDecision,
    ItemFile,
    ItemKind,
    PlacedItem,
    decided_before,
)
from memd.base.names import printable
from memd.base.text import iso_time, one_line, sha256
from memd.base.threads import in_thread
from memd.base.values import ASSISTANT, PERSONAL, Actor, Draft, Project, Provenance, Tree
from memd.model.port import LOCAL
from memd.review.accepting import Acceptance, accept, open_edits
from memd.state.proposals import (
    ACCEPTED,
    REJECTED,
    Proposal,
    ProposalDecision,
    ProposalTable,
    ProposedEdit,
    state_of,
)
from memd.store.memory import parse
from memd.store.secret import scrub
from memd.store.store import Store
from memd.text.unified import bounded

_REASON_CHARACTERS = 500  # of a rejection's reason
_IMPORT = "import"  # the beginning of an import's ``engine``


class Proposals:
    """The proposals of all directories, a ``Source``. The inbox has them decided one at a time."""

    def __init__(self, store: Store, table: ProposalTable, clock: Clock) -> None:
        self._store = store
        self._table = table
        self._clock = clock

    async def items(self, project: Project | None, id_: str = "") -> Sequence[PlacedItem]:
        """Return open proposals with their directories, newest first, or the one with an id."""
        return await in_thread(self._items, project.memory_dir if project else "", id_)

    def _items(self, directory: str, id_: str) -> list[PlacedItem]:
        """Return what ``items`` returns. Blocks."""
        return [
            (place, self._item(place, proposal))
            for place in ([directory] if directory else self._table.places())
            for proposal in self._table.of_directory(place, decided=bool(id_))
            if id_ in ("", proposal.id)
        ]

    def _item(self, directory: str, proposal: Proposal) -> InboxItem:
        """Return a proposal as an item. Blocks."""
        edits = proposal.edits
        files = self._store.reading.read_many(directory, [edit.path for edit in edits])
        live = {file.header.path: file.content for file in files}
        refusal = (f"rejected: {proposal.reason}",) if proposal.reason else ()
        by = "An import" if proposal.engine.startswith(_IMPORT) else "A dream"
        many = "a memory" if len(edits) == 1 else f"{len(edits)} memories"
        choices = (Answer.ACCEPT, Answer.REJECT) if edits else (Answer.REJECT,)
        return InboxItem(
            id=proposal.id,
            kind=ItemKind.PROPOSAL,
            project="",
            at=iso_time(proposal.at),
            title=f"{by} would change {many}." if edits else f"{by} names what to look at.",
            text=proposal.said,
            origin=proposal.engine or LOCAL,
            choices=choices if proposal.state == OPEN else (),
            why=(*proposal.problems, *refusal),
            files=tuple(_file(edit, live.get(edit.path)) for edit in edits),
            state=proposal.state,
            person_only=any(_is_personal(edit, live.get(edit.path)) for edit in edits),
        )

    async def decide(self, directory: str, item: InboxItem, decision: ItemDecision) -> Decided:
        """Carry a proposal out as one change, or reject it; whole, or for some files.

        Raises NotFound and Conflict.
        """
        proposal = await in_thread(self._table.find, directory, item.id)
        if proposal is None:  # just dropped, as too many wait
            raise decided_before(item.id)
        selected = open_edits(proposal, decision.paths)
        if decision.answer is Answer.REJECT:
            return await self._reject(directory, proposal, selected, decision.reason)
        acceptance = Acceptance()

        def plan(tree: Tree) -> Draft:
            """Return the change set for the live files, and set the result for each file."""
            nonlocal acceptance
            acceptance = accept(proposal.edits, selected, tree)
            return acceptance.draft(directory, proposal.id, self._clock.now())

        reason = f"accepted proposal {proposal.id} of a dream"
        provenance = Provenance(Actor.CLIENT, decision.client, reason=reason, origin=ASSISTANT)
        committed = await self._store.commit(directory, plan, provenance)
        paths, left = acceptance.accepted, acceptance.left
        state = _state(proposal.edits, paths, ACCEPTED)
        return Decided(proposal.id, state, change=committed.change, paths=paths, left=left)

    async def _reject(
        self, directory: str, proposal: Proposal, selected: Sequence[ProposedEdit], reason: str
    ) -> Decided:
        """Reject edits of a proposal, or a proposal without any; the next dream gets the reason."""
        paths = tuple(edit.path for edit in selected)
        words = one_line(scrub(reason), _REASON_CHARACTERS)
        rejected = ProposalDecision(proposal.id, REJECTED, paths, words)
        await in_thread(self._table.decide, directory, rejected, self._clock.now())
        # An unreadable proposal has no edits and is rejected as a whole.
        state = _state(proposal.edits, paths, REJECTED) if proposal.edits else REJECTED
        return Decided(proposal.id, state, paths=paths)


def _state(edits: Sequence[ProposedEdit], decided: Collection[str], state: str) -> str:
    """Return the state of a proposal once some of its edits are decided.

    ``decided`` are the paths of these edits, ``state`` what they become.
    """
    return state_of([state if edit.path in decided else edit.state for edit in edits])


def _is_personal(edit: ProposedEdit, live: bytes | None) -> bool:
    """Return whether an open edit is about a memory that only the person may change."""
    texts = (text for text in (edit.before, edit.content, live) if text is not None)
    return edit.state == OPEN and any(parse(text, edit.path).type in PERSONAL for text in texts)


def _file(edit: ProposedEdit, live: bytes | None) -> ItemFile:
    """Return one file of an item; ``live`` is its content now, ``None`` if there is no file."""
    live_hash = "" if live is None else sha256(live)
    before = edit.before
    if before is None and live_hash == edit.base:  # the file is as the dream read it
        before = live
    action = "changed" if edit.base else "created"
    target = f"goes into {printable(edit.merged_into)}" if edit.merged_into else ""
    return ItemFile(
        path=edit.path,
        action="removed" if edit.content is None else action,
        diff=bounded(printable(edit.path), before, edit.content),
        state=edit.state,
        reason="; ".join(filter(None, (target, edit.reason, edit.refusal))),
        stale=edit.state == OPEN and live_hash != edit.base,
    )
