"""Inputs made from others at random: changed as bytes, or as the JSON that they are."""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

_CHANGES = 6  # of one input at most
_LONGEST = 64 * 1024
_NUMBERS = (0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5, 1e308, -0.0)
_TEXTS = (
    "",
    "a",
    "\0",
    "\n",
    "é",
    "中",
    "\u202e",
    "\ufeff",
    "../x",
    "a/b.md",
    "x" * 300,
    "-1",
    "null",
)
_SCALARS: tuple[Any, ...] = (None, True, False, *_NUMBERS, *_TEXTS)


def mutated(
    chance: random.Random, inputs: Sequence[bytes], tokens: Sequence[bytes], *, as_json: bool
) -> bytes:
    """Return one of the inputs, changed in one to six places."""
    content = chance.choice(inputs)
    if as_json and chance.random() < 2 / 3:
        lines = content.split(b"\n")
        at = chance.randrange(len(lines))
        changed = json_changed(chance, lines[at], tokens)
        if changed is not None:
            lines[at] = changed
            if chance.random() < 1 / 8:
                chance.shuffle(lines)
            return b"\n".join(lines)
    return bytes_changed(chance, content, inputs, tokens)


def bytes_changed(
    chance: random.Random, content: bytes, inputs: Sequence[bytes], tokens: Sequence[bytes]
) -> bytes:
    """Return an input with bytes put in, taken out, exchanged, doubled or taken from another."""
    result = bytearray(content)
    for _ in range(chance.randint(1, _CHANGES)):
        at = chance.randint(0, len(result))
        kind = chance.randrange(6)
        if kind == 0 and tokens:
            result[at:at] = chance.choice(tokens)
        elif kind == 1:
            del result[at : at + chance.choice((1, 2, 8, 64))]
        elif kind == 2:
            result[at : at + 1] = bytes((chance.randrange(256),))
        elif kind == 3:
            other = chance.choice(inputs)
            result[at:at] = other[chance.randint(0, len(other)) :]
        elif kind == 4:
            result[at:at] = result[at : at + chance.choice((1, 4, 32))] * chance.choice((1, 2, 16))
        elif at < len(result):
            result[at] ^= 1 << chance.randrange(8)
    return bytes(result)


def json_changed(chance: random.Random, text: bytes, tokens: Sequence[bytes]) -> bytes | None:
    """Return a JSON text of which one to six values are others; ``None`` for what is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for _ in range(chance.randint(1, _CHANGES)):
        value = _changed(chance, value, tokens)
    return json.dumps(value, ensure_ascii=chance.random() < 1 / 2).encode(errors="surrogatepass")


def _changed(chance: random.Random, value: Any, tokens: Sequence[bytes]) -> Any:
    """Return a value of which one place is changed: itself, or one within it."""
    places = list(_places(value))
    if not places or chance.random() < 1 / 20:
        return _other(chance, value, tokens)
    before = json.dumps(value)
    holder, key = chance.choice(places)
    kind = chance.randrange(5)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = chance.choice(places)[0]
    elif kind == 2:
        _add(chance, holder, holder[key], tokens)
    else:
        holder[key] = _other(chance, holder[key], tokens)
    try:
        after = json.dumps(value)  # what stands in two places must not be one object
    except ValueError:  # something is within itself now
        after = before
    return json.loads(after if len(after) < _LONGEST else before)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place of a value as the list or object that has it, and its key there."""
    holders = [value]
    while holders:
        holder = holders.pop()
        keys = range(len(holder)) if isinstance(holder, list) else holder
        if isinstance(holder, dict | list):
            yield from ((holder, key) for key in keys)
            holders += [holder[key] for key in keys]


def _add(chance: random.Random, holder: Any, value: Any, tokens: Sequence[bytes]) -> None:
    if isinstance(holder, list):
        holder.extend([value] * chance.choice((1, 2, 40)))
    else:
        name = chance.choice(tokens).decode(errors="replace") if tokens else "a"
        holder[name] = value


def _other(chance: random.Random, value: Any, tokens: Sequence[bytes]) -> Any:
    """Return another value in the place of one: often of its kind, at times of another."""
    kind = chance.randrange(6)
    if isinstance(value, str) and kind < 3:
        text = value.encode(errors="surrogatepass") or b" "
        return bytes_changed(chance, text, (text,), tokens).decode(errors="replace")
    if kind == 3 and tokens:
        return chance.choice(tokens).decode(errors="replace")
    if kind == 4:
        return chance.choice(([value], {"a": value}, [], {}, [value] * 3))
    return chance.choice(_SCALARS)
