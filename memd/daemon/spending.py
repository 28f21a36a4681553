"""What models cost today, for status, and which caps are reached."""

from functools import partial

from anyio import to_thread
from msgspec.structs import replace

from memd.base.settings import Settings
from memd.daemon.core import Daemon
from memd.methods.method import Result
from memd.model.configured import COMMAND
from memd.state.spend import Sum


class SpendToday(Result):
    """Today's spending and its cap; ``caps`` has the cap for each kind of work that it stopped.

    ``runs_per_day`` is the cap where a program on the person's own plan is the model, else null.
    """

    used: Sum
    dollars_per_day: float
    caps: dict[str, str]
    runs_per_day: int | None = None


async def today(daemon: Daemon, settings: Settings) -> SpendToday:
    """Return today's spending and the caps that it reached."""
    now = daemon.clock.now()
    used = await to_thread.run_sync(daemon.spent.today, now)
    by_runs = settings.model.provider == COMMAND
    caps = partial(daemon.spent.caps, settings.spend, now, by_runs=by_runs)
    return SpendToday(
        used=replace(used, dollars=round(used.dollars, 6)),
        dollars_per_day=settings.spend.dollars_per_day,
        caps=await to_thread.run_sync(caps),
        runs_per_day=settings.spend.runs_per_day if by_runs else None,
    )
