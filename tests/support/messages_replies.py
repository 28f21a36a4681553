"""Turn a scripted step into bytes of the Messages API: message, event stream, error. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.messages_cache import tokens
from tests.support.messages_steps import Block, Failure, ScriptedReply

_KINDS = {
    400: ("invalid_request_error", "the request is not valid"),
    401: ("authentication_error", "invalid bearer token"),
    402: ("billing_error", "the credit balance is too low"),
    403: ("permission_error", "this key may not use the model"),
    404: ("not_found_error", "not found"),
    408: ("timeout_error", "the request took too long"),
    413: ("request_too_large", "request exceeds the maximum size"),
    422: ("invalid_request_error", "unprocessable"),
    429: ("rate_limit_error", "this request would exceed the rate limit"),
    500: ("api_error", "internal server error"),
    504: ("timeout_error", "the request timed out"),
    529: ("overloaded_error", "overloaded"),
}
_DELTA_CHARACTERS = 24


def failure_body(failure: Failure, request_id: str) -> bytes:
    """Return an error as the API words it."""
    kind, message = _KINDS.get(failure.status, ("api_error", "error"))
    error: dict[str, Any] = {"type": failure.kind or kind, "message": failure.message or message}
    if failure.code:
        error["details"] = {"error_code": failure.code}
    return dump({"type": "error", "error": error, "request_id": request_id})


def finished(reply: ScriptedReply, number: int, limit: int) -> ScriptedReply:
    """Return a reply with its tool-use ids, cut where the request's ``max_tokens`` end."""
    content: list[Block] = []
    tokens_left = limit
    for index, scripted_block in enumerate(reply.content):
        block = dict(scripted_block)
        if block.get("type") == "tool_use" and "id" not in block:
            block = {"type": "tool_use", "id": f"toolu_{number:06}_{index}", **block}
        cost = tokens(block)
        if cost > tokens_left:
            if block.get("type") == "text":
                # One token is four bytes; the block's own overhead is not the model's.
                words = str(block["text"]).encode()[: tokens_left * 4].decode(errors="ignore")
                content.append({**block, "text": words})
            return ScriptedReply(tuple(content), "max_tokens", usage=reply.usage)
        tokens_left -= cost
        content.append(block)
    return ScriptedReply(tuple(content), reply.stop, reply.details, reply.usage)


def message(
    reply: ScriptedReply, number: int, model: str, usage: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the whole message object of a reply; ``usage`` is what the input cost."""
    return {
        "id": f"msg_{number:06}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [dict(block) for block in reply.content],
        "stop_reason": reply.stop,
        "stop_sequence": None,
        "stop_details": reply.details,
        "usage": {**usage, "output_tokens": output_tokens(reply), **reply.usage},
    }


def output_tokens(reply: ScriptedReply) -> int:
    """Return what a reply counts as; never nothing, as with the API."""
    return max(1, sum(tokens(block) for block in reply.content))


def events(whole: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the server-sent events of a message, in the order of the API."""
    usage = {**whole["usage"], "output_tokens": 1}
    empty: dict[str, Any] = {
        "content": [],
        "stop_reason": None,
        "stop_details": None,
        "usage": usage,
    }
    yield event("message_start", message={**whole, **empty})
    yield event("ping")
    for index, block in enumerate(whole["content"]):
        start, deltas = _start_and_deltas(block)
        yield event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    delta = {name: whole[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    final_usage = {
        name: value
        for name, value in whole["usage"].items()
        if isinstance(value, int) or name == "iterations"
    }
    report = {name: whole[name] for name in ("context_management",) if name in whole}
    yield event("message_delta", delta=delta, usage=final_usage, **report)
    yield event("message_stop")


def event(kind: str, **members: Any) -> bytes:
    """Return one server-sent event."""
    return b"event: " + kind.encode() + b"\ndata: " + dump({"type": kind, **members}) + b"\n\n"


def error_event(failure: Failure, request_id: str) -> bytes:
    """Return the event with which a stream fails."""
    return b"event: error\ndata: " + failure_body(failure, request_id) + b"\n\n"


def dump(value: Any) -> bytes:
    """Return JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict).encode()


def _start_and_deltas(block: Block) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as its stream begins with it, and the deltas that complete it."""
    kind = block.get("type")
    if kind == "text":
        parts = _cut(str(block["text"]))
        return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in parts]
    if kind == "tool_use":
        # The API opens the input with an empty piece; an empty input is that piece alone.
        tool_input = dump(block["input"]).decode() if block["input"] else ""
        parts = ["", *_cut(tool_input)]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        return {**block, "input": {}}, deltas
    if kind == "thinking":
        parts = _cut(str(block["thinking"]))
        deltas = [{"type": "thinking_delta", "thinking": part} for part in parts]
        signature = {"type": "signature_delta", "signature": block.get("signature", "")}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
    if kind == "compaction":
        delta = {"type": "compaction_delta", "content": block["content"]}
        return {**block, "content": None}, [{**delta, "encrypted_content": None}]
    return dict(block), []


def _cut(words: str) -> list[str]:
    """Return a text in pieces, as the API streams it."""
    starts = range(0, len(words), _DELTA_CHARACTERS)
    return [words[start : start + _DELTA_CHARACTERS] for start in starts]
