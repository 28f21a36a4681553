"""Counting what a model uses, and stopping at the caps: a wrapper around any model.

A request is booked at the most that it may cost before it is sent, and corrected by the usage that
came back; where that is far below what was sent and received, the estimate counts. One that surely
cost nothing (refused, busy, never connected) is booked as nought; one that may have (cancelled, cut
off, late) stays at the most.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import anyio
from anyio import to_thread

from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.prices import price
from memd.core.settings import SpendSettings
from memd.model import probe, wire
from memd.model.errors import CapReachedError, ModelError, ModelUnavailableError
from memd.model.port import Ask, Model, Reply, Usage
from memd.state.database import StateUnusableError
from memd.state.tables import Account, Booking, SpendTable, Sum, next_day

_BYTES_PER_TOKEN = 4  # of JSON with English words or code; Chinese has about three
_ABSURD = 8  # times less than the estimate: no tokens are that long
_SETTLE_SECONDS = 0.1  # a slow disk goes on alone; until it is through the booking stands


class Metered:
    """A model whose use is booked in a table and bounded by the caps of ``settings``.

    ``by_runs``: it is a program on the person's own plan. Its runs are bounded, and cost no money
    that could be counted here.
    """

    def __init__(
        self,
        model: Model,
        table: SpendTable,
        settings: SpendSettings,
        clock: Clock,
        *,
        by_runs: bool = False,
    ) -> None:
        self.calls_tools = model.calls_tools
        self._by_runs = by_runs
        self._model = model
        self._table = table
        self._settings = settings
        self._clock = clock

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply. Raises CapReachedError without asking, else what the model raises."""
        booking = await self._reserve(ask)
        heard: list[Usage] = []
        answered, nought = 0, False

        def hear(usage: Usage) -> None:
            heard.append(usage)
            if on_usage is not None:
                on_usage(usage)

        try:
            reply = await self._model.ask(ask, hear)
            answered = len(json.dumps(reply.content)) // _BYTES_PER_TOKEN
            heard = heard or [reply.usage]
        except ModelError as error:
            nought = not error.may_cost
            raise
        finally:
            used = Sum(requests=1) if nought else None
            if heard:
                reported = _believable(sum(heard, Usage()), booking.booked, answered)
                used = self._cost(ask, reported)
            await self._finish(booking, used)
        return reply

    async def _reserve(self, ask: Ask) -> Booking:
        account = Account(ask.kind, ask.project, ask.model)
        now = self._clock.now()
        most = self._most(ask)
        table, settings = self._table, self._settings
        reserve = partial(table.reserve, account, most, settings, now, by_runs=self._by_runs)
        try:
            booking = await to_thread.run_sync(reserve, abandon_on_cancel=True)
        except StateUnusableError as error:
            raise ModelUnavailableError(error.sentence) from error
        if isinstance(booking, str):
            resumes = next_day(now)
            raise CapReachedError(
                ask.kind, booking, resumes.timestamp(), resumes.isoformat(" ", "minutes")
            )
        return booking

    async def _finish(self, booking: Booking, used: Sum | None) -> None:
        if used is None:
            return
        with (
            anyio.CancelScope(shield=True),
            self._clock.move_on_after(_SETTLE_SECONDS),
            suppress(MemdError),
        ):
            await to_thread.run_sync(self._table.finish, booking, used, abandon_on_cancel=True)

    def _most(self, ask: Ask) -> Sum:
        """Return the most that a request may cost: all of it read anew, and the longest answer."""
        tokens = len(wire.encode(ask)) // _BYTES_PER_TOKEN + 1
        cached = probe.CACHE in probe.parts(ask)
        usage = Usage(
            input=0 if cached else tokens,
            output=ask.max_tokens,
            cache_created=tokens if cached else 0,
        )
        return self._cost(ask, usage)

    def _cost(self, ask: Ask, usage: Usage) -> Sum:
        prices = price(ask.model, self._settings.prices)
        used = (usage.input, usage.output, usage.cache_read, usage.cache_created)
        money = 0.0 if self._by_runs else prices.money(*used)
        return Sum(1, *used, money)


def _believable(reported: Usage, booked: Sum, answered: int) -> Usage:
    """Return what a server says was used, with the estimate for what cannot be true of it."""
    sent = booked.input + booked.cache_created
    read = reported.input + reported.cache_read + reported.cache_created
    return replace(
        reported,
        input=reported.input + (sent - read if read * _ABSURD < sent else 0),
        output=answered if reported.output * _ABSURD < answered else reported.output,
    )
