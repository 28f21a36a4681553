"""spend: what models used and cost, and which caps are reached."""

from functools import partial
from typing import Annotated, Literal, TypeVar

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from memd.api.method import Result, method
from memd.api.services import Services
from memd.core.settings import Settings
from memd.model.configured import COMMAND
from memd.rpc.connection import Call
from memd.state.tables import SpendRow, Sum

U = TypeVar("U", bound=Sum)


class SpendToday(Result):
    """Today's spending and its cap; ``caps`` has the cap for each kind of work that it stopped.

    ``runs_per_day`` is the cap where a program on the person's own plan is the model, else null.
    """

    used: Sum
    dollars_per_day: float
    caps: dict[str, str]
    runs_per_day: int | None = None


class Spending(Result):
    """What models used, in ``rows`` by day (newest first) or by another column (dearest first)."""

    days: int
    by: str
    rows: tuple[SpendRow, ...]
    total: Sum
    today: SpendToday


@method("spend", "read")
async def spend(
    services: Services,
    _call: Call,
    *,
    days: Annotated[int, msgspec.Meta(ge=1, le=400)] = 7,
    by: Literal["day", "kind", "project", "model"] = "day",
    kind: Annotated[str, msgspec.Meta(max_length=100)] = "",
) -> Spending:
    """What models used and cost in the last ``days``, by day, kind, project or model.

    Today is one of the days. With ``kind`` only that kind of work counts.
    """
    settings, _ = await services.store.settings(None)
    now = services.clock.now()
    rows = await to_thread.run_sync(services.spent.summary, days, by, now, kind)
    return Spending(
        days=days,
        by=by,
        rows=tuple(_rounded(row) for row in rows),
        total=_rounded(sum(rows, Sum())),
        today=await today(services, settings),
    )


async def today(services: Services, settings: Settings) -> SpendToday:
    """Return today's spending and the caps that it reached."""
    now = services.clock.now()
    used = await to_thread.run_sync(services.spent.today, now)
    by_runs = settings.model.provider == COMMAND
    caps = partial(services.spent.caps, settings.spend, now, by_runs=by_runs)
    return SpendToday(
        used=_rounded(used),
        dollars_per_day=settings.spend.dollars_per_day,
        caps=await to_thread.run_sync(caps),
        runs_per_day=settings.spend.runs_per_day if by_runs else None,
    )


def _rounded(used: U) -> U:
    """Return a sum with its dollars rounded to six digits."""
    return replace(used, dollars=round(used.dollars, 6))


METHODS = (spend,)
