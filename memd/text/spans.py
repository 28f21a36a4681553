"""Where two versions of one text differ, in whole lines. Pure.

From one version of a large file to the next nearly all of it is the same. Whoever has looked at
the one need only look at what lies between the beginning and the end that both have in common.
"""

from bisect import bisect_left
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """What differs: from byte ``start`` of both, up to ``before`` of one, ``after`` of the other.

    The three stand at the beginning of a line or at the end of the text.
    """

    start: int
    before: int
    after: int


def differing(before: bytes, after: bytes) -> Span:
    """Return the lines that two texts do not have in common at their beginning and their end."""
    shorter = min(len(before), len(after))
    if before[:shorter] == after[:shorter]:
        start = shorter
    else:
        start = bisect_left(range(shorter), 1, key=lambda n: before[: n + 1] != after[: n + 1])
    start = before.rfind(b"\n", 0, start) + 1
    most = shorter - start
    same = bisect_left(range(most), 1, key=lambda n: not before.endswith(after[-n - 1 :]))
    if not all(_begins_a_line(text, start, len(text) - same) for text in (before, after)):
        line = after.find(b"\n", len(after) - same)
        same = 0 if line < 0 else len(after) - line - 1
    return Span(start, len(before) - same, len(after) - same)


def around(text: bytes, start: int, end: int, room: int) -> bytes:
    """Return the lines between two bytes of a text, and at least so many bytes on both sides."""
    first = text.rfind(b"\n", 0, max(0, start - room)) + 1
    last = text.find(b"\n", min(len(text), end + room))
    return text[first : len(text) if last < 0 else last + 1]


def _begins_a_line(text: bytes, start: int, at: int) -> bool:
    """Say whether a line begins at a byte; one does at ``start``."""
    return at == start or text.startswith(b"\n", at - 1)
