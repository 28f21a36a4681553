"""What a server may not know of a request, and what to leave out when it refuses. Pure.

Servers that speak the Messages API differ in what they take beyond messages, a system text and
tools. A request is first sent whole. When it is refused, one thing is left out and it is sent
again: the one that the refusal names, else the next in the order below, from the newest part of
the API to the oldest. What a reply came without is remembered by ``claude.py``.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from memd.model.port import Ask

# Left out one after the other. Newer models take the first of the two ways to think less at once,
# older ones only the second (``disabled``), so the first gives way to the second.
BETWEEN_TOOLS = "between_tools"
THINKING = "thinking"
EFFORT = "effort"
FORMAT = "format"
CACHE = "cache_control"
OUTPUT = "output_config"

REFUSALS = (400, 404, 422)  # what servers answer to a part of a request that they do not know
_WORDS: Mapping[str, tuple[str, ...]] = {
    BETWEEN_TOOLS: ("between_tools", "thinking"),
    THINKING: ("thinking",),
    EFFORT: ("effort",),
    FORMAT: ("format", "schema", "structured"),
    CACHE: ("cache_control",),
}
# A refusal in these words has nothing to do with what the server can.
_OTHER_REASONS = ("credit balance", "billing", "quota")


def parts(ask: Ask) -> tuple[str, ...]:
    """Return the parts of a request that a server may not know, in the order to leave them out."""
    return tuple(dict.fromkeys(_parts(ask)))


def next_part(offered: Collection[str], dropped: Collection[str], refusal: str) -> str:
    """Return what to leave out after a refusal in these words; empty when nothing helps."""
    said = refusal.lower()
    if any(reason in said for reason in _OTHER_REASONS) or _names_the_model(said):
        return ""
    left = [part for part in offered if part not in dropped]
    named = [part for part in left if any(word in said for word in _WORDS.get(part, (part,)))]
    around = [part for part in left if part in (EFFORT, FORMAT) and OUTPUT in said]
    return next(iter(named or around or left), "")


def _parts(ask: Ask) -> Iterator[str]:
    if _is_between_tools(ask.extra.get(THINKING)):
        yield BETWEEN_TOOLS
    if THINKING in ask.extra:
        yield THINKING
    if EFFORT in (ask.extra.get(OUTPUT) or {}):
        yield EFFORT
    if ask.schema is not None:
        yield FORMAT
    yield from (name for name in ask.extra if name not in (THINKING, OUTPUT, CACHE))
    if CACHE in ask.extra or any(map(_cached, (*ask.messages, *ask.tools, *_system(ask)))):
        yield CACHE


def _is_between_tools(thinking: Any) -> bool:
    return isinstance(thinking, Mapping) and thinking.get("type") == BETWEEN_TOOLS


def _system(ask: Ask) -> tuple[Any, ...]:
    return () if isinstance(ask.system, str) else ask.system


def _cached(value: Any) -> bool:
    if isinstance(value, Mapping):
        return CACHE in value or any(_cached(item) for item in value.values())
    return isinstance(value, list | tuple) and any(_cached(item) for item in value)


def _names_the_model(said: str) -> bool:
    return "model" in said and any(
        words in said for words in ("not found", "not_found", "does not exist", "unknown model")
    )
