"""From JSON to messages: transcript lines and Messages-API lists. Pure.

Rules of this file
- Of Claude Code's lines only ``user`` and ``assistant`` become messages, and of these neither
  sub-agents' nor meta lines nor summaries of a compaction; every other kind of line is noise and
  changes nothing. Codex's lines are ``codex``'s, Gemini's ``gemini``'s; each line tells by its
  shape whose it is.
- Whose words a text is, is decided here and nowhere else: what stands in a tool result is the
  tool's, whoever carries it; what memd or the client put among the user's words is cut out, and
  what memd's own tools answered is left out.
- No shape crashes: what is not what it should be is passed over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memd.conversation.pieces import (
    ASSISTANT,
    USER,
    RecordedCall,
    TranscriptPiece,
    joined,
    members,
    other_words,
    own_words,
    parse_time,
    string,
)
from memd.core.errors import MemdError
from memd.core.values import Message
from memd.transcripts import codex, gemini
from memd.transcripts import tools as known

_NOISE_MARKS = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")
_SILENT = frozenset(("thinking", "redacted_thinking", "image", "document"))
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_RESULTS = {
    "web_search_tool_result": "web_search",
    "web_fetch_tool_result": "web_fetch",
    "mcp_tool_result": "",
}


class InvalidMessagesError(MemdError):
    """The messages of a request are not a list in the shape of the Messages API."""

    code = -32602
    kind = "invalid_messages"
    hint = "give a list of {role, content}, content a text or a list of blocks"
    exit_status = 2

    def __init__(self, result: str) -> None:
        super().__init__(f"messages must be a list of objects, not {result}", found=result)


@dataclass(slots=True)
class _GrowingMessage:
    """A message that may still grow: the next line can hold its next block."""

    first: TranscriptPiece
    id: str
    texts: list[str] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)


class Assembly:
    """Puts messages together from parsed lines; ask ``messages`` when all lines were added.

    ``recognised`` counts lines of a kind that memd knows, ``strange`` those of them whose content
    has no shape that it knows. ``unnamed`` are the ids of calls whose output came without the call.
    """

    def __init__(self) -> None:
        self._open: list[_GrowingMessage] = []
        self._failed: set[str] = set()
        self._names: dict[str, str] = {}
        self._rollout = codex.Rollout()
        self._chat = gemini.ChatRecord()
        self._strange = 0
        self._first = -1  # the place of the user's first words
        self.recognised = 0
        self.unnamed: set[str] = set()

    @property
    def strange(self) -> int:
        """How many lines of a known kind had an unknown shape."""
        return self._strange + self._rollout.strange + self._chat.strange

    @property
    def spoken(self) -> bool:
        """Whether the user has said something."""
        return self._first >= 0

    def add_line(self, line: Any) -> None:
        """Add one parsed line of a transcript; any other value is passed over."""
        for piece in self._pieces(line):
            self._add(piece)

    def recall(self, line: Any) -> None:
        """Take from a line that was read before only what its tool calls are called.

        Also the first line of a file that is read from further on.
        """
        for piece in self._pieces(line):
            self._name(piece)

    def add(self, role: str, content: Any, like: TranscriptPiece, cwd: str = "") -> None:
        """Add the content of one message; ``like`` has its id, key and time."""
        for piece in self._blocks(role, content, cwd):
            self._add(replace(piece, id=like.id, key=like.key, at=like.at))

    def messages(self, *, from_a_turn: bool = False) -> tuple[Message, ...]:
        """Return what was said, in order; a tool call that failed wrote nothing.

        ``from_a_turn`` leaves out what stands before the user's first words, if there are any.
        """
        return tuple(self._closed(max(0, self._first) if from_a_turn else 0))

    def _pieces(self, line: Any) -> Iterator[TranscriptPiece]:
        """Yield what a line of Codex, Gemini or Claude Code says."""
        if codex.is_line(line):
            self.recognised += 1
            at = parse_time(line.get("timestamp"))
            name = string(line.get("timestamp"))
            for piece in self._rollout.pieces(line):
                yield replace(piece, at=at, id=piece.id or piece.answers or name)
            return
        if gemini.is_line(line):
            self.recognised += 1
            yield from self._chat.pieces(line)
            return
        line = members(line)
        kind, message = line.get("type"), line.get("message")
        if kind == "system" and line.get("subtype") == "compact_boundary":
            self.recognised += 1
        if kind not in (USER, ASSISTANT) or not isinstance(message, dict):
            return
        self.recognised += 1
        if any(line.get(mark) for mark in _NOISE_MARKS):
            return
        name = string(line.get("uuid"))
        key = (string(message.get("id")) if kind == ASSISTANT else "") or name
        at = parse_time(line.get("timestamp"))
        for piece in self._blocks(kind, message.get("content"), string(line.get("cwd"))):
            yield replace(piece, id=name, key=key, at=at)

    def _blocks(self, role: str, content: Any, cwd: str) -> Iterator[TranscriptPiece]:
        """Yield what the content blocks of one message say."""
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = content if isinstance(content, list) else [None]
        result = [_piece(role, block, cwd) for block in map(members, blocks)]
        yield from (piece for piece in result if piece is not None)
        kinds = {str(members(block).get("type")) for block in blocks}
        if result and not any(result) and not kinds & _SILENT:
            self._strange += 1

    def _name(self, piece: TranscriptPiece) -> None:
        if piece.call is not None and piece.call.id:
            self._names[piece.call.id] = piece.call.name
            self.unnamed.discard(piece.call.id)
        if piece.failed:
            self._failed.add(piece.failed)

    def _add(self, piece: TranscriptPiece) -> None:
        """Add a piece to the message that it belongs to, or begin one with it."""
        self._name(piece)
        if piece.answers and piece.answers not in self._names:
            self.unnamed.add(piece.answers)
        last = self._open[-1] if self._open else None
        # The blocks of one line belong together when they are one speaker's; outputs stay apart.
        same = (
            last is not None
            and bool(piece.key)
            and (last.first.key, last.first.origin) == (piece.key, piece.origin)
            and bool(piece.origin)
        )
        if last is None or not same:
            last = _GrowingMessage(piece, piece.id)
            self._open.append(last)
        if piece.origin == USER and piece.text and not self.spoken:
            self._first = len(self._open) - 1
        last.id = piece.id
        last.texts.append(piece.text)
        if piece.call is not None:
            last.calls.append(piece.call)

    def _closed(self, start: int) -> Iterator[Message]:
        """Yield the messages from a place on, without writes of failed calls."""
        for item in self._open[start:]:
            first = item.first
            tool = first.tool or self._names.get(first.answers, "")
            origin = first.origin or known.origin(tool)
            text = "\n\n".join(text for text in item.texts if text)
            if first.answers and known.is_own(tool):
                text = ""
            retained = [call for call in item.calls if call.id not in self._failed or not call.id]
            writes = tuple(path for call in retained for path in call.writes)
            calls = tuple(call.short for call in item.calls if call.short)
            outside = origin in (known.WEB, known.MCP)
            if text or calls or outside or any(call.writes for call in item.calls):
                yield Message(item.id, first.role, text, origin, first.at, writes, calls, tool)


def from_messages(messages: Any) -> tuple[Message, ...]:
    """Return the messages of a Messages-API list; an id is its place when it has none.

    Items and blocks of another shape are passed over. Raises InvalidMessagesError when it is no
    list at all.
    """
    if not isinstance(messages, list | tuple):
        raise InvalidMessagesError(type(messages).__name__)
    assembly = Assembly()
    for number, item in enumerate(messages):
        if isinstance(item, dict) and item.get("role") in (USER, ASSISTANT):
            key = f"message {number}"
            name = string(item.get("id")) or key
            like = TranscriptPiece(
                item["role"], id=name, key=key, at=parse_time(item.get("timestamp"))
            )
            assembly.add(item["role"], item.get("content"), like)
    return assembly.messages()


def _piece(role: str, block: Mapping[str, Any], cwd: str) -> TranscriptPiece | None:
    """Return what a content block says, ``None`` when it is of no kind that says something."""
    kind = string(block.get("type"))
    if kind == "text":
        words = own_words if role == USER else other_words
        return TranscriptPiece(role, words(block.get("text")), role)
    if kind == "tool_result" and role == USER:
        call = string(block.get("tool_use_id"))
        failed = call if block.get("is_error") is True else ""
        return TranscriptPiece(role, joined(block.get("content")), answers=call, failed=failed)
    if kind in _CALLS and role == ASSISTANT:
        server = f"mcp__{string(block.get('server_name'))}__" if kind == "mcp_tool_use" else ""
        name = server + string(block.get("name"))
        given = members(block.get("input"))
        paths = tuple(known.writes(name, given, cwd))
        call_made = RecordedCall(string(block.get("id")), name, known.short(name, given), paths)
        return TranscriptPiece(role, origin=role, call=call_made)
    if kind in _RESULTS and role == ASSISTANT:
        call = string(block.get("tool_use_id"))
        text = joined(block.get("content"))
        return TranscriptPiece(role, text, answers=call or kind, tool=_RESULTS[kind])
    return None
