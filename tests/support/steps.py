"""The steps of which the script of ``messages_server`` is made, and a request as it came."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec import field as struct_field


class ScriptedReply(Struct, frozen=True):
    """A message of the model; ``usage`` replaces members of the usage that it comes with."""

    content: tuple[Mapping[str, Any], ...]
    stop: str = "end_turn"
    usage: Mapping[str, Any] = struct_field(default_factory=dict)


class Failure(Struct, frozen=True):
    """An error in the API's own shape; ``retry_after`` is sent as a header, in seconds."""

    status: int
    message: str = "no"
    retry_after: float | None = None


class Raw(Struct, frozen=True):
    """Any body with any status and content type: an HTML page, half a JSON, a lie."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = struct_field(default_factory=dict)


Whole = ScriptedReply | Failure | Raw


class Drip(Struct, frozen=True):
    """The body comes in pieces of ``size`` bytes, each after ``seconds`` or a ``release``."""

    step: Whole
    size: int = 64
    seconds: float | None = None


class Cut(Struct, frozen=True):
    """The connection is closed after a share of the body, ``None``: before the status line."""

    step: Whole
    at: float | None = 0.5


class Hang(Struct, frozen=True):
    """Nothing is sent until ``release``, or ``seconds``; ``at`` bytes of the body go out before."""

    then: Whole
    at: int | None = None
    seconds: float | None = None


Step = Whole | Drip | Cut | Hang
Answer = Step | Callable[["ReceivedMessage"], Step]
Script = Answer | Sequence[Answer]


def text(words: str, *, stop: str = "end_turn") -> ScriptedReply:
    """Return a reply of one text block."""
    return ScriptedReply(({"type": "text", "text": words},), stop)


def structured(value: Any) -> ScriptedReply:
    """Return a reply whose text is a value as JSON, as a schema-constrained one is."""
    return text(json.dumps(value, ensure_ascii=False))


def tools(*calls: tuple[str, Mapping[str, Any]], say: str = "") -> ScriptedReply:
    """Return a reply that wants tools run, all at once; each is a name and its input."""
    words = [{"type": "text", "text": say}] if say else []
    uses = [{"type": "tool_use", "name": name, "input": given} for name, given in calls]
    return ScriptedReply((*words, *uses), "tool_use")


@dataclass
class ReceivedMessage:
    """What came over the wire; ``headers`` have lower-case names.

    ``status`` is that of the answer. ``wait`` returns ``answered``, ``cut`` (by the script) or
    ``gone`` (the client left).
    """

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int = 0
    end_of: str = ""
    _ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @cached_property
    def json(self) -> Any:
        """The parsed body; ``None`` where it is no JSON."""
        with suppress(ValueError, RecursionError):
            return json.loads(self.body)

    @property
    def route(self) -> str:
        """The path without its query."""
        return self.path.partition("?")[0]

    @property
    def betas(self) -> frozenset[str]:
        """The betas of the request's header."""
        return frozenset(self.headers.get("anthropic-beta", "").replace(",", " ").split())

    @property
    def key(self) -> str:
        """The credential that came along, without its scheme; "" where there was none."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return bearer or self.headers.get("x-api-key", "")

    @property
    def last_text(self) -> str:
        """All text of the last message, tool results included."""
        return "\n".join(_texts(self.json["messages"][-1]["content"]))

    def end(self, how: str) -> None:
        """Note how it ended; the first ending stands."""
        self.end_of = self.end_of or how
        self._ended.set()

    def wait(self, seconds: float = 60.0) -> str:
        """Return how it ended, "" when it has not after so many seconds. Blocks."""
        self._ended.wait(seconds)
        return self.end_of


def _texts(content: Any) -> Iterator[str]:
    for block in [{"text": content}] if isinstance(content, str) else content or []:
        if "text" in block:
            yield block["text"]
        yield from _texts(block.get("content"))
