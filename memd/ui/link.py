"""The page's calls to the daemon: several at once, on a connection of their own."""

from collections.abc import Mapping
from typing import Any

import anyio
from msgspec import Struct

from memd import __version__
from memd.base.errors import MemdError
from memd.client.errors import AnswerTimeoutError
from memd.client.launch import asynchronous

ANSWER_SECONDS = 30.0
_CALLS = 16  # in flight; the daemon refuses more than 32 of a connection


class MethodCall(Struct, frozen=True):
    """A call of a method; if an ``optional`` one fails, the rest of the page is still shown."""

    method: str
    params: Mapping[str, Any]
    optional: bool = False


class SocketLink(Struct, frozen=True):
    """Calls the daemon at ``socket``. ``environment`` holds what a client forwards."""

    socket: str
    environment: Mapping[str, str]

    async def answers(self, calls: Mapping[str, MethodCall]) -> dict[str, Any]:
        """Make calls together; return the result of each by its name, or its error."""
        results: dict[str, Any] = {}
        slots = anyio.CapacityLimiter(_CALLS)
        link = asynchronous(self.socket, self.environment, name="memctl ui", version=__version__)
        async with link as client:

            async def make(name: str, call: MethodCall) -> None:
                try:
                    async with slots:
                        results[name] = await client.call(call.method, call.params)
                except MemdError as error:
                    results[name] = error

            with anyio.move_on_after(ANSWER_SECONDS):
                async with anyio.create_task_group() as group:
                    for name, call in calls.items():
                        group.start_soon(make, name, call)
        return {
            name: results.get(name, AnswerTimeoutError(call.method, ANSWER_SECONDS))
            for name, call in calls.items()
        }
