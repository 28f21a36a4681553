"""What a job did, for people: its result a fact a line, and its model's run turn by turn. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memd.cli import output

_TEXT = 600  # characters of one text; --json has what was kept
_TOKENS = ("input", "output", "cache_read", "cache_created")
_PATHS = ("saved", "updated", "removed", "changed")
_PLAIN = ("status", "reason", "engine", "turns", "change", "earlier_changes", "problem", "proposal")
_OWN = {*_TOKENS, *_PATHS, *_PLAIN, "usage", "hit_rate", "prefix_changed"}


def result(facts: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return a result as names and values; members that this memctl does not know come last."""
    pairs: list[tuple[str, object]] = [(name, _words(facts.get(name))) for name in _PLAIN]
    pairs += [(name, _words(facts.get(name))) for name in _PATHS]
    usage = facts.get("usage") or {}
    if any(usage.values()):
        pairs.append(("tokens", tokens(usage)))
    if facts.get("hit_rate"):
        pairs.append(("from cache", f"{facts['hit_rate']:.0%} of the input"))
    if facts.get("prefix_changed"):
        pairs.append(("new prefix", _words(facts["prefix_changed"])))
    rest = {name: value for name, value in facts.items() if name not in _OWN and value}
    pairs += [(name, _words(value)) for name, value in rest.items()]
    return pairs


def record(turns: Sequence[Mapping[str, Any]]) -> str:
    """Return the turns of a run of a model: what it said and called, and what it was told."""
    return "\n".join(line for turn in turns for line in ("", *_turn(turn)))


def tokens(usage: Mapping[str, Any]) -> str:
    """Return numbers of tokens by sort, without those that are none."""
    named = [f"{usage[name]} {name.replace('_', ' ')}" for name in _TOKENS if usage.get(name)]
    return ", ".join(named)


def _turn(turn: Mapping[str, Any]) -> Iterator[str]:
    facts = [str(turn.get("model", "")), output.duration(turn.get("seconds") or 0)]
    facts += [tokens(turn.get("usage") or {}), f"stop: {turn.get('stop') or '?'}"]
    yield f"turn {turn.get('turn', '?')}  " + " · ".join(fact for fact in facts if fact)
    for block in turn.get("reply") or ():
        yield from _block(block)
    for told in turn.get("results") or ():
        fault = f" ({told['fault']})" if told.get("fault") else ""
        yield from _text(f"  ← {told.get('tool', '')}{fault}: ", told.get("text"))


def _block(block: Any) -> Iterator[str]:
    if not isinstance(block, Mapping):
        return
    if block.get("type") == "tool_use":
        yield from _text(f"  → {block.get('name', '')} ", _words(block.get("input")))
    else:
        said = block.get("text") or block.get(str(block.get("type"))) or ""
        yield from _text("  " if block.get("type") == "text" else f"  [{block.get('type')}] ", said)


def _text(before: str, text: object) -> Iterator[str]:
    whole = str(text or "")
    shown = whole if len(whole) <= _TEXT else f"{whole[:_TEXT]}… ({len(whole)} characters)"
    first, *rest = shown.split("\n")
    yield before + first
    yield from (f"    {line}" for line in rest)


def _words(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False) if value else ""
