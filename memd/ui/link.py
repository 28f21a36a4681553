"""What the page asks the daemon: a connection for each request, many questions at once on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from memd import __version__
from memd.client.errors import AnswerTimeoutError
from memd.client.launch import asynchronous
from memd.core.errors import MemdError

if TYPE_CHECKING:
    from memd.client.launch import AsyncClient

NAME = "memctl ui"
ANSWER_SECONDS = 30.0
_ABSENT = (-32601, 1001)


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A call of a method. A failure of one that is ``optional`` spoils nothing but its own part."""

    method: str
    params: Mapping[str, Any]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why an optional question has no answer.

    ``absent``: what it is about is not there, or this daemon has no such method.
    """

    sentence: str
    hint: str = ""
    absent: bool = False


@dataclass(frozen=True, slots=True)
class SocketLink:
    """The way to the daemon. ``environment`` holds what a client forwards."""

    socket: str
    environment: Mapping[str, str]

    def connection(self) -> "AsyncClient":
        """Return a connection that is to be entered."""
        return asynchronous(self.socket, self.environment, name=NAME, version=__version__)

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Call one method. Raises what ``answers`` raises."""
        return (await self.answers({"": MethodCall(method, params)}))[""]

    async def answers(self, questions: Mapping[str, MethodCall]) -> dict[str, Any]:
        """Return the answers by the names of the questions, which are asked together.

        Raises RemoteError and DaemonUnavailableError for the first that is not optional, and
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
