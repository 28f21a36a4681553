"""Find what the Messages API refuses in a request, before any model sees it. Pure.

A wrong request must fail in tests as it does in earnest: unknown members, tool results without
their call, too many cache breakpoints, thinking behind a changed prefix, a prompt that is too long.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

from tests.support.messages_bound import COMPACTION, THINKING, mismatch, wrong_compaction
from tests.support.messages_cache import LIFE, MOST_BREAKPOINTS, blocks, count
from tests.support.messages_edits import (
    BINDING_BETA,
    CLEAR_THINKING,
    CLEAR_TOOLS,
    drops_thinking,
    shown,
)
from tests.support.messages_memory import THREAD_BETA
from tests.support.messages_steps import Failure, too_long

NEEDED: Mapping[str, type] = {"model": str, "max_tokens": int, "messages": list}
KNOWN = frozenset(
    (
        *NEEDED,
        "cache_control",
        "compaction",
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
        "thread",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    )
)
COMPACT_BETA = "compact-2026-09-04"
BETAS = {
    "compaction": COMPACT_BETA,
    "context_management": "context-management-2025-06-27",
    "thread": THREAD_BETA,
}
MOST_MESSAGES = 100_000
_ROLES = ("user", "assistant", "system")
# The role of messages that may have such blocks.
_ROLE_OF_BLOCK = {
    "tool_result": "user",
    "tool_use": "assistant",
    **dict.fromkeys(THINKING, "assistant"),
}
_EDITS = (CLEAR_TOOLS, CLEAR_THINKING, "compact_20260112")
_INCOMPATIBLE = ("context_management", "stop_sequences")  # with a request for a compaction
_OBJECTS = ("context_management", "diagnostics", "output_config", "thinking", "tool_choice")
_INCOMPLETE = "the last turn has calls without results"


def refused(
    body: Any,
    *,
    without: Collection[str] = (),
    window: int | None = None,
    betas: Collection[str] = (),
) -> Failure | None:
    """Return the failure that a body of POST /v1/messages gets, ``None`` when it is good.

    ``without`` names members, at any depth, that this server does not know; ``window`` is the
    most tokens of a prompt, ``betas`` are those of the request's header.
    """
    if not isinstance(body, dict):
        return Failure(400, "the request body is not a JSON object")
    checks: tuple[Callable[[], Iterator[str | Failure]], ...] = (
        lambda: (f"{n}: Extra inputs are not permitted" for n in _unknown(body, without, betas)),
        lambda: _missing(body),
        lambda: _misshapen(body["messages"]),
        lambda: _mismanaged(body),
        lambda: _uncompactable(body, betas),
        lambda: _unpaired(body["messages"]),
        lambda: _mismarked(body),
        lambda: _unbound(body, betas),
        lambda: _too_long(body, window),
    )
    # Each check relies on those before it, so that the first fault ends the search.
    fault = next((fault for check in checks for fault in check()), None)
    return Failure(400, fault) if isinstance(fault, str) else fault


def _unknown(
    body: dict[str, Any], without: Collection[str], betas: Collection[str]
) -> Iterator[str]:
    """Yield the members of a request that the API does not know, or not without a beta."""
    for name in body:
        lacks_beta = name in BETAS and BETAS[name] not in betas
        if name not in KNOWN or lacks_beta:
            yield name
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
    """Yield a sentence for each member that is missing or of the wrong kind."""
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
    if len(body["messages"]) > MOST_MESSAGES:
        yield f"messages: at most {MOST_MESSAGES} messages are permitted"


def _misshapen(messages: list[Any]) -> Iterator[str]:
    """Yield a sentence for each message or block of a wrong shape."""
    for place, message in enumerate(messages):
        where = f"messages.{place}"
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            yield f"{where}.role: Input should be 'user', 'assistant' or 'system'"
        content = message.get("content")
        if not isinstance(content, str | list):
            yield f"{where}.content: Input should be a valid list"
        is_prefill = place == len(messages) - 1 and message["role"] == "assistant"
        # Claude Code 2.1.329 sets the effort of what follows with a system message of no content.
        sets_effort = message["role"] == "system" and "output_config" in message
        if not (content or is_prefill or sets_effort):
            yield f"{where}: all messages must have non-empty content"
        for number, block in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(block, dict) or "type" not in block:
                yield f"{where}.content.{number}.type: Field required"
            if block["type"] == "text" and not str(block.get("text") or "").strip():
                yield f"{where}: text content blocks must be non-empty"
            if message["role"] != _ROLE_OF_BLOCK.get(block["type"], message["role"]):
                yield f"{where}.content.{number}: a {block['type']} of role {message['role']}"
    spoken = next((m for m in messages if m["role"] != "system"), None)
    if spoken and spoken["role"] != "user" and _kinds(spoken)[:1] != [COMPACTION]:
        yield "messages: the first message must have the role 'user'"


def _unpaired(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each call without a result in the next turn, and the other way round."""
    turns: list[dict[str, Any]] = [{"role": "", "content": []}]
    for message in messages:
        if message["role"] == turns[-1]["role"]:  # messages of one role in a row are one turn
            turns[-1]["content"] += blocks(message["content"])
        elif message["role"] != "system":
            turns.append({"role": message["role"], "content": blocks(message["content"])})
    turns.append({"role": "", "content": []})
    all_calls = [call for turn in turns for call in _ids(turn, "tool_use", "id")]
    if len(set(all_calls)) < len(all_calls):
        yield "tool_use ids must be unique"
    for place, (before, after) in enumerate(pairwise(turns)):
        calls = _ids(before, "tool_use", "id")
        results = _ids(after, "tool_result", "tool_use_id")
        are_results = [kind == "tool_result" for kind in _kinds(after)]
        if len(set(results)) < len(results):
            yield "each tool_use must have a single tool_result"
        if are_results != sorted(are_results, reverse=True):
            yield f"messages.{place}: tool_result blocks must come before other content"
        if missing := [call for call in calls if call not in results]:
            yield f"tool_use ids without tool_result blocks in the next message: {missing[0]}"
        if unexpected := [call for call in results if call not in calls]:
            yield f"messages.{place}: unexpected tool_use_id in a tool_result: {unexpected[0]}"


def _mismarked(body: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each wrong cache mark."""
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


def _uncompactable(body: dict[str, Any], betas: Collection[str]) -> Iterator[str | Failure]:
    """Yield what is wrong with a request for a compaction, or with a compaction block."""
    messages = body["messages"]
    compaction = body.get("compaction")
    if COMPACT_BETA not in betas and any(COMPACTION in _kinds(m) for m in messages):
        yield f"messages: compaction blocks need the beta {COMPACT_BETA}"
    if wrong := wrong_compaction(messages):
        yield wrong
    if compaction is None:  # the request asks for none
        return
    if not isinstance(compaction, dict) or compaction.get("type") != "summarize":
        yield "compaction.type: Input should be 'summarize'"
    members = [name for name in _INCOMPATIBLE if body.get(name)]
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        members.append("tool_choice")
    if (body.get("output_config") or {}).get("format") is not None:
        members.append("output_config.format")
    yield from (f"{name}: not permitted together with compaction" for name in members)
    last = [message for message in messages if message["role"] != "system"][-1]
    if last["role"] == "assistant" and "tool_use" in _kinds(last):
        yield Failure(400, _INCOMPLETE, code="compaction_incomplete_turn")


def _mismanaged(body: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each wrong member of the context management."""
    for name in _OBJECTS:
        if not isinstance(body.get(name) or {}, dict):
            yield f"{name}: Input should be an object"
    edits = (body.get("context_management") or {}).get("edits") or []
    kinds = [edit.get("type") if isinstance(edit, dict) else None for edit in edits]
    for number, kind in enumerate(kinds):
        where = f"context_management.edits.{number}"
        if kind not in _EDITS or kinds.index(kind) != number:
            yield f"{where}.type: Input should be one of {_EDITS}, once"
        for name in ("trigger", "keep", "clear_at_least"):
            if not _is_amount(edits[number].get(name), may_be_all=kind == CLEAR_THINKING):
                yield f"{where}.{name}: Input should be a type with a value"
    if CLEAR_THINKING in kinds[1:]:
        yield f"context_management.edits: {CLEAR_THINKING} must be the first"


def _is_amount(value: Any, *, may_be_all: bool) -> bool:
    """Return whether a member of an edit is absent, a number of something, or "all"."""
    if isinstance(value, dict) and isinstance(value.get("value"), int):
        return value["value"] >= 0 and "type" in value
    return value is None or (may_be_all and value in ("all", {"type": "all"}))


def _unbound(body: dict[str, Any], betas: Collection[str]) -> Iterator[str | Failure]:
    """Yield the reasons why the binding of thinking blocks is refused."""
    binding = (body.get("thinking") or {}).get("block_binding")
    if binding is not None and BINDING_BETA not in betas:
        yield f"thinking.block_binding: needs the beta {BINDING_BETA}"
    behavior = (binding or {}).get("prefix_mismatch_behavior")
    if behavior not in (None, "error", "drop_block"):
        yield "thinking.block_binding.prefix_mismatch_behavior: Input should be error or drop_block"
    if not drops_thinking(body) and (wrong := mismatch(body)):
        yield wrong


def _too_long(body: dict[str, Any], window: int | None) -> Iterator[Failure]:
    """Yield a failure if the request does not fit into the model's window."""
    if window is not None and (result := count(shown(body).body)) > window:
        yield too_long(result, window)


def _kinds(message: dict[str, Any]) -> list[Any]:
    """Return the types of a message's blocks."""
    return [block.get("type") for block in blocks(message["content"])]


def _ids(message: dict[str, Any], kind: str, member: str) -> list[str]:
    """Return the ids that blocks of one kind have in a member."""
    blocks = _listed(message["content"])
    return [str(block.get(member)) for block in blocks if block.get("type") == kind]


def _listed(content: Any) -> list[dict[str, Any]]:
    """Return the blocks of a content, none of a plain text."""
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict)]
