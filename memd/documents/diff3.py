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
from typing import TypeVar

from msgspec import Struct

from memd.documents.frontmatter import BOM

T = TypeVar("T")
_SMALL = 40_000  # pairs of lines: 200 against 200, a few milliseconds at worst


class Chunk(Struct, frozen=True):
    """What each text has between two lines that all three share; ``last`` at the texts' end."""

    base: tuple[bytes, ...]
    ours: tuple[bytes, ...]
    theirs: tuple[bytes, ...]
    last: bool


class SplitText(Struct, frozen=True):
    """A text as lines that all have a line end; ``ended`` says whether the last one had it before.

    ``bom`` is the byte order mark before the first line, or empty.
    """

    lines: tuple[bytes, ...]
    ended: bool
    bom: bytes

    @classmethod
    def of(cls, content: bytes) -> "SplitText":
        """Split a text into lines."""
        bom = BOM if content.startswith(BOM) else b""
        lines = content[len(bom) :].splitlines(keepends=True)
        ended = not lines or lines[-1].endswith((b"\n", b"\r"))
        if not ended:
            lines[-1] += b"\r\n" if b"\r\n" in content else b"\n"
        return cls(tuple(lines), ended, bom)


# Returns the merged lines of a chunk that both sides changed, or ``None`` for a conflict.
Resolve = Callable[[Chunk], Sequence[bytes] | None]


def pick(base: T, ours: T, theirs: T) -> tuple[T] | None:
    """Return the value to use if at most one side changed it, or both alike; else ``None``.

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
        picked = pick(part.base, part.ours, part.theirs)
        lines = picked[0] if picked else resolve(part)
        if lines is None:
            return None
        merged += lines
    return merged


def joined(base: SplitText, ours: SplitText, theirs: SplitText, lines: Sequence[bytes]) -> bytes:
    """Return merged lines as bytes; the last line has no end if neither side had one."""
    picked = pick(base.bom, ours.bom, theirs.bom)
    bom = picked[0] if picked else ours.bom
    content = b"".join(lines)
    if not (ours.ended or theirs.ended):
        content = content.removesuffix(b"\n").removesuffix(b"\r")
    return bom + content


def matches(a: Sequence[bytes], b: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return which lines of ``a`` are matched with which lines of ``b``, as pairs of numbers.

    Both numbers rise from pair to pair.
    """
    pairs: list[tuple[int, int]] = []
    # Stretches still to be compared: a[a0:a1] with b[b0:b1].
    stretches = [(0, len(a), 0, len(b))]
    while stretches:
        a0, a1, b0, b1 = stretches.pop()
        # Common lines at the beginning and at the end of both.
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            pairs.append((a0, b0))
            a0, b0 = a0 + 1, b0 + 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1, b1 = a1 - 1, b1 - 1
            pairs.append((a1, b1))
        anchors = _anchors(a, b, (a0, a1, b0, b1))
        if anchors:
            pairs += anchors
            # Go on with the stretches before, between and behind the anchors.
            starts = [(a0, b0), *((i + 1, j + 1) for i, j in anchors)]
            ends = [*anchors, (a1, b1)]
            for (a_start, b_start), (a_end, b_end) in zip(starts, ends, strict=True):
                stretches.append((a_start, a_end, b_start, b_end))
        elif 0 < (a1 - a0) * (b1 - b0) <= _SMALL:
            full = SequenceMatcher(None, a[a0:a1], b[b0:b1], autojunk=False)
            for i, j, size in full.get_matching_blocks():
                pairs += [(a0 + i + n, b0 + j + n) for n in range(size)]
    return sorted(pairs)


def _shared_lines_and_chunks(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> list[bytes | Chunk]:
    """Return the lines that all three texts share and, between them, the chunks that differ."""
    in_ours, in_theirs = dict(matches(base, ours)), dict(matches(base, theirs))
    # Numbers of each shared line in the three texts.
    shared = [(i, in_ours[i], in_theirs[i]) for i in sorted(in_ours.keys() & in_theirs.keys())]
    parts: list[bytes | Chunk] = []
    base_start = ours_start = theirs_start = 0
    for i, j, k in [*shared, (len(base), len(ours), len(theirs))]:
        last = i == len(base)
        if (base_start, ours_start, theirs_start) != (i, j, k):
            chunk = Chunk(
                tuple(base[base_start:i]),
                tuple(ours[ours_start:j]),
                tuple(theirs[theirs_start:k]),
                last,
            )
            parts.append(chunk)
        if not last:
            parts.append(base[i])
        base_start, ours_start, theirs_start = i + 1, j + 1, k + 1
    return parts


def _anchors(
    a: Sequence[bytes], b: Sequence[bytes], stretch: tuple[int, int, int, int]
) -> list[tuple[int, int]]:
    """Return the longest list of lines that stand in both stretches once and in the same order.

    A line is a pair of its numbers in ``a`` and ``b``. The stretches are a[a0:a1] and b[b0:b1].
    """
    a0, a1, b0, b1 = stretch
    in_a, in_b = Counter(a[a0:a1]), Counter(b[b0:b1])
    once_in_b = {b[j]: j for j in range(b0, b1) if in_b[b[j]] == 1}
    pairs = [(i, once_in_b[a[i]]) for i in range(a0, a1) if in_a[a[i]] == 1 and a[i] in once_in_b]
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
