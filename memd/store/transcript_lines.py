"""From JSON to messages: Claude Code's transcript lines and Messages-API lists. Pure.

Rules of this file
- Only ``user`` and ``assistant`` lines become messages, and of these neither sub-agents' nor meta
  lines nor summaries of a compaction; every other kind of line is noise and changes nothing.
- Whose words a text is, is decided here and nowhere else: what stands in a tool result is the
  tool's, whoever carries it; what memd or the client put among the user's words is cut out.
- No shape crashes: what is not what it should be is passed over.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memd.core import tags
from memd.core.errors import MemdError
from memd.core.values import Message

MEMORY_ROOT = "/memories"  # where the Messages API's memory tool believes its files are
TEXT_CHARACTERS = 256 * 1024  # of one block; a longer one is a paste, and its start tells enough

_USER, _ASSISTANT, _TOOL = "user", "assistant", "tool"
_WRITERS = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
_MEMORY_COMMANDS = ("create", "str_replace", "insert", "delete", "rename")
_NOISE_MARKS = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")


class InvalidMessagesError(MemdError):
    """The messages of a request are not a list in the shape of the Messages API."""

    code = -32602
    kind = "invalid_messages"
    hint = "give a list of {role, content}, content a text or a list of blocks"
    exit_status = 2

    def __init__(self, found: str) -> None:
        super().__init__(f"messages must be a list of objects, not {found}", found=found)


@dataclass(slots=True)
class _Block:
    """One content block: whose words, the text, and what it wrote under which tool-use id."""

    origin: str
    text: str
    writes: list[tuple[str, str]] = field(default_factory=list)
    failed: str = ""


@dataclass(slots=True)
class _Open:
    """A message that may still grow: the next line can hold its next block."""

    key: str
    id: str
    role: str
    origin: str
    at: float | None
    texts: list[str]
    writes: list[tuple[str, str]]


class Assembly:
    """Puts messages together from parsed lines; ask ``messages`` when all lines were added."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._failed: set[str] = set()
        self.recognised = 0

    def add_line(self, line: Any) -> None:
        """Add one parsed line of a Claude Code transcript; any other value is passed over."""
        if not isinstance(line, dict):
            return
        kind = line.get("type")
        if kind == "system" and line.get("subtype") == "compact_boundary":
            self.recognised += 1
        message = line.get("message")
        if kind not in (_USER, _ASSISTANT) or not isinstance(message, dict):
            return
        self.recognised += 1
        if any(line.get(mark) for mark in _NOISE_MARKS):
            return
        self.add(
            kind,
            message.get("content"),
            id=_string(line.get("uuid")),
            key=_string(message.get("id")) if kind == _ASSISTANT else "",
            at=parse_time(line.get("timestamp")),
            cwd=_string(line.get("cwd")),
        )

    def add(
        self,
        role: str,
        content: Any,
        *,
        id: str = "",  # noqa: A002 - the field's name
        key: str = "",
        at: float | None = None,
        cwd: str = "",
    ) -> None:
        """Add the content of one message; ``key`` joins lines that are one message."""
        for block in _blocks(role, content, cwd):
            if block.failed:
                self._failed.add(block.failed)
            last = self._open[-1] if self._open else None
            # The blocks of one user line belong together when they are one speaker's.
            same = last and last.origin == block.origin and last.key == (key or id) != ""
            if not (last and same):
                last = _Open(key or id, id, role, block.origin, at, [], [])
                self._open.append(last)
            last.id = id
            last.texts.append(block.text)
            last.writes += block.writes

    def messages(self) -> tuple[Message, ...]:
        """Return what was said, in order; a tool call that failed wrote nothing."""
        return tuple(self._closed())

    def _closed(self) -> Iterator[Message]:
        for item in self._open:
            text = "\n\n".join(text for text in item.texts if text)
            writes = tuple(path for call, path in item.writes if call not in self._failed)
            if text or item.writes:
                yield Message(item.id, item.role, text, item.origin, item.at, writes)


def from_messages(messages: Any) -> tuple[Message, ...]:
    """Return the messages of a Messages-API list; an id is its place when it has none.

    Items and blocks of another shape are passed over. Raises InvalidMessagesError when it is no
    list at all.
    """
    if not isinstance(messages, list | tuple):
        raise InvalidMessagesError(type(messages).__name__)
    assembly = Assembly()
    for number, item in enumerate(messages):
        if isinstance(item, dict) and item.get("role") in (_USER, _ASSISTANT):
            key = f"message {number}"
            name = _string(item.get("id")) or key
            at = parse_time(item.get("timestamp"))
            assembly.add(item["role"], item.get("content"), id=name, key=key, at=at)
    return assembly.messages()


def parse_time(value: Any) -> float | None:
    """Return seconds since 1970 of an ISO 8601 time, or ``None``; without a zone it is UTC."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        seconds = (
            moment.timestamp()
            if moment.tzinfo
            else datetime.fromisoformat(value + "+00:00").timestamp()
        )
    except (ValueError, OverflowError):
        return None
    return seconds if seconds >= 0 else None


def _blocks(role: str, content: Any, cwd: str) -> Iterator[_Block]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for block in content if isinstance(content, list) else []:
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind == "text":
            text = _clean(block.get("text"))
            yield _Block(role, tags.strip(text).strip() if role == _USER else text.strip())
        elif kind == "tool_result" and role == _USER:
            failed = _string(block.get("tool_use_id")) if block.get("is_error") is True else ""
            yield _Block(_TOOL, _result(block.get("content")), failed=failed)
        elif kind == "tool_use" and role == _ASSISTANT:
            yield _Block(role, "", writes=list(_writes(block, cwd)))


def _result(content: Any) -> str:
    if isinstance(content, str):
        return _clean(content)
    parts = content if isinstance(content, list) else []
    return "\n".join(_clean(part.get("text")) for part in parts if isinstance(part, dict))


def _writes(block: dict[str, Any], cwd: str) -> Iterator[tuple[str, str]]:
    name, given = _string(block.get("name")), block.get("input")
    call = _string(block.get("id"))
    given = given if isinstance(given, dict) else {}
    if name in _WRITERS:
        path = _string(given.get(_WRITERS[name]))
        if path and "\0" not in path:
            yield call, posixpath.normpath(posixpath.join(cwd or "/", path))
    elif name == "memory" and given.get("command") in _MEMORY_COMMANDS:
        path = _string(given.get("path")) or _string(given.get("new_path"))
        yield call, posixpath.normpath(posixpath.join(MEMORY_ROOT, path))
    elif name.startswith("mcp__memd") and name.endswith(("memory_write", "memory_delete")):
        yield call, posixpath.join(MEMORY_ROOT, _string(given.get("path")).lstrip("/"))


def _clean(value: Any) -> str:
    return _string(value)[:TEXT_CHARACTERS]


def _string(value: Any) -> str:
    # JSON may escape half a character, which nothing later can write.
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""
