"""Read conversations from data exports of ChatGPT and claude.ai, to learn from them. Pure."""

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
    """Add the conversations of the source to ``builder.sessions``."""
    names = files(builder, ".json")
    chosen = list(filter(_FILE.fullmatch, names)) or list(names)
    for name in sorted(set(names).difference(chosen)):
        builder.leave(name, "it holds no conversations")
    size = 0
    for name in chosen:
        for where, chat in each(builder, name, entries(builder, name)[0], _Conversation):
            if chat.mapping is None:
                messages = tuple(_listed_messages(chat))
            else:
                messages = tuple(_branch_messages(chat, chat.mapping))
            key = chat.conversation_id or chat.id or chat.uuid or where
            size += sum(len(message.text.encode()) for message in messages)
            if not any(message.role == "user" for message in messages):
                builder.leave(where, "the person says nothing in it")
            elif len(builder.sessions) >= MEMORIES or size > TEXT_BYTES:
                builder.leave(where, _MANY)
            else:
                builder.sessions.append(ChatSession(key, chat.title or chat.name or "", messages))


def _branch_messages(chat: _Conversation, nodes: dict[str, _Node]) -> Iterator[Message]:
    """Yield the messages of a ChatGPT tree, from its root to the node that the person saw last.

    If the export does not name that node, it is the last one without children.
    """
    parents = {node.parent for node in nodes.values()}
    key = chat.current_node or next((key for key in reversed(nodes) if key not in parents), None)
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
            yield from _as_message(name, message.author.role, text, message.create_time)


def _listed_messages(chat: _Conversation) -> Iterator[Message]:
    """Yield the messages of a claude.ai list."""
    for entry in chat.chat_messages or ():
        blocks = [block for block in entry.content or () if block.get("type") == "text"]
        text = "\n".join(str(block.get("text") or "") for block in blocks) or entry.text or ""
        yield from _as_message(entry.uuid, entry.sender, text, entry.created_at)


def _as_message(key: str, sender: str, text: str, at: str | float | None) -> Iterator[Message]:
    """Yield the message if it has text and is the person's or the assistant's, else nothing."""
    role = _ROLES.get(sender)
    if role is not None and text.strip():
        yield Message(key, role, text, role, moment(at) or None)
