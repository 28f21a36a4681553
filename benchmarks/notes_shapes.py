"""Made-up conversations as Claude Code 2.1 and Codex 0.169 write them down, line by line.

The shapes were taken from transcripts that the real programs wrote against a scripted model: one
line a content block with the reply's id and usage repeated, results as lines of the user, copies of
requests, attachments, titles, boundaries with their summary, sub-agents' lines marked as such; in
Codex events beside the model's items, and outputs with a head of their own.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from benchmarks.notes_steps import Call, Case, Step

_START = datetime(2026, 9, 14, 8, 3, tzinfo=UTC)
_STATES = {"open": "pending", "running": "in_progress", "done": "completed"}
_BYTES_A_TOKEN = 4
_SYSTEM_TOKENS = 9_000  # of the system prompt and the tools
_COMMON = {"userType": "external", "entrypoint": "cli", "version": "2.1.329", "gitBranch": "main"}


def write(case: Case, path: str | Path, cwd: str) -> None:
    """Write a conversation's transcript as if it had happened in a directory."""
    writer = _ClaudeCode if case.client == "claude-code" else _Codex
    lines = writer(case, cwd).lines()
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    torn = '{"type":"user","message":{"role":"user","content":"torn' if case.torn else ""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + torn, "utf-8", newline="")
    file.chmod(0o600)


class _Clock:
    """Times and ids that are the same for the same conversation."""

    def __init__(self, name: str) -> None:
        self._name, self._count, self._now = name, 0, _START

    def next(self, seconds: float = 4) -> str:
        """Return the next time, as transcripts have it."""
        self._now += timedelta(seconds=seconds)
        return self._now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def id(self) -> str:
        """Return a new id."""
        self._count += 1
        return str(uuid5(NAMESPACE_URL, f"{self._name} {self._count}"))


class _ClaudeCode:
    def __init__(self, case: Case, cwd: str) -> None:
        self._case, self._cwd = case, cwd
        self._clock = _Clock(case.name)
        self._session = self._clock.id()
        self._parent: str | None = None
        self._replies = self._calls = self._made_tasks = 0
        self._size = _SYSTEM_TOKENS * _BYTES_A_TOKEN
        self._tasks: dict[str, tuple[str, str]] = {}  # by text: id and state
        self._results: list[dict[str, Any]] = []

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of the transcript."""
        for step in self._case.steps:
            yield from getattr(self, f"_{step.kind}")(step)

    def _said(self, step: Step) -> Iterator[dict[str, Any]]:
        self._clock.next(140)
        yield {"type": "queue-operation", "operation": "enqueue", "content": step.text}
        yield self._line("user", {"role": "user", "content": step.text}, promptSource="typed")
        copied = {"role": "user", "content": f"copy-canary {step.text}"}
        yield {"type": "api-request-blob", "sessionId": self._session, "message": copied}
        yield {"type": "last-prompt", "lastPrompt": step.text, "sessionId": self._session}

    def _replied(self, step: Step) -> Iterator[dict[str, Any]]:
        thought = {"type": "thinking", "thinking": "", "signature": "c2lnbmF0dXJl"}
        yield from self._reply([thought, {"type": "text", "text": step.text}])
        ended = {"subtype": "stop_hook_summary", "hookCount": 1, "level": "suggestion"}
        yield self._line("system", None, **ended)
        if title := self._case.planted.title:
            yield {"type": "custom-title", "customTitle": title, "sessionId": self._session}
            yield {"type": "agent-name", "agentName": title, "sessionId": self._session}

    def _called(self, step: Step) -> Iterator[dict[str, Any]]:
        made = [made for call in step.calls for made in self._made(call)]
        blocks = []
        for name, given, _ in made:
            self._calls += 1
            blocks.append(
                {"type": "tool_use", "id": f"toolu_{self._calls:05}", "name": name, "input": given}
            )
        yield from self._reply(blocks)
        for block, (_, _, call) in zip(blocks, made, strict=True):
            yield from self._agent(call)
            text = _claude_result(call, self._cwd)
            result = {"type": "tool_result", "tool_use_id": block["id"], "content": text}
            content = [result | ({"is_error": True} if call.failed else {})]
            self._size += len(text.encode())
            told = _told(call, self._cwd)
            yield self._line("user", {"role": "user", "content": content}, toolUseResult=told)

    def _made(self, call: Call) -> Iterator[tuple[str, dict[str, Any], Call]]:
        """Yield the tool calls that stand for one: the name, the input, the call."""
        given = call.given
        path = f"{self._cwd}/{given.get('path', '')}"
        match call.kind:
            case "read":
                yield "Read", {"file_path": path}, call
            case "edit":
                edit = {"old_string": given["old"], "new_string": given["new"]}
                yield "Edit", {"replace_all": False, "file_path": path, **edit}, call
            case "write":
                yield "Write", {"file_path": path, "content": given["content"]}, call
            case "run":
                yield "Bash", {"command": given["command"], "description": "Run it"}, call
            case "fetch":
                yield "WebFetch", {"url": given["url"], "prompt": given["prompt"]}, call
            case "agent":
                named = {"description": given["description"], "prompt": given["prompt"]}
                yield "Agent", {**named, "subagent_type": "general-purpose"}, call
            case "plan" if given["single"]:
                yield from self._changed_tasks(given["items"])
            case "plan":
                todos = [
                    {"content": text, "status": _STATES[state], "activeForm": text}
                    for text, state in given["items"]
                ]
                yield "TodoWrite", {"todos": todos}, Call("plan", {}, "Todos have been modified.")

    def _changed_tasks(
        self, items: Iterable[tuple[str, str]]
    ) -> Iterator[tuple[str, dict[str, Any], Call]]:
        for text, state in items:
            if self._tasks.get(text, ("", "done"))[1] == "done" != state:
                self._made_tasks += 1
                number = str(self._made_tasks)
                self._tasks[text] = number, "open"
                told = f"Task #{number} created successfully: {text}"
                yield (
                    "TaskCreate",
                    {"subject": text, "description": f"In detail: {text}"},
                    Call("plan", {}, told),
                )
            number, before = self._tasks.get(text, ("", state))
            if state != before:
                self._tasks[text] = number, state
                told = f"Updated task #{number} status"
                given = {"taskId": number, "status": _STATES[state]}
                yield "TaskUpdate", given, Call("plan", {}, told)

    def _agent(self, call: Call) -> Iterator[dict[str, Any]]:
        """Yield what a sub-agent said, in older versions among the lines of its caller."""
        if call.kind == "agent":
            side = {"isSidechain": True, "agentId": "a0dbb969"}
            prompt = {"role": "user", "content": f"agent-canary {call.given['prompt']}"}
            yield self._line("user", prompt, **side)
            said = [{"type": "text", "text": call.given["said"]}]
            yield self._line("assistant", {"role": "assistant", "content": said}, **side)

    def _injected(self, step: Step) -> Iterator[dict[str, Any]]:
        added = {"type": "hook_additional_context", "content": [step.text], "hookEvent": "Stop"}
        yield self._line("attachment", None, attachment=added)

    def _titled(self, step: Step) -> Iterator[dict[str, Any]]:
        yield {"type": "custom-title", "customTitle": step.text, "sessionId": self._session}

    def _compacted(self, step: Step) -> Iterator[dict[str, Any]]:
        before, self._size = self._size // _BYTES_A_TOKEN, len(step.text) + _SYSTEM_TOKENS
        told = {"trigger": "manual", "preTokens": before, "postTokens": 900}
        boundary = {"subtype": "compact_boundary", "content": "Conversation compacted"}
        self._parent = None
        yield self._line("system", None, **boundary, isMeta=False, compactMetadata=told)
        yield self._line("user", {"role": "user", "content": step.text}, isCompactSummary=True)
        words = "<command-name>/compact</command-name>\n<command-message>compact</command-message>"
        yield self._line("user", {"role": "user", "content": words})
        printed = "<local-command-stdout>Compacted</local-command-stdout>"
        yield self._line("user", {"role": "user", "content": printed}, repeatsCompactSummary=True)

    def _reply(self, blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        self._replies += 1
        size = len(json.dumps(blocks, ensure_ascii=False).encode())
        usage = {
            "input_tokens": 3,
            "cache_read_input_tokens": self._size // _BYTES_A_TOKEN,
            "cache_creation_input_tokens": 0,
            "output_tokens": size // _BYTES_A_TOKEN,
        }
        self._size += size
        like = {"id": f"msg_{self._replies:05}", "type": "message", "role": "assistant"}
        for place, block in enumerate(blocks):
            message = {**like, "model": "claude-opus-5-5", "content": [block], "usage": usage}
            yield self._line("assistant", message, apiBlockIndex=place, madeBy="model")

    def _line(self, kind: str, message: Any, **more: Any) -> dict[str, Any]:
        parent, self._parent = self._parent, self._clock.id()
        line = {"parentUuid": parent, "isSidechain": False, "type": kind, **more}
        line |= {"uuid": self._parent, "timestamp": self._clock.next(), "cwd": self._cwd}
        line |= {"sessionId": self._session, **_COMMON}
        return line | ({} if message is None else {"message": message})


class _Codex:
    def __init__(self, case: Case, cwd: str) -> None:
        self._case, self._cwd = case, cwd
        self._clock = _Clock(case.name)
        self._calls = self._size = 0
        # Before 0.147: commands as a list, their outputs as JSON, and the person's words alone.
        self._older = len(case.name) % 2 == 0
        self._turn = ""

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of the transcript."""
        meta = {"id": self._clock.id(), "cwd": self._cwd, "originator": "codex_cli_rs"}
        told = {"cli_version": "0.169.0", "source": "cli", "thread_source": "user"}
        yield self._line("session_meta", **meta, **told, base_instructions={"text": "Be exact."})
        where = f"<environment_context>\n  <cwd>{self._cwd}</cwd>\n</environment_context>"
        yield self._message("user", where)
        yield self._line("turn_context", cwd=self._cwd, model="gpt-5.2-codex", summary="none")
        for step in self._case.steps:
            yield from getattr(self, f"_{step.kind}")(step)

    def _said(self, step: Step) -> Iterator[dict[str, Any]]:
        self._clock.next(140)
        self._turn = self._clock.id()
        yield self._event("task_started", turn_id=self._turn, model_context_window=258_400)
        yield self._message("user", step.text)
        self._size += len(step.text.encode())
        if self._older:
            yield self._event("user_message", message=step.text, kind="plain")
        else:
            content = [{"type": "text", "text": step.text, "text_elements": []}]
            item = {"type": "UserMessage", "id": self._clock.id(), "content": content}
            yield self._event("item_completed", turn_id=self._turn, item=item)

    def _replied(self, step: Step) -> Iterator[dict[str, Any]]:
        content = [{"type": "Text", "text": step.text}]
        name = self._clock.id()
        item = {"type": "AgentMessage", "id": name, "content": content}
        yield self._event("item_completed", turn_id=self._turn, item=item)
        yield self._message("assistant", step.text, name)
        yield self._counted()
        yield self._event("task_complete", turn_id=self._turn, last_agent_message=step.text)

    def _called(self, step: Step) -> Iterator[dict[str, Any]]:
        outputs = []
        for call in step.calls:
            self._calls += 1
            name = f"call_{self._calls}"
            item, output = self._made(call)
            yield self._line("response_item", call_id=name, id=self._clock.id(), **item)
            outputs += [(name, call, item, output)]
        for name, call, item, output in outputs:
            yield from self._happened(name, call, output)
            self._size += len(output.encode())
            kind = f"{item['type']}_output"
            if call.kind != "fetch":
                shown = self._shown(call, output, item["type"])
                yield self._line("response_item", type=kind, call_id=name, output=shown)
        yield self._counted()

    def _made(self, call: Call) -> tuple[dict[str, Any], str]:
        """Return the model's item for a call, and what comes back."""
        given = call.given
        match call.kind:
            case "read":
                return self._shell(_cat(call)), call.result
            case "run":
                return self._shell(given["command"]), call.result
            case "edit" | "write":
                return self._patched(call)
            case "fetch":
                action = {"type": "open_page", "url": given["url"]}
                return {"type": "web_search_call", "status": "completed", "action": action}, ""
            case "agent":
                return _function("spawn_agent", message=given["prompt"]), '{"agent_id":"a1"}'
            case _:
                plan = [{"step": text, "status": _STATES[now]} for text, now in given["items"]]
                return _function("update_plan", plan=plan), "Plan updated"

    def _patched(self, call: Call) -> tuple[dict[str, Any], str]:
        patch = _patch(call)
        made = {"type": "custom_tool_call", "name": "apply_patch", "input": patch}
        if not self._older:
            made = self._shell(f"apply_patch <<'EOF'\n{patch}\nEOF\n")
        if call.failed:
            return made, f"apply_patch verification failed: {call.result}"
        sign = "M" if call.kind == "edit" else "A"
        return made, f"Success. Updated the following files:\n{sign} {call.given['path']}\n"

    def _shell(self, command: str) -> dict[str, Any]:
        if self._older:
            return _function("shell", command=["bash", "-lc", command], workdir=self._cwd)
        return _function("exec_command", cmd=command, workdir=self._cwd)

    def _shown(self, call: Call, output: str, kind: str) -> str:
        """Return an output with the head that Codex puts before it."""
        if call.kind in ("plan", "agent"):
            return output
        status = call.status or int(call.failed)
        if self._older or kind == "custom_tool_call":
            result = {"exit_code": status, "duration_seconds": 0.1}
            return json.dumps({"output": output, "metadata": result}, ensure_ascii=False)
        if call.failed and call.kind == "edit":
            return output
        if call.kind in ("edit", "write"):
            return f"Wall time: 0.0000 seconds\nOutput:\nExit code: 0\nOutput:\n{output}"
        head = f"Chunk ID: 4b78dd\nWall time: 0.0000 seconds\nProcess exited with code {status}"
        return f"{head}\nOriginal token count: {len(output) // 4}\nOutput:\n{output}"

    def _happened(self, name: str, call: Call, output: str) -> Iterator[dict[str, Any]]:
        """Yield the event that tells of a call."""
        item: dict[str, Any] = {}
        if call.kind in ("edit", "write") and not call.failed:
            changes = {f"{self._cwd}/{call.given['path']}": {"type": "update"}}
            item = {"type": "FileChange", "changes": changes, "status": "completed"}
        elif call.kind in ("run", "read"):
            command = call.given.get("command") or _cat(call)
            told = {"command": ["/bin/bash", "-lc", command], "exit_code": call.status}
            item = {"type": "CommandExecution", **told, "aggregated_output": output}
        if item and not self._older:
            yield self._event("item_completed", turn_id=self._turn, item={"id": name, **item})

    def _injected(self, step: Step) -> Iterator[dict[str, Any]]:
        yield self._message("developer", step.text)

    def _titled(self, step: Step) -> Iterator[dict[str, Any]]:
        yield self._event("thread_name_updated", thread_name=step.text)

    def _compacted(self, step: Step) -> Iterator[dict[str, Any]]:
        self._size = len(step.text)
        content = [{"type": "input_text", "text": step.text}]
        history = [{"type": "message", "role": "user", "content": content}]
        yield self._line("compacted", message="", replacement_history=history)
        yield self._event("context_compacted")

    def _counted(self) -> dict[str, Any]:
        tokens = _SYSTEM_TOKENS + self._size // _BYTES_A_TOKEN
        used = {"input_tokens": tokens, "output_tokens": 40, "total_tokens": tokens + 40}
        info = {"total_token_usage": used, "last_token_usage": used}
        return self._event("token_count", info={**info, "model_context_window": 258_400})

    def _message(self, role: str, text: str, name: str = "") -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": text}]
        found = name or self._clock.id()
        return self._line("response_item", type="message", id=found, role=role, content=content)

    def _event(self, event: str, /, **members: Any) -> dict[str, Any]:
        return self._line("event_msg", type=event, **members)

    def _line(self, line: str, /, **payload: Any) -> dict[str, Any]:
        return {"timestamp": self._clock.next(1), "type": line, "payload": payload}


def _told(call: Call, cwd: str) -> Any:
    """Return what Claude Code writes beside a result for its own display: all of it once more."""
    path = f"{cwd}/{call.given.get('path', '')}"
    if call.failed:
        return f"Error: {call.result}"
    match call.kind:
        case "read":
            return {"type": "text", "file": {"filePath": path, "content": call.result}}
        case "edit":
            before = "".join(f"limit = {number}\n" for number in range(100))
            return {"filePath": path, "oldString": call.given["old"], "originalFile": before}
        case "write":
            return {"type": "create", "filePath": path, "content": call.given["content"]}
    return {"stdout": call.result, "stderr": "", "interrupted": False}


def _claude_result(call: Call, cwd: str) -> str:
    """Return a tool's result as Claude Code words it."""
    path = f"{cwd}/{call.given.get('path', '')}"
    if call.failed:
        if call.kind == "run":
            return f"Exit code {call.status}\n{call.result}"
        return f"<tool_use_error>{call.result}</tool_use_error>"
    match call.kind:
        case "read":
            lines = call.result.splitlines()
            return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, 1))
        case "edit":
            return f"The file {path} has been updated successfully."
        case "write":
            return f"File created successfully at: {path}"
    return call.result or "(Bash completed with no output)"


def _patch(call: Call) -> str:
    path = call.given["path"]
    if call.kind == "write":
        added = "\n".join(f"+{line}" for line in call.given["content"].splitlines())
        return f"*** Begin Patch\n*** Add File: {path}\n{added}\n*** End Patch"
    lines = f"@@\n-{call.given['old']}\n+{call.given['new']}"
    return f"*** Begin Patch\n*** Update File: {path}\n{lines}\n*** End Patch"


def _cat(call: Call) -> str:
    path = call.given["path"]
    return f"cat '{path}'" if " " in path else f"cat {path}"


def _function(name: str, **arguments: Any) -> dict[str, Any]:
    given = json.dumps(arguments, ensure_ascii=False)
    return {"type": "function_call", "name": name, "arguments": given}
