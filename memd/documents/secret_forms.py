"""Joining the broken lines of a text and decoding its base64 and hex, to find hidden tokens. Pure.

A token that is wrapped over two lines, or encoded, is a token all the same. The results are only
searched for the shapes of tokens and not for prose, since words from two lines make no sentence.
Each part of a result knows its place in the text.
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

_CHARACTERS = "A-Za-z0-9_+/=.~-"  # of tokens, for a regular expression
# The end of a line within a token: a backslash, the quotes and plus of a string put together in
# code, or the marks of a quotation or a comment on the next line.
_SEAM = r"""["'`]?[ \t]*[+\\]?[ \t]*\r?\n[ \t]*(?:[>#*|]+[ \t]*|//[ \t]*)?["'`]?"""
_BROKEN_RUN = rf"[{_CHARACTERS}]+(?:{_SEAM}[{_CHARACTERS}]+)+"  # on several lines
_SEAMS = re.compile(_SEAM)
_ENCODED_RUN = r"[A-Za-z0-9+/_-]{20,}={0,2}"  # in base64 or hex
_HEX = re.compile(r"(?:0[xX])?((?:[0-9A-Fa-f]{2})+)")
_DIGIT = re.compile(r"[0-9]")
_STANDARD_SIGNS = bytes.maketrans(b"-_", b"+/")  # from base64's form for addresses
_PRINTABLE = re.compile(rb"[\t\n\r\x20-\x7e]+")
_NAME_CHARACTERS = 80  # of the first line that come along: the name of what is assigned
_LEAST_TOKEN_CHARACTERS = 20  # a shorter token would not be broken over lines
_MOST_RUN_CHARACTERS = 16 * 1024  # a longer run is a file's content


class DerivedPart(Struct, frozen=True):
    """A part of a derived text, and its place in the first text."""

    start: int  # of the part in the derived text
    source: int  # of the part in the first text
    source_end: int
    exact: bool  # the characters are the same; else they were decoded from that place


class DerivedText(Struct, frozen=True):
    """A text made from another one, the first text, by joining lines and decoding."""

    text: str
    parts: tuple[DerivedPart, ...]  # sorted by start

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the first text from which a span of this one was made.

        Of a decoded part it is all of the encoded run.
        """
        first, last = self._part_at(start), self._part_at(end - 1)
        source_start = first.source + (start - first.start) if first.exact else first.source
        source_end = last.source + (end - last.start) if last.exact else last.source_end
        return source_start, source_end

    def _part_at(self, position: int) -> DerivedPart:
        """Return the part that has the character at a position."""
        number_behind = bisect_right(self.parts, position, key=lambda part: part.start)
        return self.parts[number_behind - 1]


def derived_text(text: str) -> DerivedText:
    """Return all joined lines and decoded runs of a text, each on lines of its own."""
    texts: list[str] = []
    all_parts: list[DerivedPart] = []
    size = 0  # characters of ``texts`` with the line ends between them
    for result, parts in _joined_and_decoded(text):
        for part in parts:
            start = size + part.start
            all_parts.append(DerivedPart(start, part.source, part.source_end, part.exact))
        texts.append(result)
        size += len(result) + 1
    return DerivedText("\n".join(texts), tuple(all_parts))


def _joined_and_decoded(text: str) -> Iterator[tuple[str, tuple[DerivedPart, ...]]]:
    """Yield each joined or decoded text, with the parts that it was made from."""
    for match in compiled(_BROKEN_RUN).finditer(searchable(text)):
        if _DIGIT.search(text, match.start(), match.end()) is None:
            continue  # prose: a token has a digit
        for spans in _windows(_spans_between_seams(text, match.start(), match.end())):
            characters = "".join(text[start:end] for start, end in spans)
            has_digit = _DIGIT.search(characters) is not None
            if not has_digit or len(characters) < _LEAST_TOKEN_CHARACTERS:
                continue
            if len(characters) > _MOST_RUN_CHARACTERS:
                continue
            joined, parts = _joined(text, spans)
            yield joined, parts
            for decoded, span in _decoded(joined):
                source_start, source_end = DerivedText(joined, parts).source(*span)
                yield decoded, (DerivedPart(0, source_start, source_end, exact=False),)
    for decoded, (run_start, run_end) in _decoded(text):
        yield decoded, (DerivedPart(0, run_start, run_end, exact=False),)


def _spans_between_seams(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of a broken run without the line ends and marks between its lines."""
    spans: list[tuple[int, int]] = []
    line_start = start
    for seam in _SEAMS.finditer(text, start, end):
        spans.append((line_start, seam.start()))
        line_start = seam.end()
    return [*spans, (line_start, end)]


def _windows(spans: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Yield the lines that may be one token together: two or three in a row, and all of them.

    Not only all of them: a word at the end of the line before, or at the beginning of the next, may
    not belong to the token.
    """
    count = len(spans)
    windows = {(0, count)}
    for size in (2, 3):
        windows |= {(first, first + size) for first in range(count - size + 1)}
    for first, end in sorted(windows):
        yield spans[first:end]


def _joined(text: str, spans: list[tuple[int, int]]) -> tuple[str, tuple[DerivedPart, ...]]:
    """Return spans of a text put together, and the parts of the result.

    The words before the first span in its line come along: they may be the name of a credential.
    """
    (first_start, first_end), *others = spans
    line_start = text.rfind("\n", 0, first_start) + 1
    start_with_name = max(line_start, first_start - _NAME_CHARACTERS)
    parts: list[DerivedPart] = []
    size = 0
    for start, end in [(start_with_name, first_end), *others]:
        parts.append(DerivedPart(size, start, end, exact=True))
        size += end - start
    return "".join(text[part.source : part.source_end] for part in parts), tuple(parts)


def _decoded(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the printable ASCII that runs of base64 or hex decode to, with the span of each run."""
    for match in compiled(_ENCODED_RUN).finditer(searchable(text)):
        run = text[match.start() : match.end()].rstrip("=")
        if len(run) > _MOST_RUN_CHARACTERS or _DIGIT.search(run) is None:
            continue
        hex_match = _HEX.fullmatch(run)
        decoded = _printable(binascii.unhexlify(hex_match[1])) if hex_match else ""
        if not decoded and len(run) % 4 != 1:  # no base64 has such a length
            padding = "=" * (-len(run) % 4)
            base64_text = f"{run}{padding}".encode().translate(_STANDARD_SIGNS)
            decoded = _printable(base64.b64decode(base64_text))
        if decoded:
            yield decoded, match.span()


def _printable(body: bytes) -> str:
    """Return bytes as text, "" if they are not printable ASCII."""
    return body.decode("ascii") if _PRINTABLE.fullmatch(body) else ""


def searchable(text: str) -> str | bytes:
    """Return a text in the form that google-re2 searches fastest: bytes, if it is ASCII.

    In a text of characters the library has to count bytes around each match. In ASCII a match is at
    the same place in both forms.
    """
    return text.encode() if text.isascii() else text


@cache
def compiled(pattern: str) -> Any:
    """Return one of memd's own patterns, compiled when a text first needs it."""
    return regex.own(pattern)
