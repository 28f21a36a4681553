"""Return what the model gets of a request: thinking dropped, old results cleared. Pure.

Rules of this file
- What is asked for with ``context_management`` is done to the prompt alone; tokens are counted and
  cached as it is afterwards, and the reply tells what was done.
- Results are cleared at the request that first passes the trigger and stay cleared in those that
  follow: the conversation is walked from its start, as its requests came. So the prefix changes
  only where something more is cleared.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from tests.support.messages_bound import THINKING, Body, mismatched
from tests.support.messages_cache import blocks, count, tokens
from tests.support.messages_steps import Block

BINDING_BETA = "thinking-binding-controls-2026-08-01"
CLEAR_TOOLS, CLEAR_THINKING = "clear_tool_uses_20250919", "clear_thinking_20251015"
CLEARED = "[an old tool result was here]"
_DEFAULT_TRIGGER: Mapping[str, Any] = {"type": "input_tokens", "value": 100_000}
_DEFAULT_KEEP: Mapping[str, Any] = {"value": 3}


class ShownPrompt(Struct, frozen=True):
    """A request as the model gets it, and the members of the reply that tell of the changes."""

    body: Body
    report: Mapping[str, Any] = field(default_factory=dict)


def shown(body: Body, betas: Collection[str] = ()) -> ShownPrompt:
    """Return what the model gets of a request that was checked."""
    report: dict[str, Any] = {}
    # Where it is not dropped, such thinking has been refused.
    dropped = mismatched(body) if drops_thinking(body) else []
    changed = _without(body, set(dropped))
    if BINDING_BETA in betas:
        report["input_transformations"] = [
            {
                "type": "thinking_dropped",
                "path": f"messages.{place}.content.{number}",
                "reason": "prefix_binding_mismatch",
            }
            for place, number in dropped
        ]
    managed = body.get("context_management")
    if managed is not None:
        applied: list[dict[str, Any]] = []
        for edit in managed.get("edits") or ():
            kind = edit["type"]
            apply = _EDITS.get(kind, _unchanged)
            cleared, number = apply(changed, edit)
            if number:
                saved_tokens = count(changed) - count(cleared)
                facts = {_NUMBERS[kind]: number, "cleared_input_tokens": saved_tokens}
                applied.append({"type": kind, **facts})
            changed = cleared
        report["context_management"] = {"applied_edits": applied}
    return ShownPrompt(changed, report)


def drops_thinking(body: Body) -> bool:
    """Return whether a request has thinking dropped that is not bound to what stands before it."""
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    return binding.get("prefix_mismatch_behavior") == "drop_block"


def _unchanged(body: Body, _: Mapping[str, Any]) -> tuple[Body, int]:
    """Return a request as it is: the edit of an unknown kind clears nothing."""
    return body, 0


def _clear_thinking(body: Body, edit: Mapping[str, Any]) -> tuple[Body, int]:
    """Return a request with the thinking of the last turns alone, and how many turns lost theirs.

    A turn is all that answers one message of a person.
    """
    keep = edit.get("keep") or {"value": 1}
    if keep == "all" or keep.get("type") == "all":
        return body, 0
    turns: list[list[tuple[int, int]]] = [[]]
    for place, message in enumerate(body["messages"]):
        kinds = [block.get("type") for block in blocks(message["content"])]
        if message["role"] == "user" and "tool_result" not in kinds:
            turns.append([])
        turns[-1] += [(place, number) for number, kind in enumerate(kinds) if kind in THINKING]
    thoughtful = [turn for turn in turns if turn]
    old = thoughtful[: max(0, len(thoughtful) - keep["value"])]
    return _without(body, {place for turn in old for place in turn}), len(old)


def _clear_tools(body: Body, edit: Mapping[str, Any]) -> tuple[Body, int]:
    """Return a request without its older tool results, and how many were cleared."""
    cleared = _ToolClearing(body, edit).walk()
    inputs = edit.get("clear_tool_inputs") or ()

    def change(block: Block) -> Block:
        """Return a block with its result or input cleared, if its call is to be cleared."""
        if block.get("type") == "tool_result" and block["tool_use_id"] in cleared:
            return {**block, "content": CLEARED}
        if block.get("type") == "tool_use" and block["id"] in cleared and inputs:
            is_cleared = inputs is True or block["name"] in inputs
            return {**block, "input": {}} if is_cleared else block
        return block

    messages = [
        {**message, "content": [change(block) for block in blocks(message["content"])]}
        for message in body["messages"]
    ]
    if not cleared:
        return body, 0
    return {**body, "messages": messages}, len(cleared)


class _ToolClearing:
    """Walks a conversation as its requests came, and clears whenever the trigger is passed."""

    def __init__(self, body: Body, edit: Mapping[str, Any]) -> None:
        self._body = body
        self._trigger = edit.get("trigger") or _DEFAULT_TRIGGER
        self._keep = (edit.get("keep") or _DEFAULT_KEEP)["value"]  # newest calls
        self._least = (edit.get("clear_at_least") or {"value": 1})["value"]  # tokens to save
        self._excluded = set(edit.get("exclude_tools") or ())
        self._tokens = count({**body, "messages": []})  # of the prompt so far
        self._calls: dict[str, str] = {}  # the tool's name of each call, by the call's id
        self._savings: dict[str, int] = {}  # tokens that clearing a result saves, by the call's id
        self._cleared: set[str] = set()  # ids of calls

    def walk(self) -> set[str]:
        """Return the calls whose results the model does not get."""
        messages = self._body["messages"]
        for place, message in enumerate(messages):
            for block in blocks(message["content"]):
                self._add(block)
            next_role = messages[place + 1]["role"] if place + 1 < len(messages) else ""
            ends_request = (message["role"], next_role) == ("user", "assistant")
            if ends_request or not next_role:
                self._clear()
        return self._cleared

    def _add(self, block: Block) -> None:
        """Count a block: its tokens, its call, and what clearing its result would save."""
        self._tokens += tokens(block)
        if block.get("type") == "tool_use":
            self._calls[block["id"]] = block["name"]
        elif block.get("type") == "tool_result":
            saved = tokens(block) - tokens({**block, "content": CLEARED})
            self._savings[block["tool_use_id"]] = saved

    def _clear(self) -> None:
        """Clear old results, if the trigger is passed and enough is saved."""
        uses = len(self._calls) - len(self._cleared)
        size = uses if self._trigger["type"] == "tool_uses" else self._tokens
        if size <= self._trigger["value"]:
            return
        old = list(self._calls)[: max(0, len(self._calls) - self._keep)]
        savings = {
            call: self._savings[call]
            for call in old
            if call in self._savings
            and call not in self._cleared
            and self._calls[call] not in self._excluded
        }
        if sum(savings.values()) >= self._least:
            self._cleared |= savings.keys()
            self._tokens -= sum(savings.values())


_EDITS = {CLEAR_TOOLS: _clear_tools, CLEAR_THINKING: _clear_thinking}
# The member of a reply that says how many an edit cleared.
_NUMBERS = {CLEAR_TOOLS: "cleared_tool_uses", CLEAR_THINKING: "cleared_thinking_turns"}


def _without(body: Body, gone: set[tuple[int, int]]) -> Body:
    """Return a request without some blocks, and without the messages that had nothing else."""
    if not gone:
        return body
    return {**body, "messages": list(_remaining(body, gone))}


def _remaining(body: Body, gone: set[tuple[int, int]]) -> Iterator[Mapping[str, Any]]:
    """Yield the messages without the blocks that are gone."""
    for place, message in enumerate(body["messages"]):
        content = blocks(message["content"])
        left = [block for number, block in enumerate(content) if (place, number) not in gone]
        if left or not content:
            yield {**message, "content": left}
