"""The page's calls to the daemon: a connection for each request, with several calls at once."""

from collections.abc import Mapping
from typing import Any

import anyio
from msgspec import Struct

from memd import __version__
from memd.base.errors import MemdError
from memd.client.errors import AnswerTimeoutError
from memd.client.launch import asynchronous

NAME = "memctl ui"
ANSWER_SECONDS = 30.0
_CALLS = 16  # in flight; the daemon refuses more than 32 of a connection
_ABSENT = (-32601, 1001)  # the codes of errors: the method or the object does not exist


class MethodCall(Struct, frozen=True):
    """A call of a method; if an ``optional`` one fails, the rest of the page is still shown."""

    method: str
    params: Mapping[str, Any]
    optional: bool = False


class Unanswered(Struct, frozen=True):
    """Why an optional call failed."""

    sentence: str
    hint: str = ""
    absent: bool = False  # whether the object was not found, or this daemon has no such method


class SocketLink(Struct, frozen=True):
    """Calls the daemon at ``socket``. ``environment`` holds what a client forwards."""

    socket: str
    environment: Mapping[str, str]

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Call one method. Raises what ``answers`` raises."""
        return (await self.answers({"": MethodCall(method, params)}))[""]

    async def answers(self, calls: Mapping[str, MethodCall]) -> dict[str, Any]:
        """Make the calls together and return their results by name, or Unanswered.

        Raises the error of a call that is not optional, and AnswerTimeoutError.
        """
        if not calls:
            return {}
        results: dict[str, Any] = {}
        errors: list[MemdError] = []  # of calls that are not optional
        slots = anyio.CapacityLimiter(_CALLS)
        link = asynchronous(self.socket, self.environment, name=NAME, version=__version__)
        async with link as client:

            async def make(name: str, call: MethodCall) -> None:
                try:
                    async with slots:
                        results[name] = await client.call(call.method, call.params)
                except MemdError as error:
                    if not call.optional:
                        errors.append(error)
                    absent = error.code in _ABSENT
                    results[name] = Unanswered(error.sentence, error.hint, absent)

            with anyio.move_on_after(ANSWER_SECONDS):
                async with anyio.create_task_group() as group:
                    for name, call in calls.items():
                        group.start_soon(make, name, call)
        if errors:
            raise errors[0]
        missing = [call.method for name, call in calls.items() if name not in results]
        if missing:
            raise AnswerTimeoutError(missing[0], ANSWER_SECONDS)
        return results
