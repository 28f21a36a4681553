"""Conversations of tests, as clients send them, and memd's part of them without a disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memd.context import planning, preview
from memd.context.planning import KnownConversation, Resync, Settled, ToStore
from memd.context.requests import ContextRequest
from memd.context.values import StoredResult
from memd.core.settings import ContextSettings, Settings
from memd.core.values import Project

PROJECT = Project("/p", "/p", "/p/memory", "cwd", "/base", enabled=True)
Message = dict[str, Any]


def settings(**context: Any) -> Settings:
    """Return settings with these options of the table ``context``."""
    return Settings(context=ContextSettings(**context))


def user(*content: Any) -> Message:
    """Return a message of the user: a text, or blocks."""
    given = content[0] if isinstance(content[0], str) else list(content)
    return {"role": "user", "content": given}


def assistant(*blocks: Any, **members: Any) -> Message:
    """Return a reply; a text is one block of it."""
    return {"role": "assistant", "content": [_block(block) for block in blocks], **members}


def call(name: str, tool: str = "Bash") -> Message:
    """Return a call's block."""
    return {"type": "tool_use", "id": name, "name": tool, "input": {}}


def result(name: str, content: Any, **members: Any) -> Message:
    """Return a result's block."""
    return {"type": "tool_result", "tool_use_id": name, "content": content, **members}


def thinking(text: str = "hm") -> Message:
    """Return a block of thinking."""
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


def exchange(name: str, content: Any, tool: str = "Bash") -> list[Message]:
    """Return a call and its result."""
    return [assistant(call(name, tool)), user(result(name, content))]


def lines(characters: int) -> str:
    """Return a text of so many characters, in lines."""
    return ("0123456789" * 7 + "line end\n") * (characters // 79) + "x" * (characters % 79)


def _block(block: Any) -> Message:
    return {"type": "text", "text": block} if isinstance(block, str) else block


@dataclass
class Conversation:
    """A client's conversation with memd: what was said, what memd knows, what was stored.

    Storing fails for calls that ``failing`` names.
    """

    known: KnownConversation = field(default_factory=KnownConversation)
    settings: Settings = field(default_factory=Settings)
    reader: str = "read_stored"
    now: float = 1_000.0
    failing: Mapping[str, str] = field(default_factory=dict)
    base: str = "/base/-p/s/tool-results"

    def request(self, messages: Sequence[Any], **given: Any) -> ContextRequest:
        """Return what a client asks that sends these messages behind all that memd has."""
        hashes = self.known.hashes
        usual: dict[str, Any] = {
            "place": len(hashes),
            "hash": hashes[-1].hex() if hashes else "",
            "messages": messages,
            "reader": self.reader,
        }
        return ContextRequest(PROJECT, self.settings, "s", **{**usual, **given})

    def plan(self, *messages: Any, **given: Any) -> Settled | Resync:
        """Plan new messages, store what should be, and note what is known then."""
        made = planning.plan(self.known, self.request(messages, **given), now=self.now)
        if isinstance(made, Resync):
            return made
        settled = planning.settled_plan(made, {item.key: self.store(item) for item in made.store})
        decisions = {**self.known.decisions, **{each.key: each for each in settled.decisions}}
        self.known = KnownConversation(
            settled.facts, settled.hashes, decisions, settled.request, self.now, may_clear=True
        )
        return settled

    def sent(self, *messages: Any, **given: Any) -> Settled:
        """Plan new messages where no resync is needed."""
        settled = self.plan(*messages, **given)
        assert isinstance(settled, Settled)
        return settled

    def store(self, item: ToStore) -> StoredResult | str:
        """Return what storing a result comes to."""
        if item.tool_use_id in self.failing:
            return self.failing[item.tool_use_id]
        path = f"{self.base}/{item.tool_use_id}.txt"
        return StoredResult(path, len(item.text.encode()), preview.stored_preview(item.text, path))

    def action(self, name: str) -> str:
        """Return what is decided about the result of a call, "" for nothing."""
        found = [d.action for d in self.known.decisions.values() if d.tool_use_id == name]
        return found[-1] if found else ""


def edited(settled: Settled) -> list[str]:
    """Return the calls whose results are replaced."""
    return [edit.tool_use_id for edit in settled.edits]
