"""Review: what imports bring and dreams were not let, looked at and decided by a person.

Rules of this file
- One decision at a time: what a plan was made of is what is decided.
- What is accepted is one change set of a client, seen in the history and taken back like any
  other. That it is accepted becomes true in the transaction that makes the files true, so a crash
  leaves both or neither, and nothing is applied twice.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import anyio
from anyio import to_thread

from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.text import one_line
from memd.core.values import ASSISTANT, Actor, Draft, ProposalDecided, Provenance, Tree
from memd.documents.secrets import scrub
from memd.review.accepting import Acceptance, LeftFile, accept, open_edits
from memd.review.view import ProposalView, paths, views
from memd.state.changes import ACCEPTED, REJECTED, Proposal, ProposalTable, ProposedEdit, state_of
from memd.store.service import Store

_REASON_CHARACTERS = 500
_SHOWN_CHARACTERS = 40


class ProposalNotFoundError(MemdError):
    """There is no such proposal of this directory, or it is too old to be kept."""

    code = 1001
    kind = "proposal_not_found"
    hint = "memctl dream review lists the proposals"
    exit_status = 66

    def __init__(self, proposal: str) -> None:
        shown = proposal[:_SHOWN_CHARACTERS]
        super().__init__(f"there is no proposal {shown!r} of this directory", proposal=shown)


class ProposalUnreadableError(MemdError):
    """A proposal holds no texts: it is damaged, or they were too large to be kept."""

    code = 1011
    kind = "proposal_unreadable"
    hint = "reject it; the next dream looks again"
    exit_status = 65

    def __init__(self, proposal: str) -> None:
        super().__init__(
            f"proposal {proposal} holds nothing that could be accepted", proposal=proposal
        )


@dataclass(frozen=True, slots=True)
class Accepted:
    """What was accepted with which change, and what had to be left.

    ``change`` is null where no file had to change. Files that are ``left`` stay as they are and
    open, each with the reason.
    """

    proposal: str
    state: str
    change: str | None
    accepted: tuple[str, ...]
    left: tuple[LeftFile, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """What was rejected."""

    proposal: str
    state: str
    rejected: tuple[str, ...]


class Reviews:
    """The proposals of dreams. A directory is named as the dream named it."""

    def __init__(self, store: Store, proposals: ProposalTable, clock: Clock) -> None:
        self._store = store
        self._proposals = proposals
        self._clock = clock
        self._deciding = anyio.Lock()

    async def review(
        self, directory: str, proposal: str = "", *, decided: bool = False
    ) -> tuple[ProposalView, ...]:
        """Return the open proposals, newest first; with ``decided`` all, or one that is named.

        Raises ProposalNotFoundError and StateUnusableError.
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
        """Return by real directory how many proposals are open. Raises StateUnusableError."""
        return await to_thread.run_sync(self._proposals.waiting)

    async def waiting_in(self, directory: str) -> int:
        """Return how many proposals of a directory are open. Raises StateUnusableError."""
        return await to_thread.run_sync(self._proposals.waiting_in, directory)

    async def asks(self, directory: str, proposal: str) -> bool:
        """Say whether a proposal asks if memories are still needed.

        Raises ProposalNotFoundError and StateUnusableError.
        """
        return (await self._proposal(directory, proposal)).asks

    async def accept(
        self, directory: str, proposal: str, names: Sequence[str] = (), *, client: str = ""
    ) -> Accepted:
        """Make what a proposal wanted true: of some files, or of all that are open.

        A file that was changed meanwhile is merged or left. Raises ProposalNotFoundError,
        ProposalUnreadableError, ProposalDecidedError, PathNotProposedError, NotTakenInError (for
        named files), and what ``Store.commit`` raises; then nothing was written.
        """
        async with self._deciding:
            current = await self._proposal(directory, proposal)
            edits = current.edits
            if not edits:
                raise ProposalUnreadableError(current.id)
            wanted = open_edits(current, names)
            made = Acceptance()

            def plan(tree: Tree) -> Draft:
                nonlocal made
                imports = current.imports
                made = accept(edits, wanted, tree, strict=bool(names), imports=imports)
                return made.draft(current.id, imports=imports)

            asks = "a question" if current.asks else "a dream"
            source = "an import" if current.imports else asks
            by = Provenance(
                Actor.CLIENT,
                client,
                reason=f"accepted proposal {current.id} of {source}",
                origin=current.origin if current.imports else ASSISTANT,
            )
            committed = await self._store.commit(directory, plan, by)
        state = _state(edits, made.accepted, ACCEPTED)
        return Accepted(current.id, state, committed.change, made.accepted, made.left)

    async def reject(
        self, directory: str, proposal: str, names: Sequence[str] = (), *, reason: str = ""
    ) -> Rejected:
        """Refuse a proposal, or some files of it; the next dream is told why.

        Raises ProposalNotFoundError, ProposalDecidedError, PathNotProposedError and
        StateUnusableError.
        """
        async with self._deciding:
            current = await self._proposal(directory, proposal)
            edits = current.edits or ()
            refused = tuple(edit.path for edit in open_edits(current, names))
            words = one_line(scrub(reason), _REASON_CHARACTERS)
            decided = ProposalDecided(current.id, REJECTED, json.dumps(refused), words)
            await to_thread.run_sync(self._proposals.decide, decided, self._clock.now())
        state = _state(edits, refused, REJECTED) if edits else REJECTED
        return Rejected(current.id, state, refused)

    async def _proposal(self, directory: str, proposal: str) -> Proposal:
        current = await to_thread.run_sync(self._proposals.find, directory, proposal)
        if current is None:
            raise ProposalNotFoundError(proposal)
        return current


def _state(edits: Sequence[ProposedEdit], decided: Collection[str], state: str) -> str:
    """Return the state of a proposal once some of its edits are decided."""
    return state_of(state if edit.path in decided else edit.state for edit in edits)
