"""The body of a request, and where the results in it stand in its text. Pure.

Rules of this file
- What is not exchanged stays as it is, to the byte.
- In doubt nothing is read: what two parsers could read differently (a name twice, bytes that are
  no UTF-8, NaN, a number that has no end) is refused.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Place = tuple[int, int]  # a message, and a block of its content
Read = Callable[[int], tuple[Any, int]]  # a value that begins there, and where it ends
_space = re.compile(r"[ \t\n\r]*").match


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A request's members, and the spans of the contents of the blocks of its messages.

    ``inside`` is the place behind the brace that opens the whole.
    """

    text: str
    members: dict[str, Any]
    spans: Mapping[Place, tuple[int, int]]
    inside: int

    def spliced(
        self, changes: Mapping[Place, Mapping[str, Any]], added: Mapping[str, Any]
    ) -> bytes:
        """Return the body with other contents of blocks, and with more members.

        A block has none of the other names yet, and the body none of the added ones.
        """
        pieces = [self.text[: self.inside], *(f"{_members({n: added[n]})}," for n in added)]
        at = self.inside
        for place in sorted(changes, key=self.spans.__getitem__):
            start, end = self.spans[place]
            members = dict(changes[place])
            content = _dump(members.pop("content"))
            pieces += (
                self.text[at:start],
                content,
                *(f",{_members({n: members[n]})}" for n in members),
            )
            at = end
        return "".join((*pieces, self.text[at:])).encode()


def read(data: bytes) -> RequestBody | None:
    """Return what a body holds, ``None`` where it cannot be read without doubt."""
    try:
        return _Reader(data.decode()).body()
    except (ValueError, IndexError, RecursionError):
        return None


class _Reader:
    """Reads a body once, from its begin to its end; everything raises ValueError or IndexError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans: dict[Place, tuple[int, int]] = {}

    def body(self) -> RequestBody:
        """Return the whole."""
        inside = self._past("{", self._skip(0))
        members, end = self._object(inside - 1, {"messages": self._messages})
        if self._skip(end) != len(self._text):
            raise ValueError
        return RequestBody(self._text, members, self._spans, inside)

    def _messages(self, at: int) -> tuple[Any, int]:
        return self._array(at, self._message)

    def _message(self, at: int, message: int) -> tuple[Any, int]:
        def content(at: int) -> tuple[Any, int]:
            return self._array(at, block)

        def block(at: int, number: int) -> tuple[Any, int]:
            def remembered(at: int) -> tuple[Any, int]:
                value, end = _decode(self._text, at)
                self._spans[message, number] = at, end
                return value, end

            return self._object(at, {"content": remembered})

        return self._object(at, {"content": content})

    def _object(self, at: int, readers: Mapping[str, Read]) -> tuple[Any, int]:
        """Read an object, some members with readers of their own; other values as they are."""
        if self._text[at] != "{":
            return _decode(self._text, at)
        pairs: list[tuple[str, Any]] = []
        at = self._skip(at + 1)
        while self._text[at] != "}":
            if pairs:
                at = self._skip(self._past(",", at))
            name, at = _decode(self._text, at)
            if self._text[at - 1] != '"':  # a name is a string
                raise ValueError
            at = self._skip(self._past(":", self._skip(at)))
            value, at = readers[name](at) if name in readers else _decode(self._text, at)
            pairs.append((name, value))
            at = self._skip(at)
        return _once(pairs), at + 1

    def _array(self, at: int, item: Callable[[int, int], tuple[Any, int]]) -> tuple[Any, int]:
        if self._text[at] != "[":
            return _decode(self._text, at)
        values: list[Any] = []
        at = self._skip(at + 1)
        while self._text[at] != "]":
            if values:
                at = self._skip(self._past(",", at))
            value, at = item(at, len(values))
            values.append(value)
            at = self._skip(at)
        return values, at + 1

    def _skip(self, at: int) -> int:
        match = _space(self._text, at)
        return match.end() if match else at

    def _past(self, sign: str, at: int) -> int:
        if self._text[at] != sign:
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
