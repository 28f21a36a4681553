"""Turn transcript lines and lists of the Messages API into pieces. Pure.

Rules of this file
- Of Claude Code's lines only ``user`` and ``assistant`` have words, but not a sub-agent's. Of meta
  lines and a compaction's summary only the size counts; compact boundaries and titles are events.
  All other lines are ignored. ``codex`` and ``gemini`` read the lines of those clients; the shape
  of a line shows which client wrote it.
- The origin of a text is decided here and nowhere else: a tool result is the tool's words, in
  whichever message; text that memd or the client put among the user's words is cut out.
- No shape raises an error: a value of an unexpected shape is skipped.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memd.base.errors import Invalid
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
from memd.text import tags
from memd.transcripts import codex, gemini, tools

# Members of lines that nobody spoke.
_UNSPOKEN = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
# Types of blocks without words.
_WORDLESS = frozenset(("thinking", "redacted_thinking", "image", "document"))
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
# Types of blocks with the output of a server's tool, each with the tool's name.
_RESULTS = {
    "web_search_tool_result": "web_search",
    "web_fetch_tool_result": "web_fetch",
    "mcp_tool_result": "",
}


def _invalid_messages(result: str) -> Invalid:
    return Invalid(
        f"messages must be a list of objects, not {result}",
        kind="invalid_messages",
        hint="give a list of {role, content}, content a text or a list of blocks",
        found=result,
    )


class PieceReader:
    """Turns the parsed lines of one transcript, in order, into pieces.

    The lines of a sub-agent's file give no pieces.
    """

    def __init__(self) -> None:
        self._rollout = codex.Rollout()
        self._chat = gemini.ChatRecord()
        self._strange = 0  # lines of Claude Code whose content has an unknown shape
        self._has_main_lines = False
        self._has_sidechain_lines = False  # of a sub-agent
        self._title, self._titled_by_person = "", False
        self.recognised = 0  # lines of a kind that memd knows

    @property
    def strange(self) -> int:
        """Return how many lines of a known kind had an unknown shape."""
        return self._strange + self._rollout.strange + self._chat.strange

    @property
    def sub_agent(self) -> bool:
        """Return whether the lines so far are a sub-agent's."""
        sidechain_only = self._has_sidechain_lines and not self._has_main_lines
        return sidechain_only or self._rollout.sub_agent or self._chat.sub_agent

    def problem(self, path: str, lines: int) -> str:
        """Return a sentence if no line of a file had a shape that memd knows, else ""."""
        if lines and not self.recognised:
            return f"{path}: none of {lines} lines has a shape that memd knows"
        if self.strange:
            return f"{path}: none of {self.strange} messages has a shape that memd knows"
        return ""

    def pieces(self, line: Any) -> Sequence[TranscriptPiece]:
        """Return the pieces of a parsed line; an empty sequence if it is no object."""
        try:
            return self._read(line) if isinstance(line, dict) else ()
        except RecursionError:  # nested deeper than any client writes
            return ()

    def _read(self, line: dict[str, Any]) -> Sequence[TranscriptPiece]:
        """Return the pieces of a line of Claude Code, Codex or Gemini."""
        kind = line.get("type")
        if kind in (USER, ASSISTANT) and isinstance(line.get("message"), dict):
            result = self._message_pieces(kind, line)
        elif codex.is_line(line):
            result = tuple(self._rollout.pieces(line))
        elif gemini.is_line(line):
            result = tuple(self._chat.pieces(line))
        elif kind == "system" and line.get("subtype") == "compact_boundary":
            at, name = parse_time(line.get("timestamp")), string(line.get("uuid"))
            result = (TranscriptPiece(USER, id=name, at=at, event=BOUNDARY),)
        elif kind == "attachment":
            return _hook_context(members(line.get("attachment")))
        else:
            titles = {"custom-title": line.get("customTitle"), "ai-title": line.get("aiTitle")}
            title = string(titles.get(string(kind))).strip()
            return self._title_piece(title, by_person=kind == "custom-title")
        self.recognised += 1
        return result

    def _message_pieces(self, role: str, line: Mapping[str, Any]) -> Sequence[TranscriptPiece]:
        """Return the pieces of a line of the user or the assistant."""
        if line.get("isSidechain"):
            self._has_sidechain_lines = True
            return ()
        self._has_main_lines = True
        message, name = line["message"], string(line.get("uuid"))
        content = message.get("content")
        reply_id = string(message.get("id")) if role == ASSISTANT else ""
        common: dict[str, Any] = {
            "id": name,
            "key": reply_id or name,
            "at": parse_time(line.get("timestamp")),
            "context": counted(message.get("usage")),
        }
        if any(line.get(mark) for mark in _UNSPOKEN):
            return (TranscriptPiece(role, tokens=estimate(content), event=SIZE, **common),)
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = [members(block) for block in content] if isinstance(content, list) else [{}]
        cwd = string(line.get("cwd"))
        result = [_piece(role, block, cwd, common) for block in blocks]
        has_words = any(not piece.event for piece in result)
        has_wordless_blocks = any(string(block.get("type")) in _WORDLESS for block in blocks)
        if result and not has_words and not has_wordless_blocks:
            self._strange += 1
        return result

    def _title_piece(self, title: str, *, by_person: bool) -> Sequence[TranscriptPiece]:
        """Return a piece for a new title; a client's title never replaces the person's."""
        if not title or (self._titled_by_person and not by_person):
            return ()
        is_new = title != self._title
        self._title, self._titled_by_person = title, by_person
        return (TranscriptPiece(USER, title, event=TITLE),) if is_new else ()


def _hook_context(attachment: Mapping[str, Any]) -> Sequence[TranscriptPiece]:
    """Return a piece with the size of what memd's hook added; empty for other attachments."""
    added = attachment.get("content")
    if attachment.get("type") != "hook_additional_context" or tags.OPEN not in str(added):
        return ()
    agents = agents_words(added)
    return (TranscriptPiece(USER, tokens=estimate(added), event=BROUGHT, agents=agents),)


def message_pieces(messages: Any) -> tuple[TranscriptPiece, ...]:
    """Return the pieces of a Messages-API list; an item's id is its own or ``message N``.

    Items and blocks of another shape are skipped. Raises Invalid if it is no
    list.
    """
    if not isinstance(messages, list | tuple):
        raise _invalid_messages(type(messages).__name__)
    reader = PieceReader()
    pieces: list[TranscriptPiece] = []
    for number, item in enumerate(map(members, messages)):
        role = item.get("role")
        line = {
            "uuid": message_id(item, number),
            "timestamp": item.get("timestamp"),
            "message": item,
        }
        # A message of another role, such as the system's, is read like a note of the client.
        is_note = role not in (USER, ASSISTANT)
        pieces += reader.pieces({**line, "type": USER if is_note else role, "isMeta": is_note})
    return tuple(pieces)


def client_message(line: Any) -> dict[str, Any] | None:
    """Return the message in a line of Claude Code's main conversation, or ``None``."""
    if not isinstance(line, dict) or line.get("isSidechain") or line.get("isApiErrorMessage"):
        return None
    kinds = {name: line[name] for name in ("uuid", "isMeta", "isCompactSummary") if name in line}
    if line.get("subtype") == "compact_boundary":
        return {"role": "system", "subtype": "compact_boundary", "content": [], **kinds}
    is_message = line.get("type") in (USER, ASSISTANT) and isinstance(line.get("message"), dict)
    return {**line["message"], **kinds} if is_message else None


def _piece(
    role: str, block: Mapping[str, Any], cwd: str, common: Mapping[str, Any]
) -> TranscriptPiece:
    """Return the piece of a content block; a block without text only has its size."""
    kind = string(block.get("type"))
    common = {**common, "tokens": estimate(block)}
    if kind == "text":
        words = own_words if role == USER else other_words
        agents = agents_words(block.get("text"))
        return TranscriptPiece(role, words(block.get("text")), role, agents=agents, **common)
    if kind == "tool_result" and role == USER:
        call = string(block.get("tool_use_id"))
        failed = call if block.get("is_error") is True else ""
        text, agents = joined(block.get("content")), agents_words(block.get("content"))
        return TranscriptPiece(role, text, answers=call, failed=failed, agents=agents, **common)
    if kind in _CALLS and role == ASSISTANT:
        server = f"mcp__{string(block.get('server_name'))}__" if kind == "mcp_tool_use" else ""
        name = server + string(block.get("name"))
        tool_input = recorded(members(block.get("input")))
        paths, short = tuple(tools.writes(name, tool_input, cwd)), tools.short(name, tool_input)
        made_call = RecordedCall(string(block.get("id")), name, short, paths, tool_input)
        return TranscriptPiece(role, origin=role, call=made_call, **common)
    if kind in _RESULTS and role == ASSISTANT:
        call, text = string(block.get("tool_use_id")), joined(block.get("content"))
        common = {**common, "tool": _RESULTS[kind], "agents": agents_words(block.get("content"))}
        return TranscriptPiece(role, text, answers=call or kind, **common)
    return TranscriptPiece(role, event=SIZE, **common)
