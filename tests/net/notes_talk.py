"""What tests of notes share: a conversation in a session, and requests about its notes."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.net.kit import Project

TITLES = (
    "Session Title",
    "Current State",
    "Task specification",
    "Files and Functions",
    "Workflow",
    "Errors & Corrections",
    "Codebase and System Documentation",
    "Learnings",
    "Key results",
    "Worklog",
)
Json = Any  # a decoded JSON value


class Session:
    """A conversation that a client keeps itself and sends as ``messages``."""

    def __init__(self, project: Project, name: str = "s1") -> None:
        self.project = project
        self.name = name
        self.messages: list[dict[str, Json]] = []
        self.file = project.folder / name / "session-memory/summary.md"

    def user(self, words: str) -> "Session":
        return self._add("user", words)

    def reply(self, words: str = "Done.", *calls: dict[str, Json], tokens: int = 0) -> "Session":
        """Add a reply, after which the context has so many tokens; the calls stay open."""
        blocks = [{"type": "text", "text": words}, *calls]
        usage = {"usage": {"input_tokens": tokens, "output_tokens": 0}} if tokens else {}
        return self._add("assistant", blocks, **usage)

    def ran(
        self,
        tool: str,
        result: str = "ok",
        *,
        tokens: int = 0,
        is_error: bool = False,
        **given: Json,
    ) -> "Session":
        """Add a call of a tool and its result."""
        identity = f"t{len(self.messages)}"
        call = {"type": "tool_use", "id": identity, "name": tool, "input": given}
        answered = {"type": "tool_result", "tool_use_id": identity, "content": result}
        self.reply("I look.", call, tokens=tokens)
        return self._add("user", [{**answered, "is_error": True} if is_error else answered])

    def _add(self, role: str, content: Json, **more: Json) -> "Session":
        identity = f"m{len(self.messages)}"
        self.messages.append({"role": role, "content": content, "id": identity, **more})
        return self

    def update(self, **more: Json) -> dict[str, Any]:
        """Ask for an update and wait for its end; return its result."""
        given = {"session_id": self.name, "messages": self.messages, "wait": True, **more}
        result: dict[str, Any] = self.project.call("notes.update", **given)
        return result

    def gate(self, **more: Json) -> str | None:
        """Return the gate at which an update ends; ``None`` if it was written."""
        gate: str | None = self.update(**more).get("gate")
        return gate

    def read(self) -> dict[str, Any]:
        """Return what a reader gets."""
        found: dict[str, Any] = self.project.call("notes.read", session_id=self.name)
        return found

    def section(self, title: str) -> str:
        """Return what a section says to a reader."""
        return str(self.read()["content"]).partition(f"# {title}\n")[2].partition("\n# ")[0]


def form(file: Path) -> list[str]:
    """Return the titles and italic lines of notes on the disk, in order."""
    lines = file.read_text().splitlines()
    pairs = pairwise(lines)
    return [part for title, guide in pairs if title.startswith("# ") for part in (title, guide)]
