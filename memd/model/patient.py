"""Trying again, and taking turns: wrappers around any model."""

from collections.abc import Callable
from dataclasses import replace

import anyio

from memd.model.errors import ModelBusyError, ModelUnavailableError
from memd.model.port import Ask, Model, Reply, Usage

_FIRST_PAUSE = 0.5  # seconds; doubles with each try


class Patient:
    """A model that asks again, after a pause, when the server was busy or in trouble.

    ``first_pause`` (seconds) counts where the server does not say how long to wait.
    """

    def __init__(self, model: Model, first_pause: float = _FIRST_PAUSE) -> None:
        self.calls_tools = model.calls_tools
        self._model = model
        self._first_pause = first_pause

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply within ``ask.seconds``, tries and pauses together.

        Raises what the last try raised, and ModelUnavailableError at the end of the time.
        """
        end = anyio.current_time() + ask.seconds
        pause = self._first_pause
        left = ask.retries
        try:
            with anyio.fail_after(ask.seconds):
                while True:
                    seconds = max(0.001, end - anyio.current_time())
                    try:
                        return await self._model.ask(
                            replace(ask, seconds=seconds, retries=0), on_usage
                        )
                    except (ModelBusyError, ModelUnavailableError) as error:
                        wait = pause if error.retry_after is None else error.retry_after
                        if left <= 0 or anyio.current_time() + wait >= end:
                            raise
                    left -= 1
                    pause *= 2
                    await anyio.sleep(wait)
        except TimeoutError:
            raise overdue(ask.seconds) from None


class InTurn:
    """A model that answers one request after the other; waiting costs none of a request's time."""

    def __init__(self, model: Model, turn: anyio.Lock) -> None:
        self.calls_tools = model.calls_tools
        self._model = model
        self._turn = turn

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply. Raises what the model raises."""
        async with self._turn:
            return await self._model.ask(ask, on_usage)


def overdue(seconds: float) -> ModelUnavailableError:
    """Return the failure of a request that had no answer in its time."""
    return ModelUnavailableError(f"no answer within {seconds:.3g} s", may_cost=True)
