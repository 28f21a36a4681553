"""dream.review, accept and reject: what dreams wanted and were not let, for a person to decide."""

from typing import Annotated

import msgspec

from memd.api.memory import MemoryOffError, project_of, writable
from memd.api.method import Params, Result, method
from memd.api.services import Services
from memd.projects.project import NoProjectError
from memd.review.choice import NotTakenInError, PathNotProposedError, ProposalDecidedError
from memd.review.service import (
    Accepted,
    ProposalNotFoundError,
    ProposalUnreadableError,
    Rejected,
)
from memd.review.view import View
from memd.rpc.connection import Call
from memd.store.drafts import SecretRefusedError
from memd.store.service import StorageFailedError

Reason = Annotated[str, msgspec.Meta(max_length=10_000)]
Paths = Annotated[list[str], msgspec.Meta(max_length=2000)]


class ReviewProposals(Params):
    """Parameters of ``dream.review``: the open proposals, one of any state, or ``all``."""

    cwd: str
    proposal: str | None = None
    all: bool | None = None


class AcceptProposal(Params):
    """Parameters of ``dream.accept``; without ``paths`` all files that are open."""

    cwd: str
    proposal: str
    paths: Paths | None = None


class RejectProposal(AcceptProposal):
    """Parameters of ``dream.reject``; the next dream is told the ``reason``."""

    reason: Reason | None = None


class Proposals(Result):
    """The newest proposals first."""

    proposals: tuple[View, ...]


@method("dream.review", "read", NoProjectError, ProposalNotFoundError)
async def dream_review(services: Services, call: Call, params: ReviewProposals) -> Proposals:
    """What dreams wanted and the judge kept back, each file with its diff."""
    directory = (await project_of(services, call, params.cwd)).memory_dir
    proposals = await services.reviews.review(
        directory, params.proposal or "", decided=bool(params.all)
    )
    return Proposals(proposals=proposals)


@method(
    "dream.accept",
    "write",
    NoProjectError,
    MemoryOffError,
    ProposalNotFoundError,
    ProposalUnreadableError,
    ProposalDecidedError,
    PathNotProposedError,
    NotTakenInError,
    SecretRefusedError,
    StorageFailedError,
)
async def dream_accept(services: Services, call: Call, params: AcceptProposal) -> Accepted:
    """Make what a dream proposed true, whole or by file, as one change."""
    directory = (await writable(services, call, params.cwd)).memory_dir
    return await services.reviews.accept(
        directory, params.proposal, params.paths or (), client=call.connection.caller.client
    )


@method(
    "dream.reject",
    "write",
    NoProjectError,
    ProposalNotFoundError,
    ProposalDecidedError,
    PathNotProposedError,
)
async def dream_reject(services: Services, call: Call, params: RejectProposal) -> Rejected:
    """Refuse what a dream proposed, whole or by file; the next dream is told why."""
    directory = (await project_of(services, call, params.cwd)).memory_dir
    return await services.reviews.reject(
        directory, params.proposal, params.paths or (), reason=params.reason or ""
    )


METHODS = (dream_review, dream_accept, dream_reject)
