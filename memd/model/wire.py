"""Encode requests and decode replies of the Messages API. Pure.

``system``, ``tools`` and ``messages`` are sent unchanged, except for parts that the server refuses
(``probe.py``). If it does not support JSON schemas, the schema is described in words at the end.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from memd.base.text import one_line
from memd.model import errors, plain, probe
from memd.model.port import Ask, Block, Reply, ToolCall, Usage

_CAUSE_CHARACTERS = 300
_MOST_TOKENS = 10**12  # of one reply; a larger claim is cut to this
_LONGEST_PAUSE = 24 * 3600.0  # seconds; a server that asks for more is not obeyed
# Statuses of HTTP.
UNAUTHORISED = (401, 403)
_OK = 200
_REDIRECTS = 300
_TIMED_OUT = 408
_TOO_LARGE = 413
_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500
# Messages that a request is too long, of the API itself, llama.cpp, vLLM, SGLang, LM Studio, Ollama
# and LiteLLM.
_TOO_LONG = (
    r"(?i)(prompt|input|request|message)s? (is |are )?(too long|too large)|too many (input )?tokens"
    r"|context[ _-]?(length|window|size|limit)|(exceed|overflow|longer than)\w*.{0,60}context"
    r"|context.{0,30}overflow|maximum (context|prompt|input|number of tokens)"
)


class HttpAnswer(Struct, frozen=True):
    """A server's response: its status, its parsed body or its text, and the seconds to wait."""

    status: int
    payload: Any
    retry_after: float | None = None


def encode(ask: Ask, dropped: Collection[str] = ()) -> bytes:
    """Return a request's body, without the parts ``dropped`` that the server refused before."""
    body: dict[str, Any] = {"model": ask.model, "max_tokens": ask.max_tokens}
    if ask.system:
        body["system"] = ask.system
    if ask.tools:
        body["tools"] = ask.tools
    in_words = ask.schema is not None and probe.FORMAT in dropped
    body["messages"] = _with_described_schema(ask) if in_words else ask.messages
    body |= _extra(ask, dropped)
    if probe.CACHE in dropped:
        body = _without(body, probe.CACHE)
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as a cut transcript may have one
        return json.dumps(body, separators=(",", ":")).encode()


def decode(content: str | bytes) -> Any:
    """Return the value of a JSON text; half a surrogate pair, which is no text, becomes "?".

    Raises ValueError and RecursionError.
    """
    value = json.loads(content)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return value


def reply(payload: Any) -> Reply:
    """Return the reply in a parsed response body. Raises ModelReplyError."""
    blocks, stop = _members(payload)
    return Reply(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        calls=tuple(
            ToolCall(block["id"], block["name"], block.get("input"))
            for block in blocks
            if block["type"] == "tool_use"
        ),
        stop=stop,
        content=tuple(blocks),
        usage=usage(payload),
        model=str(payload.get("model", "")),
    )


def usage(payload: Any) -> Usage:
    """Return the usage that a response body reports; missing numbers are 0."""
    reported = payload.get("usage") if isinstance(payload, Mapping) else None
    counts = reported if isinstance(reported, Mapping) else {}
    return Usage(
        input=count(counts.get("input_tokens")),
        output=count(counts.get("output_tokens")),
        cache_read=count(counts.get("cache_read_input_tokens")),
        cache_created=count(counts.get("cache_creation_input_tokens")),
    )


def failure(answer: HttpAnswer, secrets: Iterable[str] = ()) -> errors.ModelError | None:
    """Return the error that a response reports, ``None`` if it looks like a reply.

    Some servers report errors with the status 200; then the type decides. ``secrets`` are removed
    from the error's words.
    """
    kind, words = _error(answer.payload)
    if _OK <= answer.status < _REDIRECTS:
        if isinstance(answer.payload, str):
            return errors.ModelReplyError(cause="it is not JSON")
        if not kind and not words:
            return None
    cause = tame(words or kind or f"status {answer.status}", secrets)
    return _temporary(answer, kind, cause) or _permanent(answer.status, kind, cause)


def _temporary(answer: HttpAnswer, kind: str, cause: str) -> errors.ModelError | None:
    """Return the error if the server is busy or broken for now, ``None`` for other failures."""
    if answer.status == _TOO_MANY_REQUESTS or kind == "rate_limit_error":
        return errors.ModelBusyError(cause, retry_after=answer.retry_after)
    unavailable = answer.status >= _SERVER_ERRORS or answer.status == _TIMED_OUT
    if unavailable or kind in ("overloaded_error", "api_error", "timeout_error"):
        if re.search(_TOO_LONG, cause):  # some local servers report a long prompt with status 500
            return errors.PromptTooLongError(cause)
        return errors.ModelUnavailableError(cause, retry_after=answer.retry_after)
    return None


def _permanent(status: int, kind: str, cause: str) -> errors.ModelError:
    """Return the error of a request that the server would refuse again."""
    if status in UNAUTHORISED or kind in ("authentication_error", "permission_error"):
        return errors.ModelUnauthorisedError(cause)
    if status == _TOO_LARGE or re.search(_TOO_LONG, f"{kind} {cause}"):
        return errors.PromptTooLongError(cause)
    return errors.ModelRefusedError(status, cause)


def tame(words: str, secrets: Iterable[str]) -> str:
    """Return a server's words on one line, shortened, without the ``secrets`` in them."""
    for secret in secrets:
        if secret:
            words = words.replace(secret, "…")
    printable = "".join(c if c.isprintable() else " " for c in words)
    return one_line(printable, _CAUSE_CHARACTERS)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks to wait, ``None`` for a date or no such header."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= seconds <= _LONGEST_PAUSE:
            return seconds
    return None


def _extra(ask: Ask, dropped: Collection[str]) -> dict[str, Any]:
    """Return the optional members of a request's body without the ``dropped`` parts."""
    extra = {name: value for name, value in ask.extra.items() if name not in dropped}
    if probe.BETWEEN_TOOLS in dropped and probe.THINKING in extra:
        extra[probe.THINKING] = {"type": "disabled"}
    output = dict(extra.pop(probe.OUTPUT, None) or {})
    if probe.EFFORT in dropped:
        output.pop(probe.EFFORT, None)
    if ask.schema is not None and probe.FORMAT not in dropped:
        output[probe.FORMAT] = {"type": "json_schema", "schema": ask.schema}
    return {**extra, probe.OUTPUT: output} if output else extra


def _with_described_schema(ask: Ask) -> list[Block]:
    """Return the messages with a description of the JSON schema at the end of the last one.

    If the last message is not the user's, the description is a message of its own.
    """
    description = {"type": "text", "text": plain.described(ask.schema)}
    *before, last = ask.messages
    if last.get("role") != "user":
        return [*ask.messages, {"role": "user", "content": [description]}]
    content = last["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return [*before, {**last, "content": [*content, description]}]


def _without(value: Any, name: str) -> Any:
    """Return a JSON value without the members ``name`` at any depth."""
    if isinstance(value, Mapping):
        return {key: _without(item, name) for key, item in value.items() if key != name}
    if isinstance(value, list | tuple):
        return [_without(item, name) for item in value]
    return value


def _members(payload: Any) -> tuple[list[dict[str, Any]], str]:
    """Return the blocks and the stop reason in a response body. Raises ModelReplyError."""
    if not isinstance(payload, dict):
        raise errors.ModelReplyError(cause="it is not a JSON object")
    blocks, stop = payload.get("content"), payload.get("stop_reason")
    if not isinstance(blocks, list) or not all(_is_block(block) for block in blocks):
        raise errors.ModelReplyError(cause="its content is not a list of blocks")
    if not isinstance(stop, str):
        raise errors.ModelReplyError(cause="it does not say why it stopped")
    return blocks, stop


def _is_block(block: Any) -> bool:
    """Return whether a value is a content block with the members that its type needs."""
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return False
    members = {"text": ("text",), "tool_use": ("id", "name")}.get(block["type"], ())
    return all(isinstance(block.get(name), str) for name in members)


def count(value: object) -> int:
    """Return a number of tokens from a reply, 0 if it is no number, and at most 10**12."""
    return min(max(0, value), _MOST_TOKENS) if type(value) is int else 0


def _error(payload: Any) -> tuple[str, str]:
    """Return the type and the message of the error in a response body, "" if there is none.

    Servers put the message under ``error``, ``detail`` or ``message``, or send it as plain text.
    """
    if isinstance(payload, str):
        return "", payload
    if not isinstance(payload, Mapping) or "content" in payload:
        return "", ""
    error = payload.get("error", payload.get("detail", payload.get("message", "")))
    if isinstance(error, Mapping):
        texts = (error.get("type", error.get("code")), error.get("message"))
        kind, message = (text if isinstance(text, str) else "" for text in texts)
        return kind, message
    return "", error if isinstance(error, str) else json.dumps(error)
