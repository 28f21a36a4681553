"""Turn the lines of Gemini CLI's chat records (0.61) into pieces. Pure.

Rules of this file
- The person's words are a ``user`` record, as typed if it has ``displayContent``. Its other parts
  hold files, the output of tools and what hooks added.
- A record may be repeated under its id, with the tool calls that followed; its text counts once.
- A line that sets values (``$set``) repeats a history that is in the file already, or the client's
  own first words. Rewound messages still count: they were said.
- A sub-agent's file says so in its first line, and none of its lines are used.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from memd.conversation.history import estimate, estimate_text, tokens_of
from memd.conversation.pieces import (
    ASSISTANT,
    SIZE,
    USER,
    RecordedCall,
    TranscriptPiece,
    agents_words,
    joined,
    members,
    other_words,
    own_words,
    parse_time,
    recorded,
    string,
)
from memd.transcripts import tools

_RECENT = 1024  # ids of records and calls that may be repeated
_MODEL = "gemini"
_MCP = "mcp_"  # and not mcp__, as others write it


def is_line(line: Any) -> bool:
    """Return whether a parsed line is one of a chat record."""
    if not isinstance(line, dict):
        return False
    is_message = line.get("type") in (USER, _MODEL) and "content" in line and "id" in line
    return is_message or "projectHash" in line


class ChatRecord:
    """Turns lines into pieces; remembers the records and calls that it has returned."""

    def __init__(self) -> None:
        self.sub_agent = False  # whether a sub-agent wrote the file
        self._seen: OrderedDict[str, None] = OrderedDict()  # ids of records and calls
        self.strange = 0  # records whose content has an unknown shape

    def pieces(self, line: Mapping[str, Any]) -> Iterator[TranscriptPiece]:
        """Yield a line's pieces; the file's first line must be passed before all others."""
        if "projectHash" in line:
            self.sub_agent = line.get("kind") == "subagent"
        elif not self.sub_agent:
            at, name = parse_time(line.get("timestamp")), string(line.get("id"))
            is_repeated = self._is_known(name)
            if line["type"] == USER:
                yield from self._user(line, name, at)
            else:
                if not is_repeated:
                    text = joined(line["content"])
                    size = estimate_text(text)
                    yield TranscriptPiece(ASSISTANT, text, ASSISTANT, name, name, at, tokens=size)
                for call in _list(line.get("toolCalls")):
                    yield from self._call(members(call), name, at)
                if total := tokens_of(members(line.get("tokens")).get("total")):
                    yield TranscriptPiece(ASSISTANT, id=name, key=name, context=total, event=SIZE)

    def _is_known(self, name: str) -> bool:
        """Return whether an id was passed before, and remember it."""
        known_before = name in self._seen
        self._seen[name] = None
        if len(self._seen) > _RECENT:
            self._seen.popitem(last=False)
        return known_before

    def _user(
        self, line: Mapping[str, Any], name: str, at: float | None
    ) -> Iterator[TranscriptPiece]:
        """Yield a user record's words, agents' messages in it, and the outputs of tools."""
        shown = line.get("displayContent") or line["content"]
        if not isinstance(shown, str | list):
            self.strange += 1
        parts = [members(part).get("text") for part in _list(shown)]
        if isinstance(shown, str):
            parts = [shown]
        texts = [own_words(part) for part in parts]
        text = "\n".join(words for words in texts if words)
        if text:
            yield TranscriptPiece(USER, text, USER, name, name, at, tokens=estimate_text(text))
        if agents := agents_words(line["content"]):
            yield TranscriptPiece(USER, id=name, at=at, event=SIZE, agents=agents)
        for part in map(members, _list(line["content"])):
            result = members(part.get("functionResponse"))
            tool = _name(result)
            if tool:
                output = members(result.get("response"))
                text = other_words(output.get("output") or output.get("error"))
                call_id = string(result.get("id"))
                piece = TranscriptPiece(USER, text, id=call_id, at=at, answers=call_id, tool=tool)
                agents = agents_words(output.get("output"))
                yield replace(piece, tokens=estimate_text(text), agents=agents)

    def _call(
        self, call: Mapping[str, Any], name: str, at: float | None
    ) -> Iterator[TranscriptPiece]:
        """Yield a tool call that was not yet returned, with the path that it wrote."""
        call_id, tool = string(call.get("id")), _name(call)
        if not tool or self._is_known(call_id):
            return
        tool_input = recorded(members(call.get("args")))
        written_path = string(members(call.get("resultDisplay")).get("filePath"))
        with_path = {**tool_input, "file_path": written_path} if written_path else tool_input
        paths = tuple(tools.writes(tool, with_path, ""))
        made = RecordedCall(call_id, tool, tools.short(tool, tool_input), paths, tool_input)
        failed = call_id if call.get("status") != "success" else ""
        piece = TranscriptPiece(ASSISTANT, "", ASSISTANT, name, name, at, call=made, failed=failed)
        yield replace(piece, tokens=estimate({"input": tool_input}))


def _name(call: Mapping[str, Any]) -> str:
    """Return a tool's name, that of an MCP tool with ``mcp__`` as other clients write it."""
    name = string(call.get("name"))
    return name.replace(_MCP, "mcp__", 1) if name.startswith(_MCP) else name


def _list(value: Any) -> list[Any]:
    """Return a value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []
