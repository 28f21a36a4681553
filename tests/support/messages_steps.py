"""The steps of which the script of a scripted Messages server is made.

A reply is said with ``text``, ``tools``, ``structured`` or ``refusal``, a failure with ``Failure``
or ``Raw``; ``Hang``, ``Drip``, ``Cut`` and ``Interrupt`` spoil the delivery of another step.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

if TYPE_CHECKING:
    from tests.support.messages_request import ReceivedMessage

Block = Mapping[str, Any]


class ScriptedReply(Struct, frozen=True):
    """A message of the model: its blocks, why it stopped and what the API tells about a stop.

    A ``tool_use`` block without an ``id`` gets one that is new in the server's life. ``usage``
    replaces members of the usage that the server counts.
    """

    content: tuple[Block, ...]
    stop: str = "end_turn"
    details: Block | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)


class Failure(Struct, frozen=True):
    """An error in the API's own shape; ``kind`` and ``message`` follow from the status if empty.

    ``retry_after`` is sent as a header, in seconds, ``code`` as ``details.error_code``.
    """

    status: int
    message: str = ""
    kind: str = ""
    retry_after: float | None = None
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class Raw(Struct, frozen=True):
    """Any body with any status and content type: an HTML page, half a JSON, a lie."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class Hang(Struct, frozen=True):
    """Nothing is sent until ``release``, until ``seconds`` have passed if given, or for ever.

    It ends at once when the client goes away. ``at`` bytes of the body go out before (``None``:
    not even the status line); afterwards the rest does.
    """

    then: "Deliverable"
    at: int | None = None
    seconds: float | None = None


class Drip(Struct, frozen=True):
    """The body comes in pieces of ``size`` bytes, each after a ``release`` or ``seconds``."""

    step: "Whole"
    size: int = 64
    seconds: float | None = None


class Cut(Struct, frozen=True):
    """The connection is closed early.

    ``at`` counts bytes of the body; below 1 it is a share of the body. ``None`` closes before the
    status line.
    """

    step: "Whole"
    at: float | None = 0.5


class Interrupt(Struct, frozen=True):
    """A stream that ends in an ``error`` event after so many events; no stream gets the failure."""

    step: ScriptedReply
    failure: Failure = field(default_factory=lambda: Failure(529))
    events: int = 3


Whole = ScriptedReply | Failure | Raw | Interrupt
Deliverable = Whole | Drip | Cut
Step = Deliverable | Hang
Answer = Step | Callable[["ReceivedMessage"], "Step"]
Script = Answer | Sequence[Answer]


def text(words: str, *, stop: str = "end_turn") -> ScriptedReply:
    """Return a reply of one text block."""
    return ScriptedReply(({"type": "text", "text": words},), stop)


def tools(*calls: tuple[str, Mapping[str, Any]], say: str = "") -> ScriptedReply:
    """Return a reply that wants tools run, all at once; each is a name and its input."""
    words: tuple[Block, ...] = ({"type": "text", "text": say},) if say else ()
    uses = tuple({"type": "tool_use", "name": name, "input": given} for name, given in calls)
    return ScriptedReply((*words, *uses), "tool_use")


def thinking(thought: str, then: ScriptedReply) -> ScriptedReply:
    """Return a reply that begins with thinking, which the server signs."""
    return replace(then, content=({"type": "thinking", "thinking": thought}, *then.content))


def structured(value: Any) -> ScriptedReply:
    """Return a reply whose text is a value as JSON, as a schema-constrained one is."""
    return text(json.dumps(value, ensure_ascii=False))


def refusal(
    category: str | None = None, explanation: str | None = None, said: str = ""
) -> ScriptedReply:
    """Return a reply that was stopped by the API's classifiers, perhaps in mid-sentence."""
    details = {"type": "refusal", "category": category, "explanation": explanation}
    content: tuple[Block, ...] = ({"type": "text", "text": said},) if said else ()
    return ScriptedReply(content, "refusal", details)


def too_long(tokens: int = 0, most: int = 200_000) -> Failure:
    """Return the failure for a prompt that is too long, without figures if there are none."""
    figures = f": {tokens} tokens > {most} maximum" if tokens else ""
    return Failure(400, f"prompt is too long{figures}")


def html(status: int = 502, title: str = "Bad Gateway") -> Raw:
    """Return the error page of a proxy that stands before the API."""
    page = f"<html><head><title>{status} {title}</title></head><body>{title}</body></html>"
    return Raw(page.encode(), status, "text/html")


def error_with_200(message: str = "not supported") -> Raw:
    """Return an error's body with the status of a success, as some local servers send it."""
    body = {"type": "error", "error": {"type": "api_error", "message": message}}
    return Raw(json.dumps(body).encode())
