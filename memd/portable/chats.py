"""Conversations from the data exports of ChatGPT and claude.ai, to be learned from. Pure."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from memd.core.values import Message
from memd.portable.decoding import each, entries, files, moment
from memd.portable.memories import ReadingBuilder
from memd.portable.values import MEMORIES, TEXT_BYTES, ChatSession

_FILE = re.compile(r"(?:.*/)?conversations(?:[^/]*|/[^/]+)\.json")
_TEXTS = frozenset(("text", "multimodal_text"))
_ROLES = {"user": "user", "human": "user", "assistant": "assistant"}
_MANY = f"at most {MEMORIES} conversations with {TEXT_BYTES} bytes are learned from at once"


class _Author(msgspec.Struct):
    role: str


class _Content(msgspec.Struct):
    content_type: str = "text"
    parts: list[Any] | None = None


class _NodeMessage(msgspec.Struct):
    author: _Author
    content: _Content
    create_time: float | None = None
    recipient: str | None = None
    metadata: dict[str, Any] | None = None


class _Node(msgspec.Struct):
    message: _NodeMessage | None = None
    parent: str | None = None


class _ChatMessage(msgspec.Struct):
    sender: str
    uuid: str = ""
    text: str | None = None
    content: list[dict[str, Any]] | None = None
    created_at: str | None = None


class _Conversation(msgspec.Struct):
    """A tree of ChatGPT (``mapping``) or a list of claude.ai (``chat_messages``)."""

    conversation_id: str | None = None
    id: str | None = None
    uuid: str | None = None
    title: str | None = None
    name: str | None = None
    mapping: dict[str, _Node] | None = None
    current_node: str | None = None
    chat_messages: list[_ChatMessage] | None = None


def read(builder: ReadingBuilder) -> None:
    """Gather the conversations of the archive."""
    names = files(builder, ".json")
    chosen = list(filter(_FILE.fullmatch, names)) or list(names)
    for name in sorted(set(names).difference(chosen)):
        builder.leave(name, "it holds no conversations")
    size = 0
    for name in chosen:
        for where, talk in each(builder, name, entries(builder, name)[0], _Conversation):
            messages = tuple(_list(talk) if talk.mapping is None else _branch(talk, talk.mapping))
            key = talk.conversation_id or talk.id or talk.uuid or where
            size += sum(len(message.text.encode()) for message in messages)
            if not any(message.role == "user" for message in messages):
                builder.leave(where, "the person says nothing in it")
            elif len(builder.sessions) >= MEMORIES or size > TEXT_BYTES:
                builder.leave(where, _MANY)
            else:
                builder.sessions.append(ChatSession(key, talk.title or talk.name or "", messages))


def _branch(talk: _Conversation, nodes: dict[str, _Node]) -> Iterator[Message]:
    """Yield the messages from the root of a tree to the node that the person saw last."""
    parents = {node.parent for node in nodes.values()}
    key = talk.current_node or next((key for key in reversed(nodes) if key not in parents), None)
    path: dict[str, _NodeMessage | None] = {}
    while key in nodes and key not in path:  # a damaged tree may be a circle
        path[key] = nodes[key].message
        key = nodes[key].parent
    for name, message in reversed(path.items()):
        if message is None or message.content.content_type not in _TEXTS:
            continue
        hidden = (message.metadata or {}).get("is_visually_hidden_from_conversation")
        if message.recipient in (None, "all") and not hidden:
            text = "\n".join(p for p in message.content.parts or () if isinstance(p, str))
            yield from _message(name, message.author.role, text, message.create_time)


def _list(talk: _Conversation) -> Iterator[Message]:
    for entry in talk.chat_messages or ():
        blocks = [block for block in entry.content or () if block.get("type") == "text"]
        text = "\n".join(str(block.get("text") or "") for block in blocks) or entry.text or ""
        yield from _message(entry.uuid, entry.sender, text, entry.created_at)


def _message(key: str, sender: str, text: str, at: str | float | None) -> Iterator[Message]:
    """Yield a message of the person or the assistant, nothing for any other or an empty one."""
    role = _ROLES.get(sender)
    if role is not None and text.strip():
        yield Message(key, role, text, role, moment(at) or None)
