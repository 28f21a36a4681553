"""Merging the versions that two writers made of one memory which both had read. Pure.

``base`` is the text that both had read, ``theirs`` is the live text, ``ours`` is the text that is
to be written. ``None`` is a conflict: both changed the same lines, and neither may win unseen.

Rules of this file
- Lines that only one side touched are that side's; the same change on both sides is one change;
  edits of lines that touch each other are a conflict, as in diff3 and git.
- What both *added* at one place is kept from both, the live text first. Diff3 calls that a
  conflict; but notes that two sessions append to one memory contradict each other no more than
  two files do, a writer who is told "read it again and repeat" seldom does, and a line too many is
  seen and mended while a line that is lost is not. For the same reason what one side appended
  at the end of a memory stays when the other changed the line before it.
- In the frontmatter no key is ever doubled: what both sides added at one place is a conflict. Two
  keys are two things, also where their lines touch.
- The stamps that memd and Claude Code set (``modified``, ``originSessionId``) say who wrote last;
  they differ with every write and are never a conflict: the newer ``modified`` brings its own.
"""

import re
from collections.abc import Sequence

from memd.documents import diff3
from memd.documents.diff3 import Chunk, SplitText, merged_value
from memd.documents.frontmatter import Fenced, split

# The line of a stamp. Groups: key, value.
_STAMP = re.compile(rb"[ \t]*(modified|originSessionId)[ \t]*:[ \t]*(.*?)\s*", re.DOTALL)
_KEY = re.compile(rb"[ \t]*[A-Za-z_][A-Za-z0-9_.-]*[ \t]*:")  # with its indent


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge three versions; ``None`` is a conflict.

    If all three have frontmatter, it is merged apart from the body.
    """
    one_sided = merged_value(base, ours, theirs)
    if one_sided:
        return one_sided[0]
    texts = (base, ours, theirs)
    heads = [head for head in map(split, texts) if head and head.closed]
    if len(heads) < len(texts):  # a version has no frontmatter
        return _merge_text(*texts)
    head = _merge_fenced(texts, heads)
    bodies = (text[span.body :] for text, span in zip(texts, heads, strict=True))
    body = _merge_text(*bodies)
    if head is None or body is None:
        return None
    line_end = b"\n" if body and not head.endswith(b"\n") else b""
    return head + line_end + body


def _merge_fenced(texts: Sequence[bytes], heads: Sequence[Fenced]) -> bytes | None:
    """Merge the parts before the body: the opening fence, the lines below it, the closing fence."""
    parts = [
        (text[: span.start], text[span.start : span.end], text[span.end : span.body])
        for text, span in zip(texts, heads, strict=True)
    ]
    openings, inner_lines, closings = zip(*parts, strict=True)
    opening, closing = merged_value(*openings), merged_value(*closings)
    inner = _merge_head(*inner_lines)
    if opening is None or closing is None or inner is None:
        return None
    merged: bytes = opening[0] + inner + closing[0]
    return merged


def _merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge bodies line by line; ``None`` is a conflict."""
    a, b, c = SplitText.of(base), SplitText.of(ours), SplitText.of(theirs)
    merged = diff3.merge(a.lines, b.lines, c.lines, _resolve_text)
    return None if merged is None else diff3.joined_lines(a, b, c, merged)


def _resolve_text(chunk: Chunk) -> Sequence[bytes] | None:
    """Merge a chunk of a body that both sides changed; ``None`` is a conflict."""
    ours_added = _added_lines(chunk.base, chunk.ours)
    theirs_added = _added_lines(chunk.base, chunk.theirs)
    if ours_added is not None and theirs_added is not None:
        return chunk.base + _both_additions(theirs_added, ours_added)
    # At the end of a memory an addition stays, though the other side changed the lines before it.
    if chunk.at_end and theirs_added is not None:
        return _both_additions(chunk.ours, theirs_added)
    if chunk.at_end and ours_added is not None:
        return _both_additions(chunk.theirs, ours_added)
    # One side may have made the other's edit, and added more lines behind it.
    for shorter, longer in ((chunk.ours, chunk.theirs), (chunk.theirs, chunk.ours)):
        new_lines = _added_lines(shorter, longer)
        # Lines that the base has are not added: the shorter side removed them.
        if shorter and new_lines and set(new_lines).isdisjoint(chunk.base):
            return longer
    return None


def _added_lines(before: tuple[bytes, ...], after: tuple[bytes, ...]) -> tuple[bytes, ...] | None:
    """Return the lines that ``after`` has behind those of ``before``.

    ``None`` means that ``after`` does not begin with the lines of ``before``.
    """
    return after[len(before) :] if after[: len(before)] == before else None


def _both_additions(first: tuple[bytes, ...], second: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return both additions; one that begins or ends the other was made on both sides."""
    small, large = sorted((first, second), key=len)
    large_end = large[len(large) - len(small) :]
    if small in (large[: len(small)], large_end):
        return large
    return first + second


def _merge_head(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the merged lines between the fences, or ``None`` for a conflict."""
    one_sided = merged_value(base, ours, theirs)
    if one_sided:
        return one_sided[0]
    versions = [text.splitlines(keepends=True) for text in (base, ours, theirs)]
    _, ours_lines, theirs_lines = versions
    newest, other = theirs_lines, ours_lines
    ours_modified = _stamps(ours_lines).get(b"modified", b"")
    theirs_modified = _stamps(theirs_lines).get(b"modified", b"")
    if ours_modified > theirs_modified:
        newest, other = ours_lines, theirs_lines
    without_stamps = ([line for line in lines if not _is_stamp(line)] for lines in versions)
    merged = _merge_fields(*without_stamps)
    if merged is None:
        return None
    # All stamps of the newer version, and those that only the older one has.
    known = _stamps(newest)
    lines_of_other = [line for line in other if _stamp_key(line) not in known]
    for source in (newest, lines_of_other):
        for number, line in enumerate(source):
            if _is_stamp(line):
                line_before = source[number - 1] if number else b""
                merged.insert(_place_of_stamp(merged, line_before, line), line)
    return b"".join(merged)


def _merge_fields(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> list[bytes] | None:
    """Merge the lines of heads without stamps; ``None`` is a conflict.

    If all three have the same keys, each line is merged by itself, though its neighbours changed.
    """
    base_keys, ours_keys, theirs_keys = (_keys(lines) for lines in (base, ours, theirs))
    same_keys = base_keys == ours_keys == theirs_keys
    if None in base_keys or not same_keys:
        return diff3.merge(base, ours, theirs, _no_resolution)
    merged = [merged_value(*lines) for lines in zip(base, ours, theirs, strict=True)]
    return None if None in merged else [line[0] for line in merged if line]


def _keys(lines: Sequence[bytes]) -> list[bytes | None]:
    """Return the key at the beginning of each line with its indent, ``None`` for another line."""
    matches = (_KEY.match(line) for line in lines)
    return [match[0] if match else None for match in matches]


def _no_resolution(_: Chunk) -> None:
    """Return ``None`` for any chunk that both sides changed, which makes it a conflict."""


def _place_of_stamp(merged: Sequence[bytes], line_before: bytes, stamp: bytes) -> int:
    """Return where a stamp goes: behind ``line_before``, else at the end of its block.

    The block of an indented stamp is ``metadata``, that of another one the whole head.
    """
    if line_before in merged:
        return merged.index(line_before) + 1
    if not stamp.startswith((b" ", b"\t")):
        return len(merged)
    block_starts = (b" ", b"\t", b"metadata:")
    block = [number for number, line in enumerate(merged) if line.startswith(block_starts)]
    return block[-1] + 1 if block else len(merged)


def _stamps(lines: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the stamps among these lines: each key with its value, without quotes."""
    matches = (_STAMP.fullmatch(line) for line in lines)
    return {match[1]: match[2].strip(b"\"'") for match in matches if match}


def _is_stamp(line: bytes) -> bool:
    """Say whether a line sets ``modified`` or ``originSessionId``."""
    return _STAMP.fullmatch(line) is not None


def _stamp_key(line: bytes) -> bytes:
    """Return the key of a stamp, b"" for another line."""
    match = _STAMP.fullmatch(line)
    return match[1] if match else b""
