"""pause and resume, and what holds background work up."""

from memd.api.method import Method, Params, Result
from memd.api.services import Services
from memd.jobs.standstill import Standing as Stands
from memd.rpc.connection import Call


class Pause(Params):
    """Parameters of ``pause``: with ``now`` running jobs are put back into the queue."""

    now: bool | None = None


class Resume(Params):
    """No parameters."""


class BreakerState(Result):
    """A directory whose jobs do without a model for a while, because models failed for it.

    ``failures`` in a row, the last at ``since`` with the sentence ``why``; after ``until`` the next
    job asks again. Times are seconds since 1970.
    """

    directory: str
    failures: int
    since: float
    until: float
    why: str


class Standing(Result):
    """Since when background work is paused (seconds since 1970), null when it is not.

    ``waiting`` is how many jobs wait or run.
    """

    paused_since: float | None
    waiting: int
    breakers: list[BreakerState]


async def pause(services: Services, _call: Call, params: Pause) -> Standing:
    """Answer ``pause``; prompts go on, and jobs are accepted and kept."""
    return _told(services, await services.jobs.pause(now=bool(params.now)))


async def resume(services: Services, _call: Call, _params: Resume) -> Standing:
    """Answer ``resume``."""
    return _told(services, await services.jobs.resume())


def breakers(standing: Stands) -> list[BreakerState]:
    """Return the open breakers as the wire tells them."""
    return [
        BreakerState(
            directory=row.directory,
            failures=row.failures,
            since=row.since,
            until=row.until,
            why=row.why,
        )
        for row in standing.breakers
    ]


def _told(services: Services, standing: Stands) -> Standing:
    return Standing(
        paused_since=standing.paused_since,
        waiting=services.jobs.unfinished(),
        breakers=breakers(standing),
    )


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
