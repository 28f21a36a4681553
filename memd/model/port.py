"""The interface to a language model: requests, replies and their usage. Pure.

Messages, tools and content blocks have the shapes of the Messages API and are passed on unchanged:
if the bytes of a prefix that a client has sent before differ, its prompt cache is lost.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from memd.base.settings import Settings

Block = Mapping[str, Any]
LOCAL = "local"  # the name of the engine without a model


class Usage(Struct, frozen=True):
    """The number of tokens of a request; ``input`` does not count cached tokens."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_created: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum of two usages."""
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_created + other.cache_created,
        )


class ToolCall(Struct, frozen=True):
    """A tool call of the model; ``input`` is not checked against the tool's schema."""

    id: str
    name: str
    input: Any


class Ask(Struct, frozen=True):
    """One request to a model, in the form of the Messages API.

    ``kind`` is the kind of work (``recall``, ``extract``, ``dream``, ``notes``, ``compact``,
    ``progress``). ``seconds`` limits it with all its retries. ``schema`` asks for JSON of this
    shape; a server without that feature gets it as words. ``extra`` are further members of the
    request, dropped if a server refuses them. The cost is booked on the memory directory
    ``project``.
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


class Reply(Struct, frozen=True):
    """A reply: its text, its tool calls, why it stopped, and its blocks to send back.

    ``stop`` is the API's stop reason (``end_turn``, ``tool_use``, ``max_tokens``, ``refusal``, …).
    """

    text: str
    calls: tuple[ToolCall, ...]
    stop: str
    content: tuple[Block, ...]
    usage: Usage
    model: str


class Model(Protocol):
    """A model. All failures are ModelError of ``model/errors.py``.

    A model without ``calls_tools`` accepts and returns only text; agents use it with one request
    (``agent/single_shot.py``).
    """

    @property
    def calls_tools(self) -> bool:
        """Whether it accepts tools, blocks and cache marks."""
        ...

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply; ``on_usage`` is called with its usage. Cancelling ends the request."""
        ...


class ModelSource(Protocol):
    """Returns the model that the settings name."""

    def for_(self, settings: Settings) -> Model | None:
        """Return the model, ``None`` if none is configured; does not wait."""
        ...

    def name(self, settings: Settings, kind: str) -> str:
        """Return the model's name for a kind of work, "" if it is not used for that."""
        ...
