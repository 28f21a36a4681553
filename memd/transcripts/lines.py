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

from collections.abc import Mapping, Sequence
from typing import Any

from memd.conversation.history import counted, estimate
from memd.conversation.pieces import (
    ASSISTANT,
    BOUNDARY,
    BROUGHT,
    SIZE,
    TITLE,
    USER,
    RecordedCall,
    TranscriptPiece,
    agents_words,
    joined,
    members,
    message_id,
    other_words,
    own_words,
    parse_time,
    recorded,
    string,
)
from memd.core.errors import MemdError
from memd.text import tags
from memd.transcripts import codex, gemini
from memd.transcripts import tools as known

_UNSPOKEN = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
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

    def problem(self, path: str, lines: int) -> str:
        """Return what is wrong with a file whose first lines said nothing, "" for nothing."""
        if lines and not self.recognised:
            return f"{path}: none of {lines} lines has a shape that memd knows"
        if self.strange:
            return f"{path}: none of {self.strange} messages has a shape that memd knows"
        return ""

    def pieces(self, line: Any) -> Sequence[TranscriptPiece]:
        """Return what a parsed line says; of any other value, nothing."""
        try:
            return self._read(line) if isinstance(line, dict) else ()
        except RecursionError:  # nested deeper than any client writes
            return ()

    def _read(self, line: dict[str, Any]) -> Sequence[TranscriptPiece]:
        """Return what a line of Claude Code, Codex or Gemini says."""
        kind = line.get("type")
        if kind in (USER, ASSISTANT) and isinstance(line.get("message"), dict):
            result = self._said(kind, line)
        elif codex.is_line(line):
            result = tuple(self._rollout.pieces(line))
        elif gemini.is_line(line):
            result = tuple(self._chat.pieces(line))
        elif kind == "system" and line.get("subtype") == "compact_boundary":
            at, name = parse_time(line.get("timestamp")), string(line.get("uuid"))
            result = (TranscriptPiece(USER, id=name, at=at, event=BOUNDARY),)
        elif kind == "attachment":
            return _brought(members(line.get("attachment")))
        else:
            own = kind == "custom-title"
            title = line.get("customTitle") if own else kind == "ai-title" and line.get("aiTitle")
            return self._named(string(title).strip(), own=own)
        self.recognised += 1
        return result

    def _said(self, role: str, line: Mapping[str, Any]) -> Sequence[TranscriptPiece]:
        """Return what a line of the user or the assistant says."""
        if line.get("isSidechain"):
            self._sidechain = True
            return ()
        self._spoken = True
        message, name = line["message"], string(line.get("uuid"))
        content = message.get("content")
        like: dict[str, Any] = {
            "id": name,
            "key": (string(message.get("id")) if role == ASSISTANT else "") or name,
            "at": parse_time(line.get("timestamp")),
            "context": counted(message.get("usage")),
        }
        if any(line.get(mark) for mark in _UNSPOKEN):
            return (TranscriptPiece(role, tokens=estimate(content), event=SIZE, **like),)
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = [members(block) for block in content] if isinstance(content, list) else [{}]
        cwd = string(line.get("cwd"))
        result = [_piece(role, block, cwd, like) for block in blocks]
        if result and all(piece.event for piece in result):
            self._strange += not any(string(block.get("type")) in _SILENT for block in blocks)
        return result

    def _named(self, title: str, *, own: bool) -> Sequence[TranscriptPiece]:
        """Return a new title; once the person gave one, the client's own are none."""
        if not title or own < self._own_title:
            return ()
        known_before, self._title, self._own_title = self._title, title, own
        return () if title == known_before else (TranscriptPiece(USER, title, event=TITLE),)


def _brought(attachment: Mapping[str, Any]) -> Sequence[TranscriptPiece]:
    """Return how much memd's hook added to the context, if it was memd's."""
    added = attachment.get("content")
    if attachment.get("type") != "hook_additional_context" or tags.OPEN not in str(added):
        return ()
    agents = agents_words(added)
    return (TranscriptPiece(USER, tokens=estimate(added), event=BROUGHT, agents=agents),)


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
        line = {
            "uuid": message_id(item, number),
            "timestamp": item.get("timestamp"),
            "message": item,
        }
        unspoken = role not in (USER, ASSISTANT)
        pieces += reader.pieces({**line, "type": USER if unspoken else role, "isMeta": unspoken})
    return tuple(pieces)


def client_message(line: Any) -> dict[str, Any] | None:
    """Return the message that a line of Claude Code records of the main conversation, or none."""
    if not isinstance(line, dict) or line.get("isSidechain") or line.get("isApiErrorMessage"):
        return None
    kinds = {name: line[name] for name in ("uuid", "isMeta", "isCompactSummary") if name in line}
    if line.get("subtype") == "compact_boundary":
        return {"role": "system", "subtype": "compact_boundary", "content": [], **kinds}
    spoken = line.get("type") in (USER, ASSISTANT) and isinstance(line.get("message"), dict)
    return {**line["message"], **kinds} if spoken else None


def _piece(
    role: str, block: Mapping[str, Any], cwd: str, like: Mapping[str, Any]
) -> TranscriptPiece:
    """Return what a content block says; of a kind that says nothing its size."""
    kind = string(block.get("type"))
    like = {**like, "tokens": estimate(block)}
    if kind == "text":
        words = own_words if role == USER else other_words
        agents = agents_words(block.get("text"))
        return TranscriptPiece(role, words(block.get("text")), role, agents=agents, **like)
    if kind == "tool_result" and role == USER:
        call = string(block.get("tool_use_id"))
        failed = call if block.get("is_error") is True else ""
        text, agents = joined(block.get("content")), agents_words(block.get("content"))
        return TranscriptPiece(role, text, answers=call, failed=failed, agents=agents, **like)
    if kind in _CALLS and role == ASSISTANT:
        server = f"mcp__{string(block.get('server_name'))}__" if kind == "mcp_tool_use" else ""
        name = server + string(block.get("name"))
        given = recorded(members(block.get("input")))
        paths, short = tuple(known.writes(name, given, cwd)), known.short(name, given)
        made = RecordedCall(string(block.get("id")), name, short, paths, given)
        return TranscriptPiece(role, origin=role, call=made, **like)
    if kind in _RESULTS and role == ASSISTANT:
        call, text = string(block.get("tool_use_id")), joined(block.get("content"))
        like = {**like, "tool": _RESULTS[kind], "agents": agents_words(block.get("content"))}
        return TranscriptPiece(role, text, answers=call or kind, **like)
    return TranscriptPiece(role, event=SIZE, **like)
