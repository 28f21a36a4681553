"""What the Messages API refuses of what memd sends, as far as a promise rests on it.

Calls of tools have their results in the next message, thinking stands behind the prefix that it was
made for, marks of the cache are few, and members that need a beta have it.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

Body = Mapping[str, Any]
BETAS = {
    "compaction": "compact-2026-09-04",
    "context_management": "context-management-2025-06-27",
}
_MOST_MARKS = 4
_THINKING = {"thinking": "signature", "redacted_thinking": "data"}
_ROLE_OF_BLOCK = {"tool_result": "user", "tool_use": "assistant"} | dict.fromkeys(
    _THINKING, "assistant"
)


def broken(body: Body, betas: Collection[str] | None = None) -> str:
    """Return which rule a request breaks, "" for none; betas count where they are given."""
    faults = [name for name, beta in BETAS.items() if name in body and beta not in (betas or ())]
    if faults and betas is not None:
        return f"{faults[0]}: Extra inputs are not permitted"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    if "thread" in body:  # the server has the messages before
        return next(_shape(messages), "")
    return next(_shape(messages), "") or next(_pairs(body), "") or next(_bound(body), "")


def blocks(content: Any) -> list[dict[str, Any]]:
    """Return the blocks of a content; a text is one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or [])


def signed(body: Body, reply: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the blocks of a reply, its thinking signed for all that stands before it."""
    before = [*_walk(body)]
    result = []
    for block in reply:
        name = _THINKING.get(block["type"])
        mark = {name: _signature(before, block)} if name and name not in block else {}
        result.append({**block, **mark})
        before.append(("assistant", result[-1]))
    return result


def _shape(messages: Sequence[Any]) -> Iterator[str]:
    for place, message in enumerate(messages):
        where = f"messages.{place}"
        if message.get("role") not in ("user", "assistant", "system"):
            yield f"{where}.role: Input should be 'user', 'assistant' or 'system'"
        content = message.get("content")
        if not isinstance(content, str | list):
            yield f"{where}.content: Input should be a valid list"
        is_last = place == len(messages) - 1
        may_be_empty = message["role"] == "system" or (is_last and message["role"] == "assistant")
        if not content and not may_be_empty:
            yield f"{where}: all messages must have non-empty content"
        for block in blocks(content):
            if _ROLE_OF_BLOCK.get(block["type"], message["role"]) != message["role"]:
                yield f"{where}: `{block['type']}` blocks are not allowed here"
            if block["type"] == "text" and not block["text"].strip():
                yield f"{where}: text content blocks must be non-empty"
    if next(m["role"] for m in messages if m["role"] != "system") != "user":
        yield "messages: the first message must be the user's"


def _pairs(body: Body) -> Iterator[str]:
    """Yield calls without results in the next message, and results without their calls."""
    waiting: set[str] = set()
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks(message["content"]))
        else:
            turns.append((message["role"], blocks(message["content"])))
    for _, turn in turns:
        results = [block["tool_use_id"] for block in turn if block["type"] == "tool_result"]
        if waiting - {*results}:
            yield f"`tool_use` ids without tool_result: {sorted(waiting)}"
        if {*results} - waiting or len({*results}) < len(results):
            yield f"unexpected tool_use_id: {results}"
        calls = [block["id"] for block in turn if block["type"] == "tool_use"]
        if len({*calls}) < len(calls):
            yield "`tool_use` ids must be unique"
        waiting = {*calls}
    if waiting:
        yield "the last turn has calls without tool_result"
    marks = json.dumps([body.get("system"), body["messages"]]).count('"cache_control": {')
    if marks > _MOST_MARKS:
        yield f"a maximum of {_MOST_MARKS} blocks with cache_control may be provided"


def _bound(body: Body) -> Iterator[str]:
    """Yield thinking behind another prefix than that which it was made for."""
    before: list[tuple[str, Any]] = []
    for role, block in _walk(body):
        name = _THINKING.get(block["type"])
        is_bound = "-5-5" in str(body.get("model"))
        if name and is_bound and block.get(name) != _signature(before, block):
            yield "thinking is bound to a different conversation (prefix_binding_mismatch)"
        before.append((role, block))


def _walk(body: Body) -> Iterator[tuple[str, dict[str, Any]]]:
    for message in body["messages"]:
        for block in blocks(message["content"]):
            yield message["role"], block


def _signature(before: Sequence[tuple[str, Any]], block: Mapping[str, Any]) -> str:
    plain = _plain([*before, block.get("thinking", "")])
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return a value without its marks of the cache."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if k != "cache_control" and v is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
