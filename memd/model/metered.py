"""Count a model's use and stop at the spending caps: a wrapper around any model.

Before a request is sent, the highest amount that it may cost is booked. The booking is then
corrected by the reported usage, or by an estimate if the report is implausibly low. A request that
certainly cost nothing (refused, busy, never connected) is booked as 0. A request that may have cost
something (cut off, timed out) stays booked at the highest amount. Of one that was cancelled only as
much is booked as a model can have written until then, since closing the connection ends it.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import anyio
from anyio import to_thread
from msgspec.structs import replace

from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.base.prices import price
from memd.base.settings import SpendSettings
from memd.base.waiting import waits_outside
from memd.model import probe, wire
from memd.model.errors import CapReachedError, ModelError, ModelUnavailableError
from memd.model.port import Ask, Model, Reply, Usage
from memd.state.database import StateUnusableError
from memd.state.spend import Account, Booking, SpendTable, Sum, next_day

_BYTES_PER_TOKEN = 4  # of JSON with English words or code; Chinese has about three
_IMPLAUSIBLE_FACTOR = 8  # a report that is lower than the estimate by this factor is replaced
_TOKENS_PER_SECOND = 300  # more than any model writes
_FINISH_SECONDS = 0.1  # the longest wait for the correction; it goes on in its thread


class Metered:
    """A model whose use is booked in a table and limited by the caps of ``settings``.

    ``by_runs`` is for a program on the person's own plan: only the number of its runs is limited,
    as their cost is not known.
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
        """Return the reply and book its cost.

        Raises CapReachedError before sending, ModelUnavailableError if the state file cannot be
        used, and the errors of the model.
        """
        booking = await self._reserve(ask)
        usages: list[Usage] = []
        answer_tokens = 0  # an estimate, once there is a reply
        cost_nothing = False

        def record(usage: Usage) -> None:
            """Note a reported usage and pass it on to the caller."""
            usages.append(usage)
            if on_usage is not None:
                on_usage(usage)

        waits_outside()
        begun = self._clock.monotonic()
        written = ask.max_tokens  # at most, if there is no report
        try:
            reply = await self._model.ask(ask, record)
            answer_tokens = len(json.dumps(reply.content)) // _BYTES_PER_TOKEN
            usages = usages or [reply.usage]
        except ModelError as error:
            cost_nothing = not error.may_cost
            raise
        except anyio.get_cancelled_exc_class():
            seconds = self._clock.monotonic() - begun
            written = min(written, int(seconds * _TOKENS_PER_SECOND))
            raise
        finally:
            used = Sum(requests=1) if cost_nothing else self._highest_cost(ask, written)
            if usages:
                plausible = _plausible(sum(usages, Usage()), booking.booked, answer_tokens)
                used = self._cost(ask, plausible)
            await self._finish(booking, used)
        return reply

    async def _reserve(self, ask: Ask) -> Booking:
        """Book the highest amount that a request may cost. Raises CapReachedError."""
        account = Account(ask.kind, ask.project, ask.model)
        now = self._clock.now()
        highest = self._highest_cost(ask, ask.max_tokens)
        table, settings = self._table, self._settings
        reserve = partial(table.reserve, account, highest, settings, now, by_runs=self._by_runs)
        try:
            booking = await to_thread.run_sync(reserve, abandon_on_cancel=True)
        except StateUnusableError as error:
            raise ModelUnavailableError(error.sentence) from error
        if isinstance(booking, str):  # the name of the cap that is reached
            resumes = next_day(now)
            raise CapReachedError(
                ask.kind, booking, resumes.timestamp(), resumes.isoformat(" ", "minutes")
            )
        return booking

    async def _finish(self, booking: Booking, used: Sum) -> None:
        """Correct a booking to what was ``used``."""
        if used == booking.booked:
            return
        # A booking that cannot be corrected stays at the highest amount, which is safe.
        with (
            anyio.CancelScope(shield=True),
            self._clock.move_on_after(_FINISH_SECONDS),
            suppress(MemdError),
        ):
            await to_thread.run_sync(self._table.finish, booking, used, abandon_on_cancel=True)

    def _highest_cost(self, ask: Ask, written: int) -> Sum:
        """Return the cost of a request without any cached token and with a reply so long."""
        tokens = len(wire.encode(ask)) // _BYTES_PER_TOKEN + 1
        if probe.CACHE in probe.parts(ask):  # tokens that go into a cache cost more
            usage = Usage(output=written, cache_created=tokens)
        else:
            usage = Usage(input=tokens, output=written)
        return self._cost(ask, usage)

    def _cost(self, ask: Ask, usage: Usage) -> Sum:
        """Return the numbers of tokens of one request and their price in dollars."""
        prices = price(ask.model, self._settings.prices)
        used = (usage.input, usage.output, usage.cache_read, usage.cache_created)
        money = 0.0 if self._by_runs else prices.money(*used)
        return Sum(1, *used, money)


def _plausible(reported: Usage, booked: Sum, answer_tokens: int) -> Usage:
    """Return the ``reported`` usage, with estimates for implausibly low numbers.

    ``booked`` has the estimate of the input, ``answer_tokens`` is the estimate of the output.
    """
    input_estimate = booked.input + booked.cache_created
    input_report = reported.input + reported.cache_read + reported.cache_created
    if input_report * _IMPLAUSIBLE_FACTOR < input_estimate:
        reported = replace(reported, input=reported.input + input_estimate - input_report)
    if reported.output * _IMPLAUSIBLE_FACTOR < answer_tokens:
        reported = replace(reported, output=answer_tokens)
    return reported
