"""dream.review, accept and reject: the proposals of dreams, which a person decides."""

from typing import Annotated

import msgspec

from memd.api.services import Services
from memd.methods.method import Result, method
from memd.review.service import Accepted, Rejected
from memd.review.view import ProposalView
from memd.rpc.call import Call

Reason = Annotated[str, msgspec.Meta(max_length=10_000)]
Paths = Annotated[tuple[str, ...], msgspec.Meta(max_length=2000)]


class Proposals(Result):
    """The newest proposals first."""

    proposals: tuple[ProposalView, ...]


@method("dream.review", "read")
async def dream_review(
    services: Services, call: Call, *, cwd: str, proposal: str = "", all_: bool = False
) -> Proposals:
    """The changes that dreams proposed and did not make, each file with its diff.

    Open proposals are returned, or with ``all`` decided ones too, or the one named ``proposal``.
    """
    directory = (await services.callers.project(call, cwd)).memory_dir
    proposals = await services.reviews.review(directory, proposal, decided=all_)
    return Proposals(proposals=proposals)


@method("dream.accept", "write")
async def dream_accept(
    services: Services, call: Call, *, cwd: str, proposal: str, paths: Paths = ()
) -> Accepted:
    """Carry out a dream's proposal, whole or for some files, as one change.

    Without ``paths`` it is carried out for all open files.
    """
    directory = (await services.callers.writable(call, cwd)).memory_dir
    return await services.reviews.accept(directory, proposal, paths, client=call.caller.client)


@method("dream.reject", "write")
async def dream_reject(
    services: Services,
    call: Call,
    *,
    cwd: str,
    proposal: str,
    paths: Paths = (),
    reason: Reason = "",
) -> Rejected:
    """Reject a dream's proposal, whole or for some files; the next dream gets the ``reason``."""
    directory = (await services.callers.project(call, cwd)).memory_dir
    return await services.reviews.reject(directory, proposal, paths, reason=reason)
