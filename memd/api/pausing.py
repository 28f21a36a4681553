"""pause and resume, and what holds background work up."""

from memd.api.method import Method, Params
from memd.api.services import Services
from memd.jobs.standstill import Standing
from memd.rpc.connection import Call


class Pause(Params):
    """Parameters of ``pause``: with ``now`` running jobs are put back into the queue."""

    now: bool | None = None


class Resume(Params):
    """No parameters."""


async def pause(services: Services, _call: Call, params: Pause) -> Standing:
    """Answer ``pause``; prompts go on, and jobs are accepted and kept."""
    return await services.jobs.pause(now=bool(params.now))


async def resume(services: Services, _call: Call, _params: Resume) -> Standing:
    """Answer ``resume``."""
    return await services.jobs.resume()


METHODS = (
    Method(
        name="pause",
        summary="Start no background work until resume, also after a restart; prompts go on.",
        params=Pause,
        result=Standing,
        permission="operate",
        handler=pause,
    ),
    Method(
        name="resume",
        summary="Let background work go on.",
        params=Resume,
        result=Standing,
        permission="operate",
        handler=resume,
    ),
)
