"""Read conversations from data exports of ChatGPT and claude.ai, to learn from them. Pure."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from memd.core.values import Message
from memd.portable.decoding import each, entries, files, seconds_of
from memd.portable.memories import ReadingBuilder
from memd.portable.values import MEMORIES, TEXT_BYTES, ChatSession

_CHAT_FILE = re.compile(r"(?:.*/)?conversations(?:[^/]*|/[^/]+)\.json")
_TEXT_TYPES = frozenset(("text", "multimodal_text"))
_ROLES = {"user": "user", "human": "user", "assistant": "assistant"}
_TOO_MANY_CHATS = (
    f"at most {MEMORIES} conversations with {TEXT_BYTES} bytes are learned from at once"
)


class _Author(msgspec.Struct):
    """A message's author."""

    role: str


class _Content(msgspec.Struct):
    """A message's content; parts that are not strings are no text."""

    content_type: str = "text"
    parts: list[Any] | None = None


class _NodeMessage(msgspec.Struct):
    """A message of ChatGPT; ``recipient`` is ``all`` unless it goes to a tool."""

    author: _Author
    content: _Content
    create_time: float | None = None
    recipient: str | None = None
    metadata: dict[str, Any] | None = None


class _Node(msgspec.Struct):
    """A node of ChatGPT's tree of messages."""

    message: _NodeMessage | None = None
    parent: str | None = None


class _ChatMessage(msgspec.Struct):
    """A message of claude.ai."""

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
    # If no name is that of a file with chats, all files are read.
    chat_files = list(filter(_CHAT_FILE.fullmatch, names)) or list(names)
    for name in sorted(set(names).difference(chat_files)):
        builder.leave_out(name, "it holds no conversations")
    size = 0  # of all messages, in bytes
    for name in chat_files:
        for where, chat in each(builder, name, entries(builder, name)[0], _Conversation):
            if chat.mapping is None:
                messages = tuple(_listed_messages(chat))
            else:
                messages = tuple(_branch_messages(chat, chat.mapping))
            chat_id = chat.conversation_id or chat.id or chat.uuid or where
            size += sum(len(message.text.encode()) for message in messages)
            if not any(message.role == "user" for message in messages):
                builder.leave_out(where, "the person says nothing in it")
            elif len(builder.sessions) >= MEMORIES or size > TEXT_BYTES:
                builder.leave_out(where, _TOO_MANY_CHATS)
            else:
                title = chat.title or chat.name or ""
                builder.sessions.append(ChatSession(chat_id, title, messages))


def _branch_messages(chat: _Conversation, nodes: dict[str, _Node]) -> Iterator[Message]:
    """Yield the messages of a ChatGPT tree, from its root to the node that the person saw last.

    If the export does not name that node, it is the last one without children.
    """
    parents = {node.parent for node in nodes.values()}
    last_leaf = next((key for key in reversed(nodes) if key not in parents), None)
    key = chat.current_node or last_leaf
    path: dict[str, _NodeMessage | None] = {}  # from the last node to the root
    while key in nodes and key not in path:  # a damaged tree may be a circle
        path[key] = nodes[key].message
        key = nodes[key].parent
    for node_id, message in reversed(path.items()):
        if message is None or message.content.content_type not in _TEXT_TYPES:
            continue
        is_hidden = (message.metadata or {}).get("is_visually_hidden_from_conversation")
        if message.recipient in (None, "all") and not is_hidden:
            parts = message.content.parts or ()  # only strings are text
            text = "\n".join(part for part in parts if isinstance(part, str))
            yield from _as_message(node_id, message.author.role, text, message.create_time)


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
        yield Message(key, role, text, role, seconds_of(at) or None)
