"""The page's calls to the daemon: a connection for each request, with several calls at once."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
from msgspec import Struct

from memd import __version__
from memd.client.errors import AnswerTimeoutError
from memd.client.launch import asynchronous
from memd.core.errors import MemdError

if TYPE_CHECKING:
    from memd.client.launch import AsyncClient

NAME = "memctl ui"
ANSWER_SECONDS = 30.0
_ABSENT = (-32601, 1001)


class MethodCall(Struct, frozen=True):
    """A call of a method; if an ``optional`` one fails, the rest of the page is still shown."""

    method: str
    params: Mapping[str, Any]
    optional: bool = False


class Unanswered(Struct, frozen=True):
    """Why an optional call failed.

    ``absent``: its object was not found, or this daemon has no such method.
    """

    sentence: str
    hint: str = ""
    absent: bool = False


class SocketLink(Struct, frozen=True):
    """Calls the daemon at ``socket``. ``environment`` holds what a client forwards."""

    socket: str
    environment: Mapping[str, str]

    def connection(self) -> "AsyncClient":
        """Return a new connection, a context manager."""
        return asynchronous(self.socket, self.environment, name=NAME, version=__version__)

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Call one method. Raises what ``answers`` raises."""
        return (await self.answers({"": MethodCall(method, params)}))[""]

    async def answers(self, questions: Mapping[str, MethodCall]) -> dict[str, Any]:
        """Make the calls together and return their results by name, or Unanswered.

        Raises RemoteError and DaemonUnavailableError if a call that is not optional fails, and
        AnswerTimeoutError.
        """
        if not questions:
            return {}
        results: dict[str, Any] = {}
        failed: list[MemdError] = []
        async with self.connection() as client:

            async def ask(name: str, question: MethodCall) -> None:
                try:
                    results[name] = await client.call(question.method, question.params)
                except MemdError as error:
                    if not question.optional:
                        failed.append(error)
                    results[name] = _unanswered(error)

            with anyio.move_on_after(ANSWER_SECONDS):
                async with anyio.create_task_group() as group:
                    for name, question in questions.items():
                        group.start_soon(ask, name, question)
        if failed:
            raise failed[0]
        missing = [question for name, question in questions.items() if name not in results]
        if missing:
            raise AnswerTimeoutError(missing[0].method, ANSWER_SECONDS)
        return results


def _unanswered(error: MemdError) -> Unanswered:
    return Unanswered(error.sentence, error.hint, error.code in _ABSENT)
