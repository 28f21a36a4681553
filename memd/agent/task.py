"""Describe the task of a run, and the interface of the object that its tools work on. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from memd.agent.step import DENIED, Budget, ToolResult
from memd.model.port import Block

LITTLE_THOUGHT: Mapping[str, Any] = {  # for a task that needs no more, as ``extra``
    "thinking": {"type": "between_tools"},
    "output_config": {"effort": "low"},
}


class Task(Struct, frozen=True):
    """The task of a run: its messages, tools, model, budget and time limits.

    ``kind``, ``model``, ``system``, ``tools``, ``schema``, ``extra`` and ``project`` go into each
    request unchanged; ``messages`` begin the conversation. ``runs`` names the tools that may be
    run, even if ``tools`` lists more. ``seconds`` bounds the run, ``ask_seconds`` one request with
    its ``retries``. ``shown`` has the paths of memories whose whole text is in the messages.
    """

    kind: str
    model: str
    messages: tuple[Block, ...]
    tools: tuple[Block, ...]
    runs: frozenset[str]
    system: str | tuple[Block, ...] = ""
    budget: Budget = field(default_factory=Budget)
    schema: Mapping[str, Any] | None = None
    seconds: float = 300.0
    ask_seconds: float = 120.0
    retries: int = 2
    project: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    shown: frozenset[str] = frozenset()


class Bench(Protocol):
    """The object on which a run's tools work, in a worker thread, such as a workspace."""

    @property
    def touched(self) -> tuple[str, ...]:
        """The names of the files that the run has changed, in the order of the first change."""
        ...

    def call(
        self, name: str, given: Mapping[str, Any], now: float, over: Callable[[], bool]
    ) -> ToolResult:
        """Run one tool call; ``now`` is seconds since 1970, ``over`` says whether its time is up.

        An invalid call is answered with a text, not an exception.
        """
        ...


class NoTools:
    """The tools of a run that has none: every call is refused."""

    touched: tuple[str, ...] = ()

    def call(
        self, _name: str, _given: Mapping[str, Any], _now: float, _over: Callable[[], bool]
    ) -> ToolResult:
        """Refuse a call."""
        return ToolResult("No tool is run here: answer in words.", DENIED)
