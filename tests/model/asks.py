"""What the tests of this room share: requests, and a model that does as it is told."""

from collections.abc import Callable, Sequence
from typing import Any

from memd.model.port import Ask, Reply, Usage

USED = Usage(input=100, output=10, cache_read=1000, cache_created=50)


def ask(**members: Any) -> Ask:
    """Return a small request with some members of its own."""
    plain: dict[str, Any] = {
        "kind": "recall",
        "model": "claude-sonnet-5-5",
        "messages": ({"role": "user", "content": "hello"},),
        "max_tokens": 100,
        "seconds": 60.0,
        "project": "/m",
    }
    return Ask(**(plain | members))


def reply(text: str = "hi", usage: Usage = USED) -> Reply:
    """Return a reply of one text."""
    return Reply(text, (), "end_turn", ({"type": "text", "text": text},), usage, "m")


class ToldModel:
    """A model that answers, one after the other, with replies, exceptions and awaited calls."""

    calls_tools = True

    def __init__(self, steps: Sequence[Any]) -> None:
        self.steps = list(steps)
        self.requested: list[Ask] = []

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Do the next step."""
        self.requested.append(ask)
        step = self.steps.pop(0)
        if callable(step):
            step = await step()
        if isinstance(step, Exception):
            raise step
        assert isinstance(step, Reply)
        if on_usage is not None:
            on_usage(step.usage)
        return step
