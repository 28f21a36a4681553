"""The body of a request, and where the results in it stand in its text. Pure.

Rules of this file
- What is not exchanged stays as it is, to the byte.
- In doubt nothing is read: what two parsers could read differently (a name twice, bytes that are
  no UTF-8, NaN, a number that has no end) is refused.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

Place = tuple[int, int]  # a message, and a block of its content
Read = Callable[[int], tuple[Any, int]]  # from where a value begins to the value and its end
_space = re.compile(r"[ \t\n\r]*").match


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A request's members, and where its messages begin in its text.

    ``inside`` is the place behind the brace that opens the whole.
    """

    text: str
    members: dict[str, Any]
    starts: Sequence[int]
    inside: int

    def spliced(
        self, changes: Mapping[Place, Mapping[str, Any]], added: Mapping[str, Any]
    ) -> bytes:
        """Return the body with other contents of blocks, and with more members.

        A block has none of the other names yet, and the body none of the added ones.
        """
        spans = {message: _spans(self.text, self.starts[message]) for message, _ in changes}
        pieces = [self.text[: self.inside], *(f"{_members({n: added[n]})}," for n in added)]
        at = self.inside
        for message, block in sorted(changes):
            start, end = spans[message][block]
            members = dict(changes[message, block])
            content = _dump(members.pop("content"))
            more = (f",{_members({name: members[name]})}" for name in members)
            pieces += self.text[at:start], content, *more
            at = end
        return "".join((*pieces, self.text[at:])).encode()


def read(data: bytes) -> RequestBody | None:
    """Return what a body holds, ``None`` where it cannot be read without doubt."""
    starts: list[int] = []
    try:
        text = data.decode()

        def message(at: int) -> tuple[Any, int]:
            starts.append(at)
            return _decode(text, at)

        inside = _past(text, "{", _skip(text, 0))
        messages = partial(_array, text, message)
        members, end = _object(text, {"messages": messages}, inside - 1)
        whole = _skip(text, end) == len(text)
    except (ValueError, IndexError, RecursionError):
        return None
    return RequestBody(text, members, starts, inside) if whole else None


def _spans(text: str, start: int) -> list[tuple[int, int]]:
    """Return where the contents of a message's blocks begin and end."""
    spans: list[tuple[int, int]] = []

    def content(at: int) -> tuple[Any, int]:
        value, end = _decode(text, at)
        spans[-1] = at, end
        return value, end

    def block(at: int) -> tuple[Any, int]:
        spans.append((at, at))
        return _object(text, {"content": content}, at)

    _object(text, {"content": partial(_array, text, block)}, start)
    return spans


def _object(text: str, readers: Mapping[str, Read], at: int) -> tuple[Any, int]:
    """Read an object, some members with readers of their own; another value as it is."""
    if text[at] != "{":
        return _decode(text, at)
    pairs: list[tuple[str, Any]] = []
    at = _skip(text, at + 1)
    while text[at] != "}":
        if pairs:
            at = _skip(text, _past(text, ",", at))
        name, at = _decode(text, at)
        _past(text, '"', at - 1)  # a name is a string
        at = _skip(text, _past(text, ":", _skip(text, at)))
        value, at = readers[name](at) if name in readers else _decode(text, at)
        pairs.append((name, value))
        at = _skip(text, at)
    return _once(pairs), at + 1


def _array(text: str, item: Read, at: int) -> tuple[Any, int]:
    """Read an array with a reader of its items; another value as it is."""
    if text[at] != "[":
        return _decode(text, at)
    values: list[Any] = []
    at = _skip(text, at + 1)
    while text[at] != "]":
        if values:
            at = _skip(text, _past(text, ",", at))
        value, at = item(at)
        values.append(value)
        at = _skip(text, at)
    return values, at + 1


def _skip(text: str, at: int) -> int:
    match = _space(text, at)
    return match.end() if match else at


def _past(text: str, sign: str, at: int) -> int:
    if text[at] != sign:
        raise ValueError
    return at + 1


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError
    return result


def _number(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError
    return value


def _constant(_: str) -> None:
    raise ValueError


def _members(value: Mapping[str, Any]) -> str:
    return _dump(value)[1:-1]


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_decode = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=_number, parse_constant=_constant
).raw_decode
