"""What a text says when its broken lines are joined and its encoded runs decoded. Pure.

A token that is wrapped over two lines, or stands there as base64 or hex, is a token all the same.
What is put together here is looked at for the shapes of tokens only, never for what prose says:
words that were on two lines make no sentence. Each piece knows where it came from.
"""

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import Struct

from memd.core import regex

_CHARACTERS = "A-Za-z0-9_+/=.~-"
# The end of a line within a token: a backslash, the quotes and plus of a string put together in
# code, or the marks of a quotation or a comment on the next line.
_SEAM = r"""["'`]?[ \t]*[+\\]?[ \t]*\r?\n[ \t]*(?:[>#*|]+[ \t]*|//[ \t]*)?["'`]?"""
_BROKEN = rf"[{_CHARACTERS}]+(?:{_SEAM}[{_CHARACTERS}]+)+"
_SEAMS = re.compile(_SEAM)
_ENCODED = r"[A-Za-z0-9+/_-]{20,}={0,2}"
_HEX = re.compile(r"(?:0[xX])?((?:[0-9A-Fa-f]{2})+)")
_DIGIT = re.compile(r"[0-9]")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_PRINTABLE = re.compile(rb"[\t\n\r\x20-\x7e]+")
_BEFORE = 80  # characters of the first line that come along: the name of what is assigned
_LEAST = 20  # characters of a token that a line end would be put into
_MOST = 16 * 1024  # characters of one run; a longer one is a file's content


class DerivedPart(Struct, frozen=True):
    """Characters of a derived text and where they come from; ``exact`` when one by one."""

    start: int
    source: int
    source_end: int
    exact: bool


class Derived(Struct, frozen=True):
    """A text made from another one."""

    text: str
    pieces: tuple[DerivedPart, ...]

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the first text a span of this one comes from."""
        first, last = self._piece(start), self._piece(end - 1)
        return (
            first.source + (start - first.start if first.exact else 0),
            last.source + (end - last.start) if last.exact else last.source_end,
        )

    def _piece(self, position: int) -> DerivedPart:
        return self.pieces[bisect_right(self.pieces, position, key=lambda piece: piece.start) - 1]


def derived(text: str) -> Derived:
    """Return all that a text says when joined and decoded, each on lines of its own."""
    parts: list[str] = []
    pieces: list[DerivedPart] = []
    size = 0
    for part, result in _parts(text):
        pieces += [DerivedPart(size + p.start, p.source, p.source_end, p.exact) for p in result]
        parts.append(part)
        size += len(part) + 1
    return Derived("\n".join(parts), tuple(pieces))


def _parts(text: str) -> Iterator[tuple[str, tuple[DerivedPart, ...]]]:
    """Yield each joined or decoded text, with the parts that it was made from."""
    for match in compiled(_BROKEN).finditer(subject(text)):
        if _DIGIT.search(text, match.start(), match.end()) is None:
            continue  # prose: no part of it has one
        for spans in _windows(_lines(text, match.start(), match.end())):
            own = "".join(text[start:end] for start, end in spans)
            if not _LEAST <= len(own) <= _MOST or _DIGIT.search(own) is None:
                continue
            joined, pieces = _joined(text, spans)
            yield joined, pieces
            for decoded, span in _decoded(joined):
                source = Derived(joined, pieces).source(*span)
                yield decoded, (DerivedPart(0, *source, exact=False),)
    for decoded, span in _decoded(text):
        yield decoded, (DerivedPart(0, *span, exact=False),)


def _lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the parts of a run that its seams leave, as spans of the text."""
    spans: list[tuple[int, int]] = []
    for seam in _SEAMS.finditer(text, start, end):
        spans.append((start, seam.start()))
        start = seam.end()
    return [*spans, (start, end)]


def _windows(spans: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Yield the parts that may be one token: two or three in a row, and all that there are.

    A word at the end of the line before, or at the beginning of the next, belongs to no token.
    """
    count = len(spans)
    ends = {(at, at + size) for at in range(count) for size in (2, 3) if at + size <= count}
    for first, last in sorted(ends | {(0, count)}):
        yield spans[first:last]


def _joined(text: str, spans: list[tuple[int, int]]) -> tuple[str, tuple[DerivedPart, ...]]:
    """Return parts of a text put together, the first with what stands before it in its line."""
    first = spans[0][0]
    line = max(text.rfind("\n", 0, first) + 1, first - _BEFORE)
    pieces: list[DerivedPart] = []
    size = 0
    for start, end in [(line, spans[0][1]), *spans[1:]]:
        pieces.append(DerivedPart(size, start, end, exact=True))
        size += end - start
    return "".join(text[p.source : p.source_end] for p in pieces), tuple(pieces)


def _decoded(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield what runs of base64 or hex say in printable ASCII, with the span of each run."""
    for match in compiled(_ENCODED).finditer(subject(text)):
        run = text[match.start() : match.end()].rstrip("=")
        if len(run) > _MOST or _DIGIT.search(run) is None:
            continue
        digits = _HEX.fullmatch(run)
        result = _plain(binascii.unhexlify(digits[1])) if digits else ""
        if not result and len(run) % 4 != 1:
            padded = (run + "=" * (-len(run) % 4)).encode()
            result = _plain(base64.b64decode(padded.translate(_STANDARD)))
        if result:
            yield result, match.span()


def _plain(body: bytes) -> str:
    return body.decode("ascii") if _PRINTABLE.fullmatch(body) else ""


def subject(text: str) -> str | bytes:
    """Return a text as the library searches it fastest; a match is at the same place in both.

    For characters it has to count bytes before and behind each match.
    """
    return text.encode() if text.isascii() else text


@cache
def compiled(pattern: str) -> Any:
    """Return one of memd's own patterns, compiled when a text first needs it."""
    return regex.own(pattern)
