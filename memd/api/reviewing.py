"""dream.review, accept and reject: what dreams wanted or ask, for a person to decide."""

from typing import Annotated

import msgspec

from memd.api.callers import started_by_an_assistant
from memd.api.memory import MemoryOffError, project_of, writable
from memd.api.method import Result, method
from memd.api.services import Services
from memd.core.errors import MemdError
from memd.projects.project import NoProjectError
from memd.review.accepting import NotTakenInError, PathNotProposedError, ProposalDecidedError
from memd.review.service import Accepted, ProposalNotFoundError, ProposalUnreadableError, Rejected
from memd.review.view import ProposalView
from memd.rpc.connection import Call
from memd.store.drafts import SecretRefusedError
from memd.store.service import StorageFailedError

Reason = Annotated[str, msgspec.Meta(max_length=10_000)]
Paths = Annotated[tuple[str, ...], msgspec.Meta(max_length=2000)]


class RemovalRefusedError(MemdError):
    """A program that an assistant started answered a question that is the person's."""

    code = 1088
    kind = "removal_refused"
    hint = "run memctl dream accept in a terminal of your own"

    def __init__(self, proposal: str) -> None:
        super().__init__(
            f"whether the memories of {proposal} are still needed is for the person to say",
            proposal=proposal,
        )


class Proposals(Result):
    """The newest proposals first."""

    proposals: tuple[ProposalView, ...]


@method("dream.review", "read", NoProjectError, ProposalNotFoundError)
async def dream_review(
    services: Services, call: Call, *, cwd: str, proposal: str = "", all_: bool = False
) -> Proposals:
    """What dreams wanted and the judge kept back, each file with its diff.

    Those that are open, unless ``all`` are asked for or one ``proposal`` is named.
    """
    directory = (await project_of(services, call, cwd)).memory_dir
    proposals = await services.reviews.review(directory, proposal, decided=all_)
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
    RemovalRefusedError,
    SecretRefusedError,
    StorageFailedError,
)
async def dream_accept(
    services: Services, call: Call, *, cwd: str, proposal: str, paths: Paths = ()
) -> Accepted:
    """Make what a dream proposed true, whole or by file, as one change.

    Without ``paths`` all files that are open. A program that an assistant started may not say that
    memories which nobody used are not needed any more.
    """
    directory = (await writable(services, call, cwd)).memory_dir
    asks = await services.reviews.asks(directory, proposal)
    if asks and await started_by_an_assistant(services, call):
        raise RemovalRefusedError(proposal)
    return await services.reviews.accept(directory, proposal, paths, client=call.caller.client)


@method(
    "dream.reject",
    "write",
    NoProjectError,
    ProposalNotFoundError,
    ProposalDecidedError,
    PathNotProposedError,
)
async def dream_reject(
    services: Services,
    call: Call,
    *,
    cwd: str,
    proposal: str,
    paths: Paths = (),
    reason: Reason = "",
) -> Rejected:
    """Refuse what a dream proposed, whole or by file; the next dream is told why."""
    directory = (await project_of(services, call, cwd)).memory_dir
    return await services.reviews.reject(directory, proposal, paths, reason=reason)


METHODS = (dream_review, dream_accept, dream_reject)
