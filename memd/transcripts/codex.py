"""Turn the lines of Codex's rollout files into pieces. Pure.

Rules of this file
- The user's own words are events (``user_message``, since 0.147 a completed ``UserMessage``). The
  user messages of the model's input also hold instructions, environment and hook output, so their
  text is not used.
- The assistant's words and tool calls are taken from the model's items (``response_item``), which
  have each once; the events that repeat them are skipped.
- Only events report which files changed and which MCP server answered.
- A sub-agent's file says so in its first line, and none of its lines are used.
- The server's token count is in a ``token_usage_record`` right behind the reply; older versions
  have only ``token_count`` events, which are repeated, also behind the outputs of tools.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from memd.base.text import read_object
from memd.conversation.history import estimate, estimate_text, tokens_of
from memd.conversation.pieces import (
    ASSISTANT,
    BOUNDARY,
    SIZE,
    USER,
    RecordedCall,
    TranscriptPiece,
    agents_words,
    joined,
    members,
    own_words,
    parse_time,
    recorded,
    string,
)
from memd.transcripts import tools

_LINE_KINDS = (
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "token_usage_record",
)
# The editors' extension puts the open files before the request, under other headings.
_REQUEST = "## My request for Codex:"
_TYPE = "type"
_EXIT_CODE_LINES = ("Exit code: ", "Process exited with code ")  # beginnings of lines
_PATCH_APPLIED = "Success"  # in the output of a call that applied a patch
# How Codex's output begins if a call was never run or never ended.
_NOT_RUN = (
    "unsupported call: ",
    "unsupported custom tool call: ",
    "failed to parse function arguments",
    "exec_command failed",
    "exec command rejected",
    "patch rejected",
    "rejected by user",
    "aborted by user",
)
_HEAD_LINES = 5  # in which an output may have its exit code


def is_line(line: Any) -> bool:
    """Return whether a parsed line is one of a rollout file."""
    return (
        isinstance(line, dict)
        and line.get(_TYPE) in _LINE_KINDS
        and isinstance(line.get("payload"), dict)
    )


class Rollout:
    """Turns the lines of one file into pieces; knows its working directory and its author."""

    def __init__(self) -> None:
        self._cwd = ""
        self._name = ""  # the current line's time stamp as text
        self._at: float | None = None  # the same in seconds since 1970
        self._begun = False  # whether the file's first ``session_meta`` was read
        self._context = 0  # tokens that the server counted last
        self.sub_agent = False  # whether a sub-agent wrote the file
        self._patches: set[str] = set()  # ids of calls that apply a patch
        self.strange = 0  # lines of a known kind whose content has an unknown shape

    def pieces(self, line: Mapping[str, Any]) -> Iterator[TranscriptPiece]:
        """Yield a line's pieces; the file's first line must be passed before all others."""
        kind, payload, at = line[_TYPE], line["payload"], line.get("timestamp")
        self._name, self._at = string(at), parse_time(at)
        if kind == "session_meta" and not self._begun:
            # Later ones are of the session that this one was forked from.
            self._begun = True
            self.sub_agent = _is_sub_agent(payload)
        if kind in ("session_meta", "turn_context"):
            self._cwd = string(payload.get("cwd")) or self._cwd
        if self.sub_agent:
            return
        if kind == "response_item":
            yield from self._item(payload)
        elif kind == "event_msg":
            yield from self._event(payload)
        elif kind == "token_usage_record":
            yield from self._counted(members(payload.get("usage")))
        elif kind == "compacted":
            history = payload.get("replacement_history")
            size = estimate(history if isinstance(history, list) else payload.get("message"))
            yield self._piece(USER, tokens=size, event=BOUNDARY)

    def _piece(
        self, role: str, text: str = "", origin: str = "", name: str = "", **more: Any
    ) -> TranscriptPiece:
        """Return a piece of this line; without a ``name`` its id is the line's time stamp."""
        return TranscriptPiece(role, text, origin, name or self._name, at=self._at, **more)

    def _counted(self, usage: Mapping[str, Any]) -> Iterator[TranscriptPiece]:
        """Yield a piece with the size of the context, if the event has the server's count."""
        if total := tokens_of(usage.get("total_tokens")):
            self._context = total
            yield self._piece(ASSISTANT, context=total, event=SIZE)

    def _item(self, item: Mapping[str, Any]) -> Iterator[TranscriptPiece]:
        """Yield the pieces of a ``response_item``: a message, a call, an output or a web search."""
        kind = string(item.get(_TYPE))
        if kind == "message" and item.get("role") == ASSISTANT:
            if not isinstance(item.get("content"), list):
                self.strange += 1
            message_id = string(item.get("id"))
            text = joined(item.get("content"))
            tokens = estimate_text(text)
            yield self._piece(ASSISTANT, text, ASSISTANT, message_id, tokens=tokens)
        elif kind == "message":  # of the user's side: only agents' messages in it are used
            if agents := agents_words(item.get("content")):
                yield self._piece(USER, event=SIZE, agents=agents)
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            yield self._call(item)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield self._call_output(item)
        elif kind == "web_search_call":
            tool_input = recorded(members(item.get("action")))
            short = tools.short("web_search", tool_input)
            call = RecordedCall("", "web_search", short, given=tool_input)
            yield self._piece(ASSISTANT, origin=ASSISTANT, call=call)
            yield self._piece(USER, origin=tools.WEB, tool="web_search")

    def _call_output(self, item: Mapping[str, Any]) -> TranscriptPiece:
        """Return the output of a tool call, with whether the call failed."""
        text, succeeded, agents = _output(item.get("output"))
        call_id = string(item.get("call_id"))
        if succeeded is None:  # only a patch must report success
            succeeded = call_id not in self._patches or _PATCH_APPLIED in text
        self._patches.discard(call_id)
        return self._piece(
            USER,
            text,
            name=call_id,
            answers=call_id,
            failed="" if succeeded else call_id,
            tokens=estimate_text(text),
            agents=agents,
        )

    def _call(self, item: Mapping[str, Any]) -> TranscriptPiece:
        """Return a tool call with the paths that it writes."""
        name = f"{string(item.get('namespace'))}{string(item.get('name')) or 'shell'}"
        raw = item.get("arguments") or item.get("input") or item.get("action")
        arguments = read_object(raw) or members(raw)
        tool_input = recorded(arguments)
        cwd = string(tool_input.get("workdir")) or self._cwd
        patch = "\n".join(_strings(arguments)) or string(raw)
        patched_paths = tuple(tools.patched(patch, cwd))
        paths = (*tools.writes(name, tool_input, cwd), *patched_paths)
        call_id = string(item.get("call_id"))
        if patched_paths:
            self._patches.add(call_id)
        # An input that is a mere text, mostly a patch, is shown by the first path in it.
        short = tools.short(name, tool_input or {"path": next(iter(patched_paths), "")})
        tool_input = tool_input or {"input": recorded(patch)}
        call = RecordedCall(call_id, name, short, paths, tool_input)
        tokens = estimate({"input": raw})
        return self._piece(ASSISTANT, origin=ASSISTANT, call=call, tokens=tokens)

    def _event(self, event: Mapping[str, Any]) -> Iterator[TranscriptPiece]:
        """Yield the pieces of an event that no ``response_item`` repeats."""
        kind = string(event.get(_TYPE))
        if kind == "user_message" and event.get("kind", "plain") in ("plain", None):
            yield self._user_words(event.get("message"), string(event.get("id")))
        elif kind == "patch_apply_end":
            call_id = string(event.get("call_id"))
            yield self._file_change(event, call_id, succeeded=event.get("success") is True)
        elif kind == "mcp_tool_call_end":
            yield from self._mcp_call(members(event.get("invocation")))
        elif kind == "token_count":
            usage = members(members(event.get("info")).get("last_token_usage"))
            if usage.get("total_tokens") != self._context:  # else it repeats the last count
                yield from self._counted(usage)
        elif kind == "item_completed":
            yield from self._completed(members(event.get("item")))

    def _user_words(self, words: Any, name: str) -> TranscriptPiece:
        """Return a piece with the user's words, without what an editor's extension adds."""
        if not isinstance(words, str):
            self.strange += 1
        text = own_words(words)
        text = text.rpartition(_REQUEST)[2].strip() if text.startswith("# ") else text
        return self._piece(USER, text, USER, name, tokens=estimate_text(text))

    def _completed(self, item: Mapping[str, Any]) -> Iterator[TranscriptPiece]:
        """Yield the pieces of a completed item: user's words, changed files or an MCP call."""
        kind, item_id = string(item.get(_TYPE)), string(item.get("id"))
        if kind == "UserMessage":
            content = item.get("content")
            words = None
            if isinstance(content, list):
                words = "\n".join(string(members(part).get("text")) for part in content)
            yield self._user_words(words, item_id)
        elif kind == "FileChange":
            yield self._file_change(item, item_id, succeeded=item.get("status") == "completed")
        elif kind == "McpToolCall":
            yield from self._mcp_call(item)

    def _file_change(
        self, change: Mapping[str, Any], call_id: str, *, succeeded: bool
    ) -> TranscriptPiece:
        """Return a piece with the paths that a change of files wrote, or of a failed call."""
        if not succeeded:
            return self._piece(ASSISTANT, origin=ASSISTANT, failed=call_id)
        paths = tuple(
            tools.absolute(string(path), self._cwd)
            for path in members(change.get("changes"))
            if "\0" not in path
        )
        return self._piece(ASSISTANT, origin=ASSISTANT, call=RecordedCall("", "", "", paths))

    def _mcp_call(self, call: Mapping[str, Any]) -> Iterator[TranscriptPiece]:
        """Yield the paths that a call of an MCP server wrote, and that it was called."""
        name = f"mcp__{string(call.get('server'))}__{string(call.get('tool'))}"
        given = members(call.get("arguments"))
        paths = tuple(tools.writes(name, given, "")) if call.get("status") != "failed" else ()
        if paths:
            yield self._piece(ASSISTANT, origin=ASSISTANT, call=RecordedCall("", "", "", paths))
        yield self._piece(USER, origin=tools.origin(name), tool=name)


def _is_sub_agent(meta: Mapping[str, Any]) -> bool:
    """Return whether the first line of a file says that a sub-agent wrote it."""
    source = meta.get("source")
    if isinstance(source, dict) and any("agent" in str(name).lower() for name in source):
        return True
    thread_source = str(meta.get("thread_source", "")).lower().replace("_", "")
    return "subagent" in thread_source or bool(meta.get("parent_thread_id"))


def _output(value: Any) -> tuple[str, bool | None, str]:
    """Return a tool's output as text, whether the call succeeded, and messages of agents in it.

    The second value is ``None`` if the output does not say whether it succeeded.
    """
    if isinstance(value, str) and value.startswith("{"):
        value = read_object(value) or value
    reports: list[bool] = []  # what the output says in several places about the success
    if isinstance(value, dict):
        status = members(value.get("metadata")).get("exit_code")
        if status is not None:
            reports.append(status == 0)
        if "success" in value:
            reports.append(value["success"] is True)
        value = value.get("output", value.get("content"))
    text = joined(value)
    head_lines = text.splitlines()[:_HEAD_LINES]
    exit_codes = [line.split()[-1] for line in head_lines if line.startswith(_EXIT_CODE_LINES)]
    reports += [code == "0" for code in exit_codes]
    if not reports and text.startswith(_NOT_RUN):
        reports.append(False)
    return text, all(reports) if reports else None, agents_words(value)


def _strings(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a call's input and of the lists in it."""
    for value in given.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield item
