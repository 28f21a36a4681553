"""From JSON to pieces: transcript lines and Messages-API lists. Pure.

Rules of this file
- Of Claude Code's lines only ``user`` and ``assistant`` speak, and of these neither sub-agents' nor
  meta lines nor summaries of a compaction, of which the size alone counts; compact boundaries and
  titles are events. Every other kind of line is noise and changes nothing. Codex's lines are
  ``codex``'s, Gemini's ``gemini``'s; each line tells by its shape whose it is.
- Whose words a text is, is decided here and nowhere else: what stands in a tool result is the
  tool's, whoever carries it; what memd or the client put among the user's words is cut out.
- No shape crashes: what is not what it should be is passed over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from memd.conversation.history import counted, estimate
from memd.conversation.pieces import (
    ASSISTANT,
    BOUNDARY,
    SIZE,
    TITLE,
    USER,
    RecordedCall,
    TranscriptPiece,
    joined,
    members,
    other_words,
    own_words,
    parse_time,
    recorded,
    string,
)
from memd.core.errors import MemdError
from memd.transcripts import codex, gemini
from memd.transcripts import tools as known

_UNSPOKEN = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
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


class PieceReader:
    """Turns the parsed lines of one transcript, in order, into pieces.

    ``recognised`` counts lines of a kind that memd knows, ``strange`` those of them whose content
    has no shape that it knows. ``sub_agent`` says that the file is a sub-agent's: nothing in it
    speaks.
    """

    def __init__(self) -> None:
        self._rollout = codex.Rollout()
        self._chat = gemini.ChatRecord()
        self._strange = 0
        self._spoken = self._sidechain = False
        self._title, self._own_title = "", False
        self.recognised = 0

    @property
    def strange(self) -> int:
        """How many lines of a known kind had an unknown shape."""
        return self._strange + self._rollout.strange + self._chat.strange

    @property
    def sub_agent(self) -> bool:
        """Whether the lines so far are a sub-agent's."""
        own = self._sidechain and not self._spoken
        return own or self._rollout.sub_agent or self._chat.sub_agent

    def pieces(self, line: Any) -> tuple[TranscriptPiece, ...]:
        """Return what a parsed line says; of any other value, nothing."""
        try:
            return tuple(self._read(line))
        except RecursionError:  # nested deeper than any client writes
            return ()

    def _read(self, line: Any) -> Iterator[TranscriptPiece]:
        """Yield what a line of Codex, Gemini or Claude Code says."""
        if codex.is_line(line):
            self.recognised += 1
            yield from self._rollout.pieces(line)
        elif gemini.is_line(line):
            self.recognised += 1
            yield from self._chat.pieces(line)
        elif isinstance(line, dict):
            kind = line.get("type")
            if kind in (USER, ASSISTANT) and isinstance(line.get("message"), dict):
                self.recognised += 1
                yield from self._said(kind, line)
            elif kind == "system" and line.get("subtype") == "compact_boundary":
                self.recognised += 1
                at = parse_time(line.get("timestamp"))
                yield TranscriptPiece(USER, id=string(line.get("uuid")), at=at, event=BOUNDARY)
            elif kind == "custom-title":
                yield from self._named(string(line.get("customTitle")).strip(), own=True)
            elif kind == "ai-title":
                yield from self._named(string(line.get("aiTitle")).strip(), own=False)

    def _said(self, role: str, line: Mapping[str, Any]) -> Iterator[TranscriptPiece]:
        """Yield what a line of the user or the assistant says."""
        if line.get("isSidechain"):
            self._sidechain = True
            return
        self._spoken = True
        message = line["message"]
        name = string(line.get("uuid"))
        key = (string(message.get("id")) if role == ASSISTANT else "") or name
        at, context = parse_time(line.get("timestamp")), counted(message.get("usage"))
        content = message.get("content")
        if any(line.get(mark) for mark in _UNSPOKEN):
            yield TranscriptPiece(role, id=name, key=key, tokens=estimate(content), event=SIZE)
            return
        for piece in self._blocks(role, content, string(line.get("cwd"))):
            yield replace(piece, id=name, key=key, at=at, context=context)

    def _blocks(self, role: str, content: Any, cwd: str) -> Iterator[TranscriptPiece]:
        """Yield what the content blocks of one message say."""
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = [members(block) for block in content] if isinstance(content, list) else [{}]
        result = [_piece(role, block, cwd) for block in blocks]
        yield from result
        kinds = {str(block.get("type")) for block in blocks}
        if result and all(piece.event for piece in result) and not kinds & _SILENT:
            self._strange += 1

    def _named(self, title: str, *, own: bool) -> Iterator[TranscriptPiece]:
        """Yield a new title; once the person gave one, the client's own are none."""
        if title and own >= self._own_title:
            if title != self._title:
                yield TranscriptPiece(USER, title, event=TITLE)
            self._title, self._own_title = title, own


def message_pieces(messages: Any) -> tuple[TranscriptPiece, ...]:
    """Return what a Messages-API list says; an id is an item's own or ``message N``, its place.

    Items and blocks of another shape are passed over. Raises InvalidMessagesError when it is no
    list at all.
    """
    if not isinstance(messages, list | tuple):
        raise InvalidMessagesError(type(messages).__name__)
    reader = PieceReader()
    pieces: list[TranscriptPiece] = []
    for number, item in enumerate(map(members, messages)):
        role = item.get("role")
        name = string(item.get("uuid")) or string(item.get("id")) or f"message {number}"
        line = {"uuid": name, "timestamp": item.get("timestamp"), "message": item}
        unspoken = role not in (USER, ASSISTANT)
        pieces += reader.pieces({**line, "type": USER if unspoken else role, "isMeta": unspoken})
    return tuple(pieces)


def _piece(role: str, block: Mapping[str, Any], cwd: str) -> TranscriptPiece:
    """Return what a content block says; of a kind that says nothing its size."""
    kind, tokens = string(block.get("type")), estimate(block)
    if kind == "text":
        words = own_words if role == USER else other_words
        return TranscriptPiece(role, words(block.get("text")), role, tokens=tokens)
    if kind == "tool_result" and role == USER:
        call = string(block.get("tool_use_id"))
        failed = call if block.get("is_error") is True else ""
        text = joined(block.get("content"))
        return TranscriptPiece(role, text, answers=call, failed=failed, tokens=tokens)
    if kind in _CALLS and role == ASSISTANT:
        server = f"mcp__{string(block.get('server_name'))}__" if kind == "mcp_tool_use" else ""
        name = server + string(block.get("name"))
        given = recorded(members(block.get("input")))
        paths = tuple(known.writes(name, given, cwd))
        call_made = RecordedCall(
            string(block.get("id")), name, known.short(name, given), paths, given
        )
        return TranscriptPiece(role, origin=role, call=call_made, tokens=tokens)
    if kind in _RESULTS and role == ASSISTANT:
        call = string(block.get("tool_use_id"))
        text = joined(block.get("content"))
        tool = _RESULTS[kind]
        return TranscriptPiece(role, text, answers=call or kind, tool=tool, tokens=tokens)
    return TranscriptPiece(role, tokens=tokens, event=SIZE)
