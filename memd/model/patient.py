"""Retry requests, and send them one at a time: wrappers around any model."""

from collections.abc import Callable

import anyio
from msgspec.structs import replace

from memd.model.errors import ModelBusyError, ModelUnavailableError
from memd.model.port import Ask, Model, Reply, Usage

_FIRST_PAUSE = 0.5  # seconds; doubles with each try


class Patient:
    """A model that retries after a pause if the server was busy or unavailable.

    ``first_pause`` (seconds) is used if the server does not say how long to wait; it doubles.
    """

    def __init__(self, model: Model, first_pause: float = _FIRST_PAUSE) -> None:
        self.calls_tools = model.calls_tools
        self._model = model
        self._first_pause = first_pause

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply within ``ask.seconds`` for all tries and pauses together.

        Raises the error of the last try, or ModelUnavailableError after that time.
        """
        end = anyio.current_time() + ask.seconds
        pause = self._first_pause
        retries_left = ask.retries
        try:
            with anyio.fail_after(ask.seconds):
                while True:
                    seconds = max(0.001, end - anyio.current_time())
                    request = replace(ask, seconds=seconds, retries=0)
                    try:
                        return await self._model.ask(request, on_usage)
                    except (ModelBusyError, ModelUnavailableError) as error:
                        wait = pause if error.retry_after is None else error.retry_after
                        if retries_left <= 0 or anyio.current_time() + wait >= end:
                            raise
                    retries_left -= 1
                    pause *= 2
                    await anyio.sleep(wait)
        except TimeoutError:
            raise overdue(ask.seconds) from None


class InTurn:
    """A model that gets one request at a time; waiting does not count towards a request's time."""

    def __init__(self, model: Model, turn: anyio.Lock) -> None:
        self.calls_tools = model.calls_tools
        self._model = model
        self._turn = turn

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply, after all earlier requests have ended. Raises ModelError."""
        async with self._turn:
            return await self._model.ask(ask, on_usage)


def overdue(seconds: float) -> ModelUnavailableError:
    """Return the error of a request that got no reply within so many seconds."""
    return ModelUnavailableError(f"no answer within {seconds:.3g} s", may_cost=True)
