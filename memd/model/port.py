"""The port to a language model: what is asked, what comes back, what it cost. Pure.

Messages, tools and content blocks have the shapes of the Messages API and are passed through
untouched: a prefix that a client has sent before must go out as the same bytes, or its prompt
cache is lost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from memd.core.settings import Settings

Block = Mapping[str, Any]
LOCAL = "local"  # what the engine without a model is called


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply as the server counts them; ``input`` leaves out the cached ones."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_created: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum of two."""
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_created + other.cache_created,
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants run; ``input`` is whatever it sent."""

    id: str
    name: str
    input: Any


@dataclass(frozen=True, slots=True)
class Ask:
    """One request.

    ``kind`` says what it is spent on (``recall``, ``extract``, ``dream``, ``notes``, ``compact``,
    ``progress``).
    ``seconds`` bounds it with all its retries. ``schema`` asks for JSON of a shape; a server that
    cannot promise it is asked in words. ``extra`` are further members of the request, dropped where
    a server refuses them. ``project`` is the memory directory that the spending is booked on.
    """

    kind: str
    model: str
    messages: tuple[Block, ...]
    max_tokens: int
    seconds: float
    system: str | tuple[Block, ...] = ""
    tools: tuple[Block, ...] = ()
    schema: Mapping[str, Any] | None = None
    retries: int = 0
    project: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer: its text, the tools it wants, why it stopped, and its blocks to send back.

    ``stop`` is the API's stop reason (``end_turn``, ``tool_use``, ``max_tokens``, ``refusal``, …).
    """

    text: str
    calls: tuple[ToolCall, ...]
    stop: str
    content: tuple[Block, ...]
    usage: Usage
    model: str


class Model(Protocol):
    """Whatever answers. All failures are ModelError of ``model/errors.py``.

    One that does not ``calls_tools`` takes requests of text alone and answers with text: it is
    asked in the form of a single shot (``agent/single_shot.py``).
    """

    @property
    def calls_tools(self) -> bool:
        """Whether it takes tools, blocks and marks for a cache."""
        ...

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply. Cancelling it ends the request; ``on_usage`` hears what is spent."""
        ...


class ModelSource(Protocol):
    """Where the model that the settings name comes from."""

    def for_(self, settings: Settings) -> Model | None:
        """Return the model, or ``None`` where none is configured; waits for nothing."""
        ...

    def name(self, settings: Settings, kind: str) -> str:
        """Return the model's name for a kind of work, "" where it is not one for that."""
        ...
