"""Make the model's request for a line of progress: a client's request with one message more. Pure.

Rules of this file
- The client's system text, tools and messages come first and unchanged, so that from the second
  line on they are in the model's cache. The model is the cheapest one that is configured.
- The client's thinking settings are left out: a line has 30 tokens and needs no thinking.
- The tools stay in the request, as the cache depends on them, but no tool is run.
- A sub-agent's calls are data: credentials are removed, and no text can close the tag around them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memd.agent.service import LITTLE_THOUGHT, Budget, Task, prefixed
from memd.base import prose
from memd.conversation.pieces import RecordedCall
from memd.store import secret

KIND = "progress"
CALLS = 8  # the number of a sub-agent's last calls in the request
SECONDS = 5.0
# The members of a client's request that are sent again.
_PREFIX_MEMBERS = ("system", "tools", "model", "messages", "cache_control", "tool_choice")
_TOKENS = 30  # of the reply

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


def task(
    cache: Mapping[str, Any] | None, calls: Sequence[RecordedCall], model: str, project: str
) -> Task | None:
    """Return the model's task to write a line about a sub-agent's calls.

    ``cache`` is the client's last request to its own model. Return ``None`` if it cannot be
    extended or no ``model`` is configured. ``project`` is the memory directory.
    """
    prefix = {name: value for name, value in (cache or {}).items() if name in _PREFIX_MEMBERS}
    client = prefixed(_RUN, prefix)
    if client is None or not model or _has_open_call(client):
        return None
    lines = [prose.inert(secret.scrub(call.short)) for call in calls[-CALLS:]]
    template = prose.template(KIND, "memd.progress")
    prompt = prose.fill(template, (), {"calls": "\n".join(lines)})
    messages = (*client.messages, {"role": "user", "content": prompt})
    extra = {**client.extra, **LITTLE_THOUGHT}
    return replace(client, model=model, messages=messages, project=project, extra=extra)


def _has_open_call(client: Task) -> bool:
    """Return whether a client's request ends with a tool call that has no result yet."""
    content = client.messages[-1].get("content")
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, Mapping) and block.get("type") == "tool_use" for block in blocks)
