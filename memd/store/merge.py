"""Merging what two writers made of one text that both had read. Pure.

``base`` is the text that both had read, ``theirs`` the live text, ``ours`` the text that is to be
written. ``None`` is a conflict: both changed the same thing, and neither may win unseen.

- *Text* is merged by lines. Lines that only one side touched are that side's; edits of lines that
  touch each other are a conflict. Additions never collide: what both added at one place is kept
  from both, the live text first, since a line too many is seen and mended and a lost line is not.
- A *head* is merged by key; a key that both changed differently is a conflict. The stamps
  ``modified`` and ``originSessionId`` differ with every write and are none: the newer ``modified``
  brings its own.
- An *index* is a set of lines: the lines of both, less what either side removed, in the order of
  the live index; our additions stand behind the line that they followed. An entry stands once. An
  entry that both rewrote differently is a conflict.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple, TypeVar

from memd.store import head, index, memory
from memd.store.head import BOM, STAMPS, TABLE, Head

T = TypeVar("T")
Text = TypeVar("Text", bytes, str)
Lines = Sequence[bytes]
_COMPARED_PAIRS = 40_000  # of lines without an anchor: 200 by 200, a few milliseconds at worst
_STAMPS = frozenset({*STAMPS, *(key.removeprefix(f"{TABLE}.") for key in STAMPS)})


class Chunk(NamedTuple):
    """The lines of each text between two lines that all three have."""

    base: Lines
    ours: Lines
    theirs: Lines
    at_end: bool  # no line that all three have follows


# Returns the lines of a chunk that both sides changed, ``None`` for a conflict.
Resolve = Callable[[Chunk], Lines | None]


def merge_memory(base: bytes, ours: bytes, theirs: bytes, path: str) -> bytes | None:
    """Return two versions of a memory merged, ``None`` for a conflict.

    It is a conflict, too, if the result breaks the format and one of the versions did not.
    """
    merged = _merge_head_and_body(base, ours, theirs)
    if merged is None or memory.is_valid(merged, path):
        return merged
    was_valid = memory.is_valid(ours, path) or memory.is_valid(theirs, path)
    return None if was_valid else merged


def merge_index(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return two versions of an index merged, ``None`` if both rewrote one entry differently."""
    one_sided = _value(base, ours, theirs)
    if one_sided:
        return one_sided[0]
    (base_keys, base_entries), (our_keys, our_entries), (their_keys, their_entries) = map(
        _lines_by_key, (base, ours, theirs)
    )
    merged = _merge_lines(base_keys, our_keys, their_keys, _united_chunk)
    skipped = base_entries.keys() - (our_entries.keys() & their_entries.keys())  # and those written
    lines: list[bytes] = []
    for key in merged or ():
        our_line, their_line = our_entries.get(key), their_entries.get(key)
        if our_line is None and their_line is None:  # a line by hand
            lines.append(key)
        elif key not in skipped:
            skipped.add(key)
            base_line = base_entries.get(key, our_line)  # of what both added theirs stays
            value = _value(base_line, our_line or their_line, their_line or our_line)
            if value is None:
                return None
            lines.append(value[0] or b"")
    return _joined(lines, ours, theirs)


def _merge_head_and_body(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return memories merged, ``None`` for a conflict; if one has no head, as mere text."""
    texts = (base, ours, theirs)
    one_sided = _value(*texts)
    if one_sided:
        return one_sided[0]
    heads = [each for each in map(head.split, texts) if each and each.closed]
    if len(heads) < len(texts):
        return _merge_text(*texts)
    merged_head = _merge_heads(texts, heads)
    body = _merge_text(*(text[each.body :] for text, each in zip(texts, heads, strict=True)))
    if merged_head is None or body is None:
        return None
    line_end = b"\n" if body and not merged_head.endswith(b"\n") else b""
    return merged_head + line_end + body


def _merge_heads(texts: Sequence[bytes], heads: Sequence[Head]) -> bytes | None:
    """Return heads merged by key, with their fences, ``None`` for a conflict."""
    spans = list(zip(texts, heads, strict=True))
    opening = _value(*(text[: each.start] for text, each in spans))
    closing = _value(*(text[each.end : each.body] for text, each in spans))
    base, ours, theirs = (_fields_by_key(text[each.start : each.end]) for text, each in spans)
    if opening is None or closing is None or base is None or ours is None or theirs is None:
        return None
    newest, other = (ours, theirs) if _modified(ours) > _modified(theirs) else (theirs, ours)
    merged: dict[str, bytes] = {}
    for key in base | theirs | ours:
        value = _value(base.get(key), ours.get(key), theirs.get(key))
        if key in _STAMPS:
            value = (newest.get(key) or other.get(key),)
        if value is None:
            return None
        if value[0] is not None:
            merged[key] = value[0]
    order = [key for key in _united(list(base), list(ours), list(theirs)) if key in merged]
    return opening[0] + b"".join(merged[key] for key in order) + closing[0]


def _fields_by_key(raw: bytes) -> dict[str, bytes] | None:
    """Return the lines of a head by key, of other lines by themselves; ``None`` if a key is twice.

    Empty lines are left out.
    """
    parts = [part for part in head.parts(raw) if part.key or part.lines[0].strip()]
    fields = {part.key or f"#{part.lines[0]!r}": b"".join(part.lines) for part in parts}
    return fields if len(fields) == len(parts) else None


def _modified(fields: Mapping[str, bytes]) -> bytes:
    """Return the time of a head's ``modified``, b"" if it has none."""
    line = fields.get(f"{TABLE}.modified") or fields.get("modified") or b""
    return line.partition(b":")[2].strip().strip(b"\"'")


def _merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return texts merged by lines, ``None`` for a conflict."""
    merged = _merge_lines(_lines(base), _lines(ours), _lines(theirs), _text_chunk)
    return None if merged is None else _joined(merged, ours, theirs)


def _text_chunk(chunk: Chunk) -> Lines | None:
    """Return the lines of a chunk of text that both sides changed, ``None`` for a conflict."""
    base, ours, theirs, at_end = chunk
    our_addition, their_addition = _added(base, ours), _added(base, theirs)
    if our_addition is not None and their_addition is not None:
        return [*base, *_both_additions(their_addition, our_addition)]
    # At the end an addition stays, though the other side changed the lines before it.
    if at_end and their_addition is not None:
        return _both_additions(ours, their_addition)
    if at_end and our_addition is not None:
        return _both_additions(theirs, our_addition)
    # One side may have made the other's edit, and added more lines behind it.
    for shorter, longer in ((ours, theirs), (theirs, ours)):
        added = _added(shorter, longer)
        # Lines that the base has are not added: the shorter side removed them.
        if shorter and added and set(added).isdisjoint(base):
            return longer
    return None


def _added(before: Lines, after: Lines) -> Lines | None:
    """Return the lines behind those of ``before``, ``None`` if ``after`` begins otherwise."""
    return after[len(before) :] if after[: len(before)] == before else None


def _both_additions(first: Lines, second: Lines) -> Lines:
    """Return both additions; one that begins or ends the other was made on both sides."""
    small, large = sorted((first, second), key=len)
    if small in (large[: len(small)], large[len(large) - len(small) :]):
        return large
    return [*first, *second]


def _lines_by_key(content: bytes) -> tuple[list[bytes], dict[bytes, bytes]]:
    """Return the lines of an index, with each entry replaced by a key, and the entries by key."""
    keys = _lines(content)
    by_key: dict[bytes, bytes] = {}
    for number, entry in index.Index(content).entries.items():
        key = b"\0" + entry.path.encode()  # unlike a line it has no line end
        by_key.setdefault(key, keys[number])
        keys[number] = key
    return keys, by_key


def _united_chunk(chunk: Chunk) -> Lines:
    """Return the lines of a chunk of the index that both sides changed."""
    return _united(chunk.base, chunk.ours, chunk.theirs)


def _united(base: Sequence[Text], ours: Sequence[Text], theirs: Sequence[Text]) -> list[Text]:
    """Return theirs without what ours removed; additions of ours stand behind what they followed.

    An addition at the beginning stands where ours removed a line, else at the end. Empty lines are
    always additions.
    """
    in_base, in_ours = set(base), set(ours)
    in_kept = {line for line in theirs if line in in_ours or line not in in_base}
    behind: dict[Text | None, list[Text]] = {}
    last: Text | None = None  # of the lines that stay
    for line in ours:
        if line in in_kept and line.strip():
            last = line
        elif line not in in_base:
            behind.setdefault(last, []).append(line)
    united: list[Text] = []
    for line in theirs:
        if line in in_kept:
            united.append(line)
        united += behind.pop(line if line in in_kept else None, ())
    return united + behind.pop(None, [])


def _value(base: T, ours: T, theirs: T) -> tuple[T] | None:
    """Return the merged value, ``None`` if both sides changed it in different ways.

    The value is in a tuple, since it may be ``None`` or empty itself.
    """
    if ours in (base, theirs):
        return (theirs,)
    return (ours,) if theirs == base else None


def _lines(content: bytes) -> list[bytes]:
    """Return the lines of a text, without a byte order mark, all with a line end."""
    lines = content.removeprefix(BOM).splitlines(keepends=True)
    if lines and not lines[-1].endswith((b"\n", b"\r")):
        lines[-1] += b"\r\n" if b"\r\n" in content else b"\n"
    return lines


def _joined(lines: Lines, ours: bytes, theirs: bytes) -> bytes:
    """Return merged lines as a text, which begins as theirs does.

    The last line has no end if it has none on both sides.
    """
    content = b"".join(lines)
    if not ours.endswith((b"\n", b"\r")) and not theirs.endswith((b"\n", b"\r")):
        content = content.removesuffix(b"\n").removesuffix(b"\r")
    return (BOM if theirs.startswith(BOM) else b"") + content


def _merge_lines(base: Lines, ours: Lines, theirs: Lines, resolve: Resolve) -> list[bytes] | None:
    """Return the merged lines, ``None`` if ``resolve`` finds a conflict."""
    in_ours, in_theirs = _matches(base, ours), _matches(base, theirs)
    common = sorted(in_ours.keys() & in_theirs.keys())
    ends = [(number, in_ours[number], in_theirs[number]) for number in common]
    merged: list[bytes] = []
    at = our_at = their_at = 0
    for end, our_end, their_end in [*ends, (len(base), len(ours), len(theirs))]:
        chunk = Chunk(
            base[at:end], ours[our_at:our_end], theirs[their_at:their_end], end == len(base)
        )
        value = _value(chunk.base, chunk.ours, chunk.theirs)
        lines = value[0] if value else resolve(chunk)
        if lines is None:
            return None
        merged += [*lines, *base[end : end + 1]]
        at, our_at, their_at = end + 1, our_end + 1, their_end + 1
    return merged


def _matches(a: Lines, b: Lines) -> dict[int, int]:
    """Return the numbers of lines of ``a`` with those of the same lines of ``b``; both rise.

    Common ends are matched first, then lines that stand once in both texts, so that a blank line is
    never taken for another one far away. What is left is compared in full where it is small; else
    it counts as changed. So the time is bounded for any input.
    """
    same: dict[int, int] = {}
    stretches = [(0, len(a), 0, len(b))]  # still to be compared
    while stretches:
        a_at, a_end, b_at, b_end = stretches.pop()
        while a_at < a_end and b_at < b_end and a[a_at] == b[b_at]:
            same[a_at] = b_at
            a_at, b_at = a_at + 1, b_at + 1
        while a_at < a_end and b_at < b_end and a[a_end - 1] == b[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
            same[a_end] = b_end
        some_a, some_b = a[a_at:a_end], b[b_at:b_end]
        anchors = _anchors(some_a, some_b)
        if anchors:
            ends = [(-1, -1), *anchors, (len(some_a), len(some_b))]
            stretches += [
                (a_at + i + 1, a_at + next_i, b_at + j + 1, b_at + next_j)
                for (i, j), (next_i, next_j) in pairwise(ends)
            ]
            same.update((a_at + i, b_at + j) for i, j in anchors)
        elif 0 < len(some_a) * len(some_b) <= _COMPARED_PAIRS:
            matcher = SequenceMatcher(None, some_a, some_b, autojunk=False)
            for i, j, size in matcher.get_matching_blocks():
                same.update((a_at + i + n, b_at + j + n) for n in range(size))
    return same


def _anchors(a: Lines, b: Lines) -> list[tuple[int, int]]:
    """Return the longest list of lines that stand once in both texts, in the same order.

    A line is a pair of its numbers. This is patience sorting: of the lists of each length the one
    whose last line has the least number in ``b`` is remembered by that line.
    """
    times_a, times_b = Counter(a), Counter(b)
    number_in_b = {line: number for number, line in enumerate(b) if times_b[line] == 1}
    pairs = [
        (number, number_in_b[line])
        for number, line in enumerate(a)
        if times_a[line] == 1 and line in number_in_b
    ]
    last_numbers: list[int] = []  # in ``b``, by length - 1
    last_pairs: list[int] = []  # the position of that line in ``pairs``
    previous: list[int] = []  # by position: the line before it in its list, -1 for none
    for position, (_, number) in enumerate(pairs):
        length = bisect_left(last_numbers, number)
        previous.append(last_pairs[length - 1] if length else -1)
        last_numbers[length : length + 1] = [number]
        last_pairs[length : length + 1] = [position]
    longest: list[tuple[int, int]] = []
    position = last_pairs[-1] if last_pairs else -1
    while position >= 0:
        longest.append(pairs[position])
        position = previous[position]
    return longest[::-1]
