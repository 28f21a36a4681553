"""What a run is asked, as a value, and what its tools work on. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from memd.agent.step import Budget, ToolResult
from memd.model.port import Block

LITTLE_THOUGHT: Mapping[str, Any] = {  # for a task that needs no more, as ``extra``
    "thinking": {"type": "between_tools"},
    "output_config": {"effort": "low"},
}


@dataclass(frozen=True, slots=True)
class Task:
    """What a run is asked.

    ``kind``, ``model``, ``system``, ``tools``, ``extra`` and ``project`` go into each request as
    they are; ``messages`` is where the conversation begins. ``runs`` are the tools that may be
    run, whatever the list names. ``seconds`` bounds the run, ``ask_seconds`` one request with its
    ``retries``. ``shown`` are memories whose whole text the messages hold.
    """

    kind: str
    model: str
    messages: tuple[Block, ...]
    tools: tuple[Block, ...]
    runs: frozenset[str]
    system: str | tuple[Block, ...] = ""
    budget: Budget = field(default_factory=Budget)
    seconds: float = 300.0
    ask_seconds: float = 120.0
    retries: int = 2
    project: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    shown: frozenset[str] = frozenset()


class Bench(Protocol):
    """What a run's tools work on, in a worker thread: a workspace, or a single text."""

    @property
    def touched(self) -> tuple[str, ...]:
        """The names of what the run has changed, in the order of the first change."""
        ...

    def call(
        self, name: str, given: Mapping[str, Any], now: float, over: Callable[[], bool]
    ) -> ToolResult:
        """Run one tool call; ``now`` is seconds since 1970, ``over`` says that its time is up.

        Whatever a model sends is answered in words.
        """
        ...
