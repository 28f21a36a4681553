"""Build a run that begins with a client's own request, to use the client's prompt cache. Pure.

Rules of this file
- The run begins with exactly the client's system text, tools, model and messages.
- A prompt cache also depends on the options for thinking, so these are kept, and no others. Options
  that force a tool or an output format are dropped, since a run could not work with them.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from memd.agent.task import Task

_THINKING_TOKENS = 64_000  # of one reply, where a client's setting asks for so many
# The options of a request on which a prompt cache depends.
_OPTIONS = ("thinking", "cache_control", "tool_choice", "output_config")


def prefixed(run: Task, cache: Mapping[str, Any] | None) -> Task | None:
    """Return a task that begins with a client's request, or ``None`` if ``cache`` is not usable.

    ``cache`` has the client's ``system``, ``tools``, ``model`` and ``messages``, and the options
    on which its prompt cache depends. The caller appends the message with the task.
    """
    given = cache or {}
    system, model = given.get("system") or "", given.get("model")
    tools, messages = given.get("tools") or [], given.get("messages")
    if not isinstance(model, str) or not model:
        return None
    if not messages or not _are_blocks(messages) or not _are_blocks(tools):
        return None
    if not isinstance(system, str) and not _are_blocks(system):
        return None
    extra = _options(given)
    tokens = extra.get("thinking", {}).get("budget_tokens")
    thinking = min(max(tokens, 0), _THINKING_TOKENS) if type(tokens) is int else 0
    budget = replace(
        run.budget,
        reply_tokens=run.budget.reply_tokens + thinking,
        output_tokens=run.budget.output_tokens + 2 * thinking,
    )
    return replace(
        run,
        model=model,
        messages=tuple(messages),
        tools=tuple(tools),
        system=system if isinstance(system, str) else tuple(system),
        budget=budget,
        extra=extra,
    )


def _are_blocks(value: object) -> bool:
    """Return whether a value is a list of JSON objects."""
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _options(cache: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options on which a prompt cache depends, without those that a run cannot keep."""
    given = {name: cache.get(name) for name in _OPTIONS}
    options = {name: value for name, value in given.items() if value and isinstance(value, Mapping)}
    if options.get("tool_choice", {}).get("type") != "auto":
        options.pop("tool_choice", None)
    if "format" in options.get("output_config", {}):
        del options["output_config"]
    return options
