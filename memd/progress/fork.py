"""The request for a line of progress: a client's own request and one more message. Pure.

Rules of this file
- The client's system text, tools and messages go first, to the byte, so that a cache serves them
  from the second line on; the model is the cheapest that is configured, and has a cache of its own.
- The client's thinking settings are left out: a line takes 30 tokens, and no thinking.
- The tool list stays, as the cache depends on it, but no tool is run.
- A sub-agent's calls are data: credentials are removed, and no text can close the tag around them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memd.agent.service import LITTLE_THOUGHT, Budget, Task, ToolResult, prefixed
from memd.conversation.pieces import RecordedCall
from memd.core import prose
from memd.documents import secrets

KIND = "progress"
CALLS = 8  # that a model is shown
SECONDS = 5.0
_PREFIX = ("system", "tools", "model", "messages", "cache_control", "tool_choice")
_TOKENS = 30
_REFUSED = "No tool is run here: answer with the line alone."

_RUN = Task(
    kind=KIND,
    model="",
    messages=(),
    tools=(),
    runs=frozenset(),
    budget=Budget(turns=1, reply_tokens=_TOKENS, output_tokens=_TOKENS),
    seconds=SECONDS,
    ask_seconds=SECONDS,
    retries=0,
)


class NoToolBench:
    """The tools of the run: each call is refused."""

    touched: tuple[str, ...] = ()

    def call(
        self, _name: str, _given: Mapping[str, Any], _now: float, _over: Callable[[], bool]
    ) -> ToolResult:
        """Return the refusal of a call, with the reason."""
        return ToolResult(_REFUSED, "denied")


def task(
    cache: Mapping[str, Any] | None, calls: Sequence[RecordedCall], model: str, project: str
) -> Task | None:
    """Return the model's task for a sub-agent's calls, ``None`` without a usable client request."""
    given = {name: value for name, value in (cache or {}).items() if name in _PREFIX}
    client = prefixed(_RUN, given)
    if client is None or not model or _has_open_call(client):
        return None
    shown = "\n".join(prose.inert(secrets.scrub(call.short)) for call in calls[-CALLS:])
    prompt = prose.fill(prose.template(KIND, "memd.progress"), (), {"calls": shown})
    messages = (*client.messages, {"role": "user", "content": prompt})
    extra = {**client.extra, **LITTLE_THOUGHT}
    return replace(client, model=model, messages=messages, project=project, extra=extra)


def _has_open_call(client: Task) -> bool:
    """Return whether the prefix ends with a call that has no result yet."""
    content = client.messages[-1].get("content")
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, Mapping) and block.get("type") == "tool_use" for block in blocks)
