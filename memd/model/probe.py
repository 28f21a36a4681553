"""Find the part of a request to leave out after a server refused it. Pure.

Servers with the Messages API differ in what they accept besides messages, a system text and tools.
A request is first sent with all parts. If it is refused, one part is left out and it is sent again:
the part that the refusal names, else the next in the order below, from the newest part of the API
to the oldest. ``claude.py`` remembers the parts that had to be left out.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from memd.model.port import Ask

# The parts in the order in which they are left out. Newer models accept ``between_tools``, older
# ones only ``disabled``, so the first is replaced by the second before thinking is left out.
BETWEEN_TOOLS = "between_tools"
THINKING = "thinking"
EFFORT = "effort"
FORMAT = "format"
CACHE = "cache_control"
OUTPUT = "output_config"

REFUSALS = (400, 404, 422)  # statuses of servers for a part of a request that they do not know
# The words by which a refusal names a part; any other part is named by itself.
_PART_WORDS: Mapping[str, tuple[str, ...]] = {
    BETWEEN_TOOLS: ("between_tools", "thinking"),
    THINKING: ("thinking",),
    EFFORT: ("effort",),
    FORMAT: ("format", "schema", "structured"),
    CACHE: ("cache_control",),
}
# Refusals with these words are not about parts of the request.
_OTHER_REASONS = ("credit balance", "billing", "quota")


def parts(ask: Ask) -> tuple[str, ...]:
    """Return the optional parts of a request, in the order in which to leave them out."""
    return tuple(dict.fromkeys(_parts(ask)))


def next_part(offered: Collection[str], dropped: Collection[str], refusal: str) -> str:
    """Return the part of ``offered`` to leave out after a refusal, "" if that would not help.

    ``dropped`` are the parts that were left out before.
    """
    refusal = refusal.lower()
    if any(reason in refusal for reason in _OTHER_REASONS) or _names_the_model(refusal):
        return ""
    sent = [part for part in offered if part not in dropped]
    candidates = [part for part in sent if _names_part(refusal, part)]
    if not candidates and OUTPUT in refusal:  # it names the member that has these two parts
        candidates = [part for part in sent if part in (EFFORT, FORMAT)]
    return next(iter(candidates or sent), "")


def _names_part(refusal: str, part: str) -> bool:
    """Return whether a refusal has one of the words for a part."""
    return any(word in refusal for word in _PART_WORDS.get(part, (part,)))


def _parts(ask: Ask) -> Iterator[str]:
    """Yield the optional parts of a request, some of them twice."""
    if _is_between_tools(ask.extra.get(THINKING)):
        yield BETWEEN_TOOLS
    if THINKING in ask.extra:
        yield THINKING
    if EFFORT in (ask.extra.get(OUTPUT) or {}):
        yield EFFORT
    if ask.schema is not None:
        yield FORMAT
    yield from (name for name in ask.extra if name not in (THINKING, OUTPUT, CACHE))
    if CACHE in ask.extra or _has_cache_mark((ask.messages, ask.tools, ask.system)):
        yield CACHE


def _is_between_tools(thinking: Any) -> bool:
    """Return whether a request's ``thinking`` asks for thinking between tool calls."""
    return isinstance(thinking, Mapping) and thinking.get("type") == BETWEEN_TOOLS


def _has_cache_mark(value: Any) -> bool:
    """Return whether a value has a cache mark at any depth."""
    if isinstance(value, Mapping):
        return CACHE in value or any(_has_cache_mark(item) for item in value.values())
    return isinstance(value, list | tuple) and any(_has_cache_mark(item) for item in value)


def _names_the_model(refusal: str) -> bool:
    """Return whether a refusal says that the model does not exist."""
    return "model" in refusal and any(
        words in refusal for words in ("not found", "not_found", "does not exist", "unknown model")
    )
