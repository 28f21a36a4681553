"""A model that says what it is told to: the port of ``model/port.py`` without a server."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import anyio

from memd.model.errors import ModelError
from memd.model.port import Ask, Reply, ToolCall, Usage

HANG = "hang"
Answer = Reply | ModelError | str | Callable[[Ask], Reply]


class ScriptedModel:
    """Answers each request with the next of ``answers``; the last one again when they run out.

    An answer is a reply, a failure to raise, ``HANG``, or a function of the request. ``requested``
    holds the requests.
    """

    calls_tools = True

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = list(answers)
        self.requested: list[Ask] = []

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return, or raise, the next answer."""
        place = min(len(self.requested), len(self._answers) - 1)
        self.requested.append(ask)
        answer = self._answers[place]
        if answer == HANG:
            await anyio.sleep_forever()
        await anyio.lowlevel.checkpoint()
        if isinstance(answer, ModelError):
            raise answer
        reply = answer(ask) if callable(answer) else answer
        if not isinstance(reply, Reply):
            raise TypeError(reply)
        if on_usage is not None:
            on_usage(reply.usage)
        return reply


def says(text: str, *, stop: str = "end_turn", usage: Usage | None = None) -> Reply:
    """Return a reply of words alone."""
    return _reply(text, (), stop, usage)


def calls(
    *wanted: tuple[str, Mapping[str, Any]], first: int = 1, usage: Usage | None = None
) -> Reply:
    """Return a reply that calls tools: pairs of name and input; ids count from ``first``."""
    made = tuple(
        ToolCall(f"toolu_{number}", name, dict(given))
        for number, (name, given) in enumerate(wanted, start=first)
    )
    return _reply("", made, "tool_use", usage)


def _reply(text: str, made: tuple[ToolCall, ...], stop: str, usage: Usage | None) -> Reply:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in made
    ]
    return Reply(text, made, stop, tuple(content), usage or Usage(100, 20), "scripted")
