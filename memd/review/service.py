"""Show proposals of dreams, and accept or reject them for a person.

Rules of this file
- Decisions are made one at a time, so that a plan's proposal does not change meanwhile.
- Accepted edits are one change set of a client, which the history shows and undo takes back. The
  decision is committed in the same transaction as the files, so nothing is applied twice after a
  crash.
"""

from collections.abc import Collection, Sequence
from typing import Annotated

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct

from memd.base.clock import Clock
from memd.base.errors import Invalid, NotFound
from memd.base.text import one_line
from memd.base.values import ASSISTANT, Actor, Draft, Provenance, Tree
from memd.methods.callers import Callers
from memd.methods.method import method
from memd.review.accepting import Acceptance, LeftFile, accept, open_edits
from memd.review.view import ProposalView, paths_of, views
from memd.rpc.call import Call
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
Reason = Annotated[str, msgspec.Meta(max_length=10_000)]
Paths = Annotated[tuple[str, ...], msgspec.Meta(max_length=2000)]


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


class Proposals(Struct, frozen=True):
    """The newest proposals first."""

    proposals: tuple[ProposalView, ...]


class Reviews:
    """Reviews proposals. A directory has to be named as the dream named it."""

    def __init__(
        self, store: Store, proposals: ProposalTable, clock: Clock, callers: Callers
    ) -> None:
        self._store = store
        self._callers = callers
        self._proposals = proposals
        self._clock = clock
        self._decision_lock = anyio.Lock()  # held while a proposal is decided

    @method("dream.review", "read")
    def review(self, call: Call, *, cwd: str, proposal: str = "", all_: bool = False) -> Proposals:
        """The changes that dreams proposed and did not make, each file with its diff.

        Open proposals are returned, or with ``all`` decided ones too, or the one named
        ``proposal``.
        """
        directory = self._callers.place(call, cwd).memory_dir
        if proposal:
            shown: tuple[Proposal, ...] = (self._proposal(directory, proposal),)
        else:
            shown = self._proposals.of_directory(directory, decided=all_)
        files = self._store.reading.read_many(directory, paths_of(shown))
        live = {file.header.path: file.content for file in files}
        return Proposals(proposals=views(shown, live))

    async def waiting(self) -> dict[str, int]:
        """Return the number of open proposals by real directory. Raises StateUnusableError."""
        return await to_thread.run_sync(self._proposals.waiting)

    @method("dream.accept", "write")
    async def accept(self, call: Call, *, cwd: str, proposal: str, paths: Paths = ()) -> Accepted:
        """Carry out a dream's proposal, whole or for some files, as one change.

        Without ``paths`` it is carried out for all open files.
        """
        directory = (await to_thread.run_sync(self._callers.writable, call, cwd)).memory_dir
        async with self._decision_lock:
            current = await to_thread.run_sync(self._proposal, directory, proposal)
            edits = current.edits
            if not edits:
                raise Invalid(
                    f"proposal {current.id} holds nothing that could be accepted",
                    hint="reject it; the next dream looks again",
                    proposal=current.id,
                )
            selected = open_edits(current, paths)
            acceptance = Acceptance()

            def plan(tree: Tree) -> Draft:
                """Return the change set for the live files, and set the result for each file."""
                nonlocal acceptance
                acceptance = accept(edits, selected, tree, strict=bool(paths))
                return acceptance.draft(directory, current.id, self._clock.now())

            reason = f"accepted proposal {current.id} of a dream"
            provenance = Provenance(
                Actor.CLIENT, call.caller.client, reason=reason, origin=ASSISTANT
            )
            committed = await self._store.commit(directory, plan, provenance)
        accepted, left = acceptance.accepted, acceptance.left
        state = _state(edits, accepted, ACCEPTED)
        return Accepted(current.id, state, committed.change, accepted, left)

    @method("dream.reject", "write")
    async def reject(
        self,
        call: Call,
        *,
        cwd: str,
        proposal: str,
        paths: Paths = (),
        reason: Reason = "",
    ) -> Rejected:
        """Reject a dream's proposal, whole or for some files; the next dream gets
        the ``reason``.
        """
        directory = (await to_thread.run_sync(self._callers.place, call, cwd)).memory_dir
        async with self._decision_lock:
            current = await to_thread.run_sync(self._proposal, directory, proposal)
            edits = current.edits
            rejected = tuple(edit.path for edit in open_edits(current, paths))
            words = one_line(scrub(reason), _REASON_CHARACTERS)
            decision = ProposalDecision(current.id, REJECTED, rejected, words)
            await to_thread.run_sync(self._proposals.decide, directory, decision, self._clock.now())
        # An unreadable proposal has no edits and is rejected as a whole.
        state = _state(edits, rejected, REJECTED) if edits else REJECTED
        return Rejected(current.id, state, rejected)

    def _proposal(self, directory: str, proposal: str) -> Proposal:
        """Return a proposal by its id. Blocks. Raises NotFound."""
        current = self._proposals.find(directory, proposal)
        if current is None:
            raise _proposal_not_found(proposal)
        return current


def _state(edits: Sequence[ProposedEdit], decided: Collection[str], state: str) -> str:
    """Return the state of a proposal once some of its edits are decided.

    ``decided`` are the paths of these edits, ``state`` what they become.
    """
    return state_of([state if edit.path in decided else edit.state for edit in edits])
