"""Three-way merge of two texts (``ours``, ``theirs``) that began with the same ``base``. Pure.

Rules of this file
- Lines are matched by patience diff: common ends first, then lines that both texts have exactly
  once, so that a blank line is never taken for another one far away. What is left is compared in
  full where it is small; else it counts as changed. So the time is bounded for any input.
- Between two lines that all three texts share lies a *chunk*. A chunk that only one side changed,
  or both in the same way, is merged here; any other is passed to the caller, who may give up.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple, TypeVar

from msgspec import Struct

from memd.documents.frontmatter import BOM

T = TypeVar("T")
_FULLY_COMPARED_PAIRS = 40_000  # of lines: 200 against 200, a few milliseconds at worst


class Chunk(Struct, frozen=True):
    """The lines that each text has between two lines that all three share."""

    base: tuple[bytes, ...]
    ours: tuple[bytes, ...]
    theirs: tuple[bytes, ...]
    at_end: bool  # no line that all three share follows


class SplitText(Struct, frozen=True):
    """A text as lines that all have a line end."""

    lines: tuple[bytes, ...]
    had_last_line_end: bool  # false if the last line got its line end here
    bom: bytes  # the byte order mark before the first line, or empty

    @classmethod
    def of(cls, content: bytes) -> "SplitText":
        """Split a text into lines."""
        bom = BOM if content.startswith(BOM) else b""
        lines = content[len(bom) :].splitlines(keepends=True)
        had_last_line_end = not lines or lines[-1].endswith((b"\n", b"\r"))
        if not had_last_line_end:
            lines[-1] += b"\r\n" if b"\r\n" in content else b"\n"
        return cls(tuple(lines), had_last_line_end, bom)


# Returns the merged lines of a chunk that both sides changed, or ``None`` for a conflict.
Resolve = Callable[[Chunk], Sequence[bytes] | None]


class _Stretch(NamedTuple):
    """Lines of two texts that are to be compared: a[a_start:a_end] with b[b_start:b_end]."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int


def merged_value(base: T, ours: T, theirs: T) -> tuple[T] | None:
    """Return the merged value, ``None`` if both sides changed it in different ways.

    The value is in a tuple, since it may be ``None`` or empty itself.
    """
    if ours in (base, theirs):
        return (theirs,)
    return (ours,) if theirs == base else None


def merge(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes], resolve: Resolve
) -> list[bytes] | None:
    """Return the merged lines; ``None`` when ``resolve`` gives up on a chunk that both changed."""
    merged: list[bytes] = []
    for part in _shared_lines_and_chunks(base, ours, theirs):
        if isinstance(part, bytes):
            merged.append(part)
            continue
        merged_lines = merged_value(part.base, part.ours, part.theirs)
        lines = merged_lines[0] if merged_lines else resolve(part)
        if lines is None:
            return None
        merged += lines
    return merged


def joined_lines(
    base: SplitText, ours: SplitText, theirs: SplitText, lines: Sequence[bytes]
) -> bytes:
    """Return merged lines as bytes; the last line has no end if neither side had one."""
    merged_bom = merged_value(base.bom, ours.bom, theirs.bom)
    bom = merged_bom[0] if merged_bom else ours.bom
    content = b"".join(lines)
    if not (ours.had_last_line_end or theirs.had_last_line_end):
        content = content.removesuffix(b"\n").removesuffix(b"\r")
    return bom + content


def matched_lines(a: Sequence[bytes], b: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return which lines of ``a`` are matched with which lines of ``b``, as pairs of numbers.

    Both numbers rise from pair to pair.
    """
    pairs: list[tuple[int, int]] = []
    stretches = [_Stretch(0, len(a), 0, len(b))]  # still to be compared
    while stretches:
        common_ends, stretch = _without_common_ends(a, b, stretches.pop())
        pairs += common_ends
        anchors = _anchors(a, b, stretch)
        pairs += anchors
        if anchors:
            stretches += _stretches_between(anchors, stretch)
        else:
            pairs += _fully_compared(a, b, stretch)
    return sorted(pairs)


def _without_common_ends(
    a: Sequence[bytes], b: Sequence[bytes], stretch: _Stretch
) -> tuple[list[tuple[int, int]], _Stretch]:
    """Return the pairs of equal lines at both ends of a stretch, and the stretch between them."""
    a_start, a_end, b_start, b_end = stretch
    pairs: list[tuple[int, int]] = []
    while a_start < a_end and b_start < b_end and a[a_start] == b[b_start]:
        pairs.append((a_start, b_start))
        a_start, b_start = a_start + 1, b_start + 1
    while a_start < a_end and b_start < b_end and a[a_end - 1] == b[b_end - 1]:
        a_end, b_end = a_end - 1, b_end - 1
        pairs.append((a_end, b_end))
    return pairs, _Stretch(a_start, a_end, b_start, b_end)


def _stretches_between(anchors: list[tuple[int, int]], stretch: _Stretch) -> list[_Stretch]:
    """Return the stretches before, between and behind the matched lines of a stretch."""
    line_before_stretch = (stretch.a_start - 1, stretch.b_start - 1)
    line_behind_stretch = (stretch.a_end, stretch.b_end)
    return [
        _Stretch(a_before + 1, a_behind, b_before + 1, b_behind)
        for (a_before, b_before), (a_behind, b_behind) in pairwise(
            [line_before_stretch, *anchors, line_behind_stretch]
        )
    ]


def _fully_compared(
    a: Sequence[bytes], b: Sequence[bytes], stretch: _Stretch
) -> list[tuple[int, int]]:
    """Return the matched lines of a stretch without anchors; none if it is too large to compare."""
    a_start, a_end, b_start, b_end = stretch
    pairs_of_lines = (a_end - a_start) * (b_end - b_start)
    if not 0 < pairs_of_lines <= _FULLY_COMPARED_PAIRS:
        return []
    matcher = SequenceMatcher(None, a[a_start:a_end], b[b_start:b_end], autojunk=False)
    return [
        (a_start + a_offset + number, b_start + b_offset + number)
        for a_offset, b_offset, size in matcher.get_matching_blocks()
        for number in range(size)
    ]


def _shared_lines_and_chunks(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> list[bytes | Chunk]:
    """Return the lines that all three texts share and, between them, the chunks that differ."""
    # Numbers of lines in ``ours`` and in ``theirs``, by the number of the same line in ``base``.
    in_ours, in_theirs = dict(matched_lines(base, ours)), dict(matched_lines(base, theirs))
    shared = [
        (number, in_ours[number], in_theirs[number])
        for number in sorted(in_ours.keys() & in_theirs.keys())
    ]
    parts: list[bytes | Chunk] = []
    base_start = ours_start = theirs_start = 0
    for base_end, ours_end, theirs_end in [*shared, (len(base), len(ours), len(theirs))]:
        at_end = base_end == len(base)
        if (base_start, ours_start, theirs_start) != (base_end, ours_end, theirs_end):
            chunk = Chunk(
                tuple(base[base_start:base_end]),
                tuple(ours[ours_start:ours_end]),
                tuple(theirs[theirs_start:theirs_end]),
                at_end,
            )
            parts.append(chunk)
        if not at_end:
            parts.append(base[base_end])
        base_start, ours_start, theirs_start = base_end + 1, ours_end + 1, theirs_end + 1
    return parts


def _anchors(a: Sequence[bytes], b: Sequence[bytes], stretch: _Stretch) -> list[tuple[int, int]]:
    """Return the longest list of lines that stand once in both texts and in the same order.

    Only the lines of the stretch count. A line is a pair of its numbers in ``a`` and ``b``.
    """
    a_numbers = range(stretch.a_start, stretch.a_end)
    b_numbers = range(stretch.b_start, stretch.b_end)
    times_in_a = Counter(a[stretch.a_start : stretch.a_end])
    times_in_b = Counter(b[stretch.b_start : stretch.b_end])
    number_in_b = {b[number]: number for number in b_numbers if times_in_b[b[number]] == 1}
    pairs = [
        (number, number_in_b[a[number]])
        for number in a_numbers
        if times_in_a[a[number]] == 1 and a[number] in number_in_b
    ]
    return _longest_rising(pairs)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of ``pairs`` whose second numbers rise (patience sorting).

    A subsequence of each length is remembered by its last pair, the one with the least number.
    """
    last_numbers: list[int] = []  # by length - 1: the second number of that last pair
    last_pairs: list[int] = []  # by length - 1: its position in ``pairs``
    previous: list[int] = []  # by position: the pair before it in its subsequence, -1 for none
    for position, (_, number) in enumerate(pairs):
        length = bisect_left(last_numbers, number)  # of the longest subsequence it can continue
        previous.append(last_pairs[length - 1] if length else -1)
        last_numbers[length : length + 1] = [number]
        last_pairs[length : length + 1] = [position]
    longest: list[tuple[int, int]] = []
    position = last_pairs[-1] if last_pairs else -1
    while position >= 0:
        longest.append(pairs[position])
        position = previous[position]
    return longest[::-1]
