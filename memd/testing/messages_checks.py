"""What the Messages API refuses in a request before any model sees it. Pure.

A wrong request must fail in tests as it does in earnest: unknown members, tool results without
their call, too many cache breakpoints, a prompt that is too long.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

from memd.testing.messages_cache import LIFE, MOST_BREAKPOINTS, count
from memd.testing.messages_steps import Failure

NEEDED: Mapping[str, type] = {"model": str, "max_tokens": int, "messages": list}
KNOWN = frozenset(
    (
        *NEEDED,
        "cache_control",
        "container",
        "context_management",
        "diagnostics",
        "inference_geo",
        "mcp_servers",
        "metadata",
        "output_config",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    )
)
_ROLES = ("user", "assistant", "system")


def refused(
    body: Any, *, without: Collection[str] = (), window: int | None = None
) -> Failure | None:
    """Return the failure that a body of POST /v1/messages gets, ``None`` when it is good.

    ``without`` names members, at any depth, that this server does not know; ``window`` is the
    most tokens of a prompt.
    """
    if not isinstance(body, dict):
        return Failure(400, "the request body is not a JSON object")
    checks: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: (f"{path}: Extra inputs are not permitted" for path in _unknown(body, without)),
        lambda: _missing(body),
        lambda: _misshapen(body["messages"]),
        lambda: _unpaired(body["messages"]),
        lambda: _mismarked(body),
        lambda: _too_long(body, window),
    )
    # Each check relies on those before it.
    return next((Failure(400, words) for check in checks for words in check()), None)


def _unknown(body: dict[str, Any], without: Collection[str]) -> Iterator[str]:
    yield from (name for name in body if name not in KNOWN)
    if body.get("stream") and "stream" in without:
        yield "stream"
    yield from _named(body, frozenset(without) - {"stream"}, "")


def _named(value: Any, names: Collection[str], path: str) -> Iterator[str]:
    """Yield where a member with one of some names stands; a tool's input is the tool's own."""
    items: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        items = [(str(name), item) for name, item in value.items()]
        yield from (path + name for name, _ in items if name in names)
        items = [(name, item) for name, item in items if name not in ("input", "input_schema")]
    elif isinstance(value, list):
        items = [(str(place), item) for place, item in enumerate(value)]
    for name, item in items:
        yield from _named(item, names, f"{path}{name}.")


def _missing(body: dict[str, Any]) -> Iterator[str]:
    for name, kind in NEEDED.items():
        if name not in body:
            yield f"{name}: Field required"
        elif not isinstance(body[name], kind):
            yield f"{name}: Input should be a valid {kind.__name__}"
    if body["max_tokens"] < 0:
        yield "max_tokens: Input should be greater than or equal to 0"
    if not isinstance(body.get("tools") or [], list):
        yield "tools: Input should be a valid list"
    if not isinstance(body.get("system") or [], str | list):
        yield "system: Input should be a valid string or list"
    if not body["messages"]:
        yield "messages: at least one message is required"


def _misshapen(messages: list[Any]) -> Iterator[str]:
    for place, message in enumerate(messages):
        where = f"messages.{place}"
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            yield f"{where}.role: Input should be 'user', 'assistant' or 'system'"
        content = message.get("content")
        if not isinstance(content, str | list):
            yield f"{where}.content: Input should be a valid list"
        last = place == len(messages) - 1 and message["role"] == "assistant"
        # Claude Code 2.1.329 sets the effort of what follows with a system message of no content.
        sets = message["role"] == "system" and "output_config" in message
        if not (content or last or sets):
            yield f"{where}: all messages must have non-empty content"
        for number, block in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(block, dict) or "type" not in block:
                yield f"{where}.content.{number}.type: Field required"
            if block["type"] == "text" and not block.get("text"):
                yield f"{where}: text content blocks must be non-empty"


def _unpaired(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Each call of a message is answered in the next, and nothing else is."""
    spoken = [{"content": []}, *(m for m in messages if m["role"] != "system"), {"content": []}]
    for place, (before, after) in enumerate(pairwise(spoken)):
        called = _ids(before, "tool_use", "id")
        answered = _ids(after, "tool_result", "tool_use_id")
        if len(set(called)) < len(called):
            yield "tool_use ids must be unique"
        if missing := [name for name in called if name not in answered]:
            yield f"tool_use ids without tool_result blocks in the next message: {missing[0]}"
        if strange := [name for name in answered if name not in called]:
            yield f"messages.{place}: unexpected tool_use_id in a tool_result: {strange[0]}"


def _mismarked(body: dict[str, Any]) -> Iterator[str]:
    breakpoints = list(_breakpoints(body))
    if len(breakpoints) > MOST_BREAKPOINTS:
        yield f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided"
    lives = [mark.get("ttl") or "5m" for mark in breakpoints]
    for mark, life in zip(breakpoints, lives, strict=True):
        if mark.get("type") != "ephemeral" or life not in LIFE:
            yield "cache_control: Input should be ephemeral with a ttl of '5m' or '1h'"
    if any(LIFE[first] < LIFE[then] for first, then in pairwise(lives)):
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' one"


def _breakpoints(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cache breakpoints in the order of the prompt; the request's own is the last."""
    holders = [*_listed(body.get("tools")), *_listed(body.get("system"))]
    for message in body["messages"]:
        holders += _listed(message.get("content"))
    result = [holder["cache_control"] for holder in holders if holder.get("cache_control")]
    yield from result
    if own := body.get("cache_control"):
        yield own


def _too_long(body: dict[str, Any], window: int | None) -> Iterator[str]:
    if window is not None and (result := count(body)) > window:
        yield f"prompt is too long: {result} tokens > {window} maximum"


def _ids(message: dict[str, Any], kind: str, member: str) -> list[str]:
    blocks = _listed(message["content"])
    return [str(block.get(member)) for block in blocks if block.get("type") == kind]


def _listed(content: Any) -> list[dict[str, Any]]:
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
