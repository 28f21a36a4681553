"""Record a run as plain data: replies, tool calls and results, cut to size limits. Pure.

Credentials are removed before a text is cut, since no rule finds half of one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from memd.agent.step import AskModel, PlannedToolCall, Run, ToolResult
from memd.base.text import cut_bytes
from memd.base.yielding import yield_to_requests
from memd.model.port import Reply, ToolCall
from memd.store import secret

TEXT_BYTES = 2_000  # of one text
RECORD_BYTES = 200_000  # above this, texts are cut to a line
_SHORT_BYTES = 80  # of one text in a record that is too large
_SCRUBBED_BYTES = 64_000  # of one text; the rest is never shown, so it is dropped first
_ITEMS = 64  # of a list or an object
_DEPTH = 6  # levels of lists and objects


class RunRecord:
    """The turns of one run. Each is added when it ends, so that a stopped run has its turns."""

    def __init__(self) -> None:
        self.turns: list[dict[str, Any]] = []
        self._bytes_left = RECORD_BYTES

    def add(
        self,
        run: Run,
        ask: AskModel,
        reply: Reply,
        results: Sequence[tuple[PlannedToolCall, ToolResult]],
        seconds: float,
    ) -> None:
        """Append a turn: the run after the reply, and the results of its calls in order."""
        self.turns.append(
            {
                "turn": run.turn,
                "asked": {"messages": len(run.messages), "max_tokens": ask.max_tokens},
                "model": reply.model,
                "stop": reply.stop,
                "reply": [self._plain(block, 0) for block in reply.content[:_ITEMS]],
                "results": [self._result(item.call, result) for item, result in results],
                "usage": asdict(reply.usage),
                "denied": sum(result.fault == "denied" for _, result in results),
                "seconds": round(seconds, 3),
            }
        )

    def _result(self, call: ToolCall, result: ToolResult) -> dict[str, Any]:
        """Return a call's result as plain data, with its fault if it has one."""
        reported = {"tool": self._text(call.name), "text": self._text(result.text)}
        return reported | ({"fault": result.fault} if result.fault else {})

    def _plain(self, value: Any, depth: int) -> Any:
        """Return a JSON value with its texts, items and depth cut."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bool | int | float) or value is None:
            return value
        if depth >= _DEPTH:
            return "…"
        if isinstance(value, Mapping):
            items = list(value.items())[:_ITEMS]
            return {self._text(str(key)): self._plain(item, depth + 1) for key, item in items}
        if isinstance(value, list | tuple):
            return [self._plain(item, depth + 1) for item in value[:_ITEMS]]
        return "…"

    def _text(self, text: str) -> str:
        """Return a text without credentials, cut to the limit, and count its bytes."""
        yield_to_requests()
        limit = TEXT_BYTES if self._bytes_left > 0 else _SHORT_BYTES
        clean = secret.scrub(cut_bytes(text, _SCRUBBED_BYTES))
        cut = cut_bytes(clean, limit)
        self._bytes_left -= len(cut)
        return cut if cut == clean else f"{cut}…"
