"""Conversations of some size, as Claude Code writes them, growing line by line."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AT = "2026-03-03T10:00:{:02}.000Z"


@dataclass
class Conversation:
    """One transcript; ``tokens`` is what the server counted last."""

    path: Path
    session: str = "s"
    tokens: int = 0
    lines: int = field(default=0, init=False)

    def person(self, text: str) -> str:
        """Add a message of the person; return its id."""
        return self._line("user", text)

    def reply(self, text: str = "Done.", *, grown: int = 0, calls: int = 0) -> str:
        """Add a reply that makes the context larger, with calls and their results before it."""
        for number in range(calls):
            name = f"call-{self.lines}-{number}"
            given = {"command": f"make step{number}", "description": "a step"}
            call = {"type": "tool_use", "id": name, "name": "Bash", "input": given}
            self._line("assistant", [call])
            result = {"type": "tool_result", "tool_use_id": name, "content": "ok"}
            self._line("user", [result])
        self.tokens += grown
        return self._line("assistant", [{"type": "text", "text": text}])

    def call(self, tokens: int = 0) -> str:
        """Add a call that is not answered yet."""
        self.tokens += tokens
        given = {"command": "make all", "description": "all"}
        call = {"type": "tool_use", "id": f"open-{self.lines}", "name": "Bash", "input": given}
        return self._line("assistant", [call])

    def boundary(self, summary: str = "It was about tests.") -> None:
        """Compact it."""
        self._write({"type": "system", "subtype": "compact_boundary", "uuid": "b"})
        self._line("user", summary, isCompactSummary=True)

    def _line(self, role: str, content: Any, **members: Any) -> str:
        self.lines += 1
        name = f"m{self.lines}"
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg{self.lines}", "usage": {"input_tokens": self.tokens}}
        facts = {"type": role, "uuid": name, "timestamp": AT.format(self.lines % 60)}
        self._write({**facts, **members, "message": message})
        return name

    def _write(self, line: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line | {"sessionId": self.session}) + "\n")
