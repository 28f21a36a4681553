"""Record which messages of a conversation were sent, and which of their blocks are replaced. Pure.

Rules of this file
- The replacement of a block stays the same once it was sent; later decisions do not change it. The
  exceptions are results that memd clears and thinking that it drops, at the end of a turn.
- Messages are never changed: a message with a replacement is a copy.
- memd gets outlines of messages that are too large for a frame of the socket: an image or a long
  text is represented by its size and hash.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from memd.base.canonical import LEAST_CHARACTERS, THINKING, content_hash, text_of

# What memd decides about a block: it is sent whole, or its beginning with the path of the stored
# rest, or a short text in its place, or not at all.
KEEP, SPILL, CLEAR, DROP = _ACTIONS = ("keep", "spill", "clear", "drop")
_REMOVALS = (CLEAR, DROP)  # these replace an earlier decision, at the end of a turn
_KEPT_WHOLE = {"action": KEEP, "content": "", "path": "", "size": 0}  # a decision without its key
_TEXT_MEMBERS = ("tool_use_id", "content_hash", "action", "content", "path")
_DECISION_TYPES: Mapping[str, type] = {**dict.fromkeys(_TEXT_MEMBERS, str), "size": int}
FRAME_BYTES = 3 * 1024 * 1024  # of messages in a frame of 4 MiB
# Longer strings are replaced in an outline; the first limit with which all messages fit is used.
_CHARACTER_LIMITS = (256 * 1024, 32 * 1024, 4 * 1024)

Message = Mapping[str, Any]
Decision = dict[str, Any]


class SentBlock(NamedTuple):
    """The key of a decision: the id of the call that a block answers, and the block's hash."""

    tool_use_id: str
    content_hash: str


class SentConversation:
    """The decisions about the blocks of a conversation; ``decisions`` are as on the wire."""

    def __init__(self) -> None:
        self.decisions: dict[SentBlock, Decision] = {}
        # The ids of calls with a replaced block: looking them up is quicker than hashing blocks.
        self._replaced_calls: set[str] = set()

    def add_decisions(self, decisions: Iterable[Mapping[str, Any]]) -> None:
        """Add decisions; only clearing and dropping replaces a known one.

        A value that is no complete decision is left out.
        """
        for decision in filter(_is_decision, decisions):
            name = SentBlock(decision["tool_use_id"], decision["content_hash"])
            if name not in self.decisions or decision["action"] in _REMOVALS:
                self.decisions[name] = dict(decision)
                if decision["action"] != KEEP:
                    self._replaced_calls.add(name.tool_use_id)

    def freeze(self, messages: Iterable[Message]) -> None:
        """Decide that results without a decision are sent whole from now on."""
        self.add_decisions({**name._asdict(), **_KEPT_WHOLE} for name, _ in results(messages))

    def with_replacements(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages with their replacements; an unchanged one is the same object."""
        return [self._message_to_send(message) for message in messages]

    def _message_to_send(self, message: Message) -> Message:
        """Return a message with its blocks replaced as memd decided, the same object if none is."""
        blocks = blocks_of(message.get("content"))
        new_blocks = [self._block_to_send(block) for block in blocks]
        if all(map(operator.is_, new_blocks, blocks)):
            return message
        return {**message, "content": [block for block in new_blocks if block is not None]}

    def _block_to_send(self, block: Message) -> Message | None:
        """Return what is sent in place of a block: itself, a copy, or ``None`` to drop it."""
        call_id = block.get("tool_use_id", "")  # "" for thinking, which belongs to no call
        if call_id not in self._replaced_calls:
            return block
        name = _result_key(block) if call_id else _thinking_key(block)
        decision = self.decisions.get(name) if name else None
        if decision is None or decision["action"] == KEEP:
            return block
        if decision["action"] == DROP:
            return None
        # A cache mark on a part of the removed text is moved to the block, which ends there too.
        marked_parts = [part for part in blocks_of(block["content"]) if "cache_control" in part]
        mark = {"cache_control": marked_parts[-1]["cache_control"]} if marked_parts else {}
        return {**mark, **block, "content": decision["content"]}


def apply_compaction(messages: Sequence[Message], answer: Mapping[str, Any]) -> list[Message]:
    """Return a conversation as an answer of ``context.compact`` says.

    These are its messages before ``keep_to``, the answer's own messages, and then those from
    ``keep_from`` on, without the blocks that ``edits`` name.
    """
    dropped = {(edit["message"], edit["block"]) for edit in answer["edits"]}
    edited_places = {place for place, _ in dropped}
    rest = []
    for place in range(answer["keep_from"], len(messages)):
        message = messages[place]
        if place in edited_places:
            blocks = enumerate(message["content"])
            remaining = [block for number, block in blocks if (place, number) not in dropped]
            message = {**message, "content": remaining}
        rest += [message] if message["content"] else []
    return [*messages[: answer["keep_to"]], *answer["messages"], *rest]


def outlines_in_frame(messages: Sequence[Message]) -> list[Message]:
    """Return messages in which the longest strings have only size and hash, so that they fit."""
    shown = list(messages)
    for limit in _CHARACTER_LIMITS:
        shown = [_outline(message, limit) for message in messages]
        if len(msgspec.json.encode(shown)) <= FRAME_BYTES:
            break
    return shown


def last_reply(messages: Sequence[Message]) -> int:
    """Return the place of the newest reply, -1 where there is none."""
    roles = [message.get("role") for message in messages]
    places = (place for place, role in enumerate(roles) if role == "assistant")
    return max(places, default=-1)


def calls_of(messages: Iterable[Message]) -> dict[str, str]:
    """Return the names of the tools that are called in messages, by the ids of the calls."""
    return tools_by_call(
        block for message in messages for block in blocks_of(message.get("content"))
    )


def results(messages: Iterable[Message]) -> Iterator[tuple[SentBlock, Message]]:
    """Yield the results of tools that may be stored, each with its key; errors are left out."""
    for message in messages:
        for block in blocks_of(message.get("content")):
            name = _result_key(block)
            if name is not None and not block.get("is_error"):
                yield name, block


def tools_by_call(blocks: Iterable[Any]) -> dict[str, str]:
    """Return the names of tools by the ids of their calls in some blocks."""
    objects = (block for block in blocks if isinstance(block, Mapping))
    calls = (block for block in objects if block.get("type") == "tool_use")
    return {str(call.get("id")): str(call.get("name")) for call in calls}


def blocks_of(content: Any) -> list[Any]:
    """Return the blocks of a content, none of a plain text."""
    return content if isinstance(content, list) else []


def _result_key(block: Message) -> SentBlock | None:
    """Return the key of a long text result, ``None`` for any other block."""
    if block.get("type") != "tool_result":
        return None
    content = block.get("content")
    if len(text_of(content) or "") < LEAST_CHARACTERS:
        return None
    return SentBlock(block["tool_use_id"], content_hash(content))


def _thinking_key(block: Message) -> SentBlock | None:
    """Return the key of a thinking block, ``None`` for any other block."""
    return SentBlock("", content_hash([block])) if block.get("type") in THINKING else None


def _outline(value: Any, limit: int) -> Any:
    """Return a value with size and hash for long strings; the same object where it has none."""
    if isinstance(value, str):
        if len(value) <= limit:
            return value
        return f"[{len(value)} characters, {sha256(value.encode()).hexdigest()}]"
    if isinstance(value, Mapping):
        items = {name: _outline(item, limit) for name, item in value.items()}
        return value if all(map(operator.is_, items.values(), value.values())) else items
    if isinstance(value, list | tuple):
        listed = [_outline(item, limit) for item in value]
        return value if all(map(operator.is_, listed, value)) else listed
    return value


def _is_decision(value: Any) -> bool:
    """Return whether a value from the daemon is a complete decision about a block."""
    return (
        isinstance(value, Mapping)
        and all(type(value.get(name)) is kind for name, kind in _DECISION_TYPES.items())
        and value["action"] in _ACTIONS
    )
