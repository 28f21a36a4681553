"""Show proposals of dreams, and accept or reject them for a person.

Rules of this file
- Decisions are made one at a time, so that a plan's proposal does not change meanwhile.
- Accepted edits are one change set of a client, which the history shows and undo takes back. The
  decision is committed in the same transaction as the files, so nothing is applied twice after a
  crash.
"""

from collections.abc import Collection, Sequence

import anyio
from anyio import to_thread
from msgspec import Struct

from memd.base.clock import Clock
from memd.base.errors import Invalid, NotFound
from memd.base.text import one_line
from memd.base.values import ASSISTANT, Actor, Draft, Provenance, Tree
from memd.review.accepting import Acceptance, LeftFile, accept, open_edits
from memd.review.view import ProposalView, paths, views
from memd.state.proposals import (
    ACCEPTED,
    REJECTED,
    Proposal,
    ProposalDecision,
    ProposalTable,
    ProposedEdit,
    state_of,
)
from memd.store.secret import scrub
from memd.store.store import Store

_REASON_CHARACTERS = 500  # of a rejection's reason
_SHOWN_CHARACTERS = 40  # of a proposal's id in an error


def _proposal_not_found(proposal: str) -> NotFound:
    shown = proposal[:_SHOWN_CHARACTERS]
    return NotFound(
        f"there is no proposal {shown!r} of this directory",
        hint="memctl dream review lists the proposals",
        proposal=shown,
    )


class Accepted(Struct, frozen=True):
    """The accepted files with their change, and the files that were left.

    ``change`` is null if no file had to change. Files that are ``left`` stay as they are and
    open, each with the reason.
    """

    proposal: str
    state: str
    change: str | None
    accepted: tuple[str, ...]
    left: tuple[LeftFile, ...]


class Rejected(Struct, frozen=True):
    """The rejected files of a proposal, and its state afterwards."""

    proposal: str
    state: str
    rejected: tuple[str, ...]


class Reviews:
    """Reviews proposals. A directory has to be named as the dream named it."""

    def __init__(self, store: Store, proposals: ProposalTable, clock: Clock) -> None:
        self._store = store
        self._proposals = proposals
        self._clock = clock
        self._decision_lock = anyio.Lock()  # held while a proposal is decided

    async def review(
        self, directory: str, proposal: str = "", *, decided: bool = False
    ) -> tuple[ProposalView, ...]:
        """Return one proposal, or the open ones, newest first; with ``decided`` all of them.

        Raises NotFound and StateUnusableError.
        """
        if proposal:
            shown: tuple[Proposal, ...] = (await self._proposal(directory, proposal),)
        else:
            shown = await to_thread.run_sync(
                lambda: self._proposals.of_directory(directory, decided=decided)
            )
        files = await self._store.read_many(directory, paths(shown))
        live = {file.header.path: file.content for file in files}
        return await to_thread.run_sync(views, shown, live)

    async def waiting(self) -> dict[str, int]:
        """Return the number of open proposals by real directory. Raises StateUnusableError."""
        return await to_thread.run_sync(self._proposals.waiting)

    async def waiting_in(self, directory: str) -> int:
        """Return how many proposals of a directory are open. Raises StateUnusableError."""
        return await to_thread.run_sync(self._proposals.waiting_in, directory)

    async def accept(
        self, directory: str, proposal: str, names: Sequence[str] = (), *, client: str = ""
    ) -> Accepted:
        """Apply the open edits of a proposal to the files ``names``, or to all for none.

        A file that changed meanwhile is merged or left. Raises NotFound, Invalid, Conflict and the
        errors of ``Store.commit``; then nothing was written.
        """
        async with self._decision_lock:
            current = await self._proposal(directory, proposal)
            edits = current.edits
            if not edits:
                raise Invalid(
                    f"proposal {current.id} holds nothing that could be accepted",
                    hint="reject it; the next dream looks again",
                    proposal=current.id,
                )
            selected = open_edits(current, names)
            acceptance = Acceptance()

            def plan(tree: Tree) -> Draft:
                """Return the change set for the live files, and set the result for each file."""
                nonlocal acceptance
                acceptance = accept(edits, selected, tree, strict=bool(names))
                return acceptance.draft(directory, current.id, self._clock.now())

            reason = f"accepted proposal {current.id} of a dream"
            provenance = Provenance(Actor.CLIENT, client, reason=reason, origin=ASSISTANT)
            committed = await self._store.commit(directory, plan, provenance)
        accepted, left = acceptance.accepted, acceptance.left
        state = _state(edits, accepted, ACCEPTED)
        return Accepted(current.id, state, committed.change, accepted, left)

    async def reject(
        self, directory: str, proposal: str, names: Sequence[str] = (), *, reason: str = ""
    ) -> Rejected:
        """Reject a proposal, or some files of it; the next dream is shown the reason.

        Raises NotFound, Conflict and
        StateUnusableError.
        """
        async with self._decision_lock:
            current = await self._proposal(directory, proposal)
            edits = current.edits
            rejected = tuple(edit.path for edit in open_edits(current, names))
            words = one_line(scrub(reason), _REASON_CHARACTERS)
            decision = ProposalDecision(current.id, REJECTED, rejected, words)
            await to_thread.run_sync(self._proposals.decide, directory, decision, self._clock.now())
        # An unreadable proposal has no edits and is rejected as a whole.
        state = _state(edits, rejected, REJECTED) if edits else REJECTED
        return Rejected(current.id, state, rejected)

    async def _proposal(self, directory: str, proposal: str) -> Proposal:
        """Return a proposal by its id. Raises NotFound."""
        current = await to_thread.run_sync(self._proposals.find, directory, proposal)
        if current is None:
            raise _proposal_not_found(proposal)
        return current


def _state(edits: Sequence[ProposedEdit], decided: Collection[str], state: str) -> str:
    """Return the state of a proposal once some of its edits are decided.

    ``decided`` are the paths of these edits, ``state`` what they become.
    """
    return state_of([state if edit.path in decided else edit.state for edit in edits])
