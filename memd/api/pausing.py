"""pause and resume, and what holds background work up."""

from memd.api.method import Params, method
from memd.api.services import Services
from memd.jobs.standstill import Standing
from memd.rpc.connection import Call


class Pause(Params):
    """Parameters of ``pause``: with ``now`` running jobs are put back into the queue."""

    now: bool | None = None


class Resume(Params):
    """No parameters."""


@method("pause", "operate")
async def pause(services: Services, _call: Call, params: Pause) -> Standing:
    """Start no background work until resume, also after a restart; prompts go on.

    Prompts go on, and jobs are accepted and kept.
    """
    return await services.jobs.pause(now=bool(params.now))


@method("resume", "operate")
async def resume(services: Services, _call: Call, _params: Resume) -> Standing:
    """Let background work go on."""
    return await services.jobs.resume()


METHODS = (pause, resume)
