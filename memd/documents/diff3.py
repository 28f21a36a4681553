"""Three-way merge of lines: what both sides left, what one changed, what both changed. Pure.

Rules of this file
- Lines are matched by patience: common ends first, then lines that both sides have exactly once,
  so that a blank line is never taken for another one far away. What that leaves is compared in
  full where it is small; else it counts as changed. So the time is bounded for any input.
- Between two lines that all three texts share lies a *chunk*. A chunk that only one side changed,
  or both in the same way, is settled here; any other is put to the caller, who may give up.
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
    """Lines between two that all three texts share; ``last`` when nothing comes after them."""

    base: tuple[bytes, ...]
    ours: tuple[bytes, ...]
    theirs: tuple[bytes, ...]
    last: bool


class SplitText(Struct, frozen=True):
    """A text as lines that all end; ``ended`` says whether the last one did, ``bom`` is a BOM."""

    lines: tuple[bytes, ...]
    ended: bool
    bom: bytes

    @classmethod
    def of(cls, content: bytes) -> "SplitText":
        """Take a text apart."""
        bom = BOM if content.startswith(BOM) else b""
        lines = content[len(bom) :].splitlines(keepends=True)
        ended = not lines or lines[-1].endswith((b"\n", b"\r"))
        if not ended:
            lines[-1] += b"\r\n" if b"\r\n" in content else b"\n"
        return cls(tuple(lines), ended, bom)


Resolve = Callable[[Chunk], Sequence[bytes] | None]


def pick(base: T, ours: T, theirs: T) -> tuple[T] | None:
    """Return what remains where at most one side changed, or both alike; else ``None``."""
    if ours in (base, theirs):
        return (theirs,)
    return (ours,) if theirs == base else None


def merge(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes], resolve: Resolve
) -> list[bytes] | None:
    """Return the merged lines; ``None`` when ``resolve`` gives up on a chunk that both changed."""
    merged: list[bytes] = []
    for part in _parts(base, ours, theirs):
        if isinstance(part, bytes):
            merged.append(part)
            continue
        settled = pick(part.base, part.ours, part.theirs)
        lines = settled[0] if settled else resolve(part)
        if lines is None:
            return None
        merged += lines
    return merged


def joined(base: SplitText, ours: SplitText, theirs: SplitText, lines: Sequence[bytes]) -> bytes:
    """Return merged lines as bytes; the last line ends unless it does on neither side."""
    bom = (pick(base.bom, ours.bom, theirs.bom) or (ours.bom,))[0]
    content = b"".join(lines)
    if not (ours.ended or theirs.ended):
        content = content.removesuffix(b"\n").removesuffix(b"\r")
    return bom + content


def matches(a: Sequence[bytes], b: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return pairs of equal lines, both numbers rising."""
    pairs: list[tuple[int, int]] = []
    left = [(0, len(a), 0, len(b))]
    while left:
        a0, a1, b0, b1 = left.pop()
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            pairs.append((a0, b0))
            a0, b0 = a0 + 1, b0 + 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1, b1 = a1 - 1, b1 - 1
            pairs.append((a1, b1))
        anchors = _anchors(a, b, (a0, a1, b0, b1))
        if anchors:
            ends = [*anchors, (a1, b1)]
            starts = [(a0, b0), *((i + 1, j + 1) for i, j in anchors)]
            pairs += anchors
            left += [(i, k, j, m) for (i, j), (k, m) in zip(starts, ends, strict=True)]
        elif 0 < (a1 - a0) * (b1 - b0) <= _SMALL:
            full = SequenceMatcher(None, a[a0:a1], b[b0:b1], autojunk=False)
            for i, j, size in full.get_matching_blocks():
                pairs += [(a0 + i + n, b0 + j + n) for n in range(size)]
    return sorted(pairs)


def _parts(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> list[bytes | Chunk]:
    """Return shared lines and, between them, the chunks that differ."""
    in_ours, in_theirs = dict(matches(base, ours)), dict(matches(base, theirs))
    shared = [(i, in_ours[i], in_theirs[i]) for i in sorted(in_ours.keys() & in_theirs.keys())]
    parts: list[bytes | Chunk] = []
    b = o = t = 0
    for i, j, k in [*shared, (len(base), len(ours), len(theirs))]:
        last = i == len(base)
        if (b, o, t) != (i, j, k):
            parts.append(Chunk(tuple(base[b:i]), tuple(ours[o:j]), tuple(theirs[t:k]), last))
        if not last:
            parts.append(base[i])
        b, o, t = i + 1, j + 1, k + 1
    return parts


def _anchors(
    a: Sequence[bytes], b: Sequence[bytes], where: tuple[int, int, int, int]
) -> list[tuple[int, int]]:
    """Return the longest rising row of lines that both stretches have exactly once."""
    a0, a1, b0, b1 = where
    in_a, in_b = Counter(a[a0:a1]), Counter(b[b0:b1])
    places = {b[j]: j for j in range(b0, b1) if in_b[b[j]] == 1}
    pairs = [(i, places[a[i]]) for i in range(a0, a1) if in_a[a[i]] == 1 and a[i] in places]
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        at = bisect_left(tails, j)
        before.append(ends[at - 1] if at else -1)
        tails[at:], ends[at:] = [j, *tails[at + 1 :]], [number, *ends[at + 1 :]]
    row: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]
