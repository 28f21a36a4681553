"""Parse the body of a request with the positions of its messages in its text. Pure.

Rules of this file
- Text that is not replaced stays as it is, to the byte.
- A body that two parsers could read differently (a name twice, bytes that are no UTF-8, NaN, an
  infinite number) is not read at all.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

Place = tuple[int, int]  # the index of a message, and that of a block of its content
Reader = Callable[[int], tuple[Any, int]]  # from where a value begins to the value and its end
_match_space = re.compile(r"[ \t\n\r]*").match


class RequestBody(Struct, frozen=True):
    """A request's members, and the positions at which its messages start in its text.

    ``inside`` is the position behind the opening brace of the whole object.
    """

    text: str
    members: dict[str, Any]
    starts: Sequence[int]
    inside: int

    def with_changes(
        self, changes: Mapping[Place, Mapping[str, Any]], added: Mapping[str, Any]
    ) -> bytes:
        """Return the body with the content of some blocks replaced, and with ``added`` members.

        Further names in ``changes`` must be new to their block, and those in ``added`` to the body.
        """
        spans = {message: _content_spans(self.text, self.starts[message]) for message, _ in changes}
        pieces = [self.text[: self.inside]]
        pieces += [f"{_members({name: value})}," for name, value in added.items()]
        at = self.inside  # the text before this position is in ``pieces``
        for message, block in sorted(changes):  # in the order of the text
            start, end = spans[message][block]
            members = dict(changes[message, block])
            pieces += [self.text[at:start], _dump(members.pop("content"))]
            pieces += [f",{_members({name: value})}" for name, value in members.items()]
            at = end
        pieces.append(self.text[at:])
        return "".join(pieces).encode()


def read(data: bytes) -> RequestBody | None:
    """Return a parsed body, ``None`` if it is invalid or ambiguous."""
    starts: list[int] = []
    try:
        text = data.decode()

        def message(at: int) -> tuple[Any, int]:
            """Parse a message and record where it begins."""
            starts.append(at)
            return _decode(text, at)

        inside = _after_sign(text, "{", _skip_space(text, 0))
        messages = partial(_array, text, message)
        members, end = _object(text, {"messages": messages}, inside - 1)
    except (ValueError, IndexError, RecursionError):
        return None
    has_more = _skip_space(text, end) < len(text)
    return None if has_more else RequestBody(text, members, starts, inside)


def _content_spans(text: str, start: int) -> list[tuple[int, int]]:
    """Return the start and end of each block's content in a message."""
    spans: list[tuple[int, int]] = []

    def content(at: int) -> tuple[Any, int]:
        """Parse a block's content and record where it begins and ends."""
        value, end = _decode(text, at)
        spans[-1] = at, end
        return value, end

    def block(at: int) -> tuple[Any, int]:
        """Parse a block, with an empty span until its content is read."""
        spans.append((at, at))
        return _object(text, {"content": content}, at)

    _object(text, {"content": partial(_array, text, block)}, start)
    return spans


def _object(text: str, readers: Mapping[str, Reader], at: int) -> tuple[Any, int]:
    """Return the object that begins at a position, and its end.

    ``readers`` read the members of some names; the others are decoded. So is any other value than
    an object. Raises ValueError and IndexError.
    """
    if text[at] != "{":
        return _decode(text, at)
    pairs: list[tuple[str, Any]] = []
    at = _skip_space(text, at + 1)
    while text[at] != "}":
        if pairs:
            at = _skip_space(text, _after_sign(text, ",", at))
        name, at = _decode(text, at)
        _after_sign(text, '"', at - 1)  # a name is a string
        at = _skip_space(text, _after_sign(text, ":", _skip_space(text, at)))
        value, at = readers[name](at) if name in readers else _decode(text, at)
        pairs.append((name, value))
        at = _skip_space(text, at)
    return _unique_members(pairs), at + 1


def _array(text: str, read_item: Reader, at: int) -> tuple[Any, int]:
    """Return the array that begins at a position, and its end; ``read_item`` reads each item.

    Any other value is decoded. Raises ValueError and IndexError.
    """
    if text[at] != "[":
        return _decode(text, at)
    values: list[Any] = []
    at = _skip_space(text, at + 1)
    while text[at] != "]":
        if values:
            at = _skip_space(text, _after_sign(text, ",", at))
        value, at = read_item(at)
        values.append(value)
        at = _skip_space(text, at)
    return values, at + 1


def _skip_space(text: str, at: int) -> int:
    """Return the position of the first character from ``at`` on that is no white space."""
    match = _match_space(text, at)  # it matches everywhere, since it may be empty
    return match.end() if match else at


def _after_sign(text: str, sign: str, at: int) -> int:
    """Return the position behind the character ``sign``. Raises ValueError for another one."""
    if text[at] != sign:
        raise ValueError
    return at + 1


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's members. Raises ValueError if a name comes twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError
    return result


def _finite_number(digits: str) -> float:
    """Return a finite number. Raises ValueError for one that is too large."""
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError
    return value


def _refuse_constant(_: str) -> None:
    """Refuse NaN and Infinity. Raises ValueError."""
    raise ValueError


def _members(value: Mapping[str, Any]) -> str:
    """Return an object's members as JSON, without the braces."""
    return _dump(value)[1:-1]


def _dump(value: Any) -> str:
    """Return a value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_decode = json.JSONDecoder(
    object_pairs_hook=_unique_members, parse_float=_finite_number, parse_constant=_refuse_constant
).raw_decode
