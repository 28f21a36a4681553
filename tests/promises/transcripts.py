"""Transcripts as Claude Code and Codex write them, line by line, while a conversation goes on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import samples


class Conversation:
    """A transcript of Claude Code's that grows; each method returns the id of the line it adds."""

    def __init__(self, home: str, cwd: str, session: str) -> None:
        self.cwd = cwd
        self.session = session
        self.path = samples.place(home, cwd, session)
        self.lines = 0
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)

    def user(self, content: Any, **more: Any) -> str:
        """Add what the person says."""
        return self._add("user", {"role": "user", "content": content}, more)

    def assistant(self, *blocks: Mapping[str, Any] | str, **more: Any) -> str:
        """Add what the assistant says and calls."""
        content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
        message = {"id": f"msg_{self.session}_{self.lines}", "role": "assistant"}
        return self._add("assistant", {**message, "content": content}, more)

    def tool(self, name: str, given: Mapping[str, Any], output: str, **more: Any) -> str:
        """Add a tool's call and its output."""
        call = f"toolu_{self.session}_{self.lines}"
        self.assistant({"type": "tool_use", "id": call, "name": name, "input": given}, **more)
        result = {"type": "tool_result", "tool_use_id": call, "content": output}
        return self.user([result], **more)

    def attachment(self, content: Mapping[str, Any]) -> str:
        """Add what a hook brought beside a message."""
        return self._add("attachment", {}, {"attachment": content})

    def _add(self, kind: str, message: Mapping[str, Any], more: Mapping[str, Any]) -> str:
        self.lines += 1
        name = f"{self.session}-{self.lines:05d}"
        line = {
            "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": self.cwd,
            "sessionId": self.session, "version": "2.1.329", "gitBranch": "main", "uuid": name,
            "timestamp": f"2026-03-03T09:{self.lines // 60 % 60:02d}:{self.lines % 60:02d}.000Z",
            "type": kind, "message": message, **more,
        }  # fmt: skip
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return name


def rollout(path: Path, cwd: str, *said: tuple[str, str]) -> str:
    """Write a file of Codex's: pairs of who speaks and what; return its path."""
    lines: list[dict[str, Any]] = [_line("session_meta", id="s", cwd=cwd, cli_version="0.169.0")]
    for who, text in said:
        if who == "user":
            lines.append(_line("event_msg", type="user_message", message=text, kind="plain"))
        else:
            content = [{"type": "output_text", "text": text}]
            lines.append(_line("response_item", type="message", role=who, content=content))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def _line(kind: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-03-03T09:00:00Z", "type": kind, "payload": payload}
