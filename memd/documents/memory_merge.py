"""Merging what two writers made of one memory that both had read. Pure.

``base`` is what both had read, ``theirs`` is what stands there now, ``ours`` is what is to be
written. ``None`` is a conflict: both changed the same lines, and neither may win unseen.

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
from memd.documents.diff3 import Chunk, SplitText, pick
from memd.documents.frontmatter import Fenced, split

_STAMP = re.compile(rb"[ \t]*(modified|originSessionId)[ \t]*:[ \t]*(.*?)\s*", re.DOTALL)
_KEY = re.compile(rb"[ \t]*[A-Za-z_][A-Za-z0-9_.-]*[ \t]*:")


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge three versions; frontmatter, where all three have it, is merged apart from the body."""
    settled = pick(base, ours, theirs)
    if settled:
        return settled[0]
    heads = [head for head in map(split, (base, ours, theirs)) if head and head.closed]
    texts = (base, ours, theirs)
    if len(heads) < len(texts):
        return _merge_text(*texts)
    head = _merge_fenced(texts, heads)
    body = _merge_text(*(text[at.body :] for text, at in zip(texts, heads, strict=True)))
    if head is None or body is None:
        return None
    return head + (b"\n" if body and not head.endswith(b"\n") else b"") + body


def _merge_fenced(texts: Sequence[bytes], heads: Sequence[Fenced]) -> bytes | None:
    """Merge all up to the body: the opening fence, what stands between, and the closing one."""
    parts = [
        (text[: at.start], text[at.start : at.end], text[at.end : at.body])
        for text, at in zip(texts, heads, strict=True)
    ]
    opening, inner, closing = zip(*parts, strict=True)
    first, last = pick(*opening), pick(*closing)
    head = _merge_head(*inner)
    return None if first is None or last is None or head is None else first[0] + head + last[0]


def _merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    a, b, c = SplitText.of(base), SplitText.of(ours), SplitText.of(theirs)
    merged = diff3.merge(a.lines, b.lines, c.lines, _resolve_text)
    return None if merged is None else diff3.joined(a, b, c, merged)


def _resolve_text(chunk: Chunk) -> Sequence[bytes] | None:
    """Merge a chunk that both sides changed; ``None`` is a conflict."""
    ours, theirs = _added(chunk.base, chunk.ours), _added(chunk.base, chunk.theirs)
    if ours is not None and theirs is not None:
        return chunk.base + _both(theirs, ours)
    if chunk.last and theirs is not None:
        return _both(chunk.ours, theirs)
    if chunk.last and ours is not None:
        return _both(chunk.theirs, ours)
    for less, more in ((chunk.ours, chunk.theirs), (chunk.theirs, chunk.ours)):
        new = _added(less, more)
        if less and new and not set(new) & set(chunk.base):
            return more  # the same edit, and more behind it
    return None


def _added(before: tuple[bytes, ...], after: tuple[bytes, ...]) -> tuple[bytes, ...] | None:
    """Return what stands behind the lines of before, or ``None`` when it does not begin so."""
    return after[len(before) :] if after[: len(before)] == before else None


def _both(first: tuple[bytes, ...], second: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return both additions; one that begins or ends the other was made on both sides."""
    small, large = sorted((first, second), key=len)
    if small in (large[: len(small)], large[len(large) - len(small) :]):
        return large
    return first + second


def _merge_head(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the merged lines between the fences, or ``None`` for a conflict."""
    settled = pick(base, ours, theirs)
    if settled:
        return settled[0]
    versions = [text.splitlines(keepends=True) for text in (base, ours, theirs)]
    stamps = [_stamps(lines) for lines in versions]
    newest, other = versions[2], versions[1]
    if stamps[1].get(b"modified", b"") > stamps[2].get(b"modified", b""):
        newest, other = other, newest
    merged = _merged(*([line for line in lines if not _is_stamp(line)] for lines in versions))
    if merged is None:
        return None
    known = _stamps(newest)
    for source in (newest, [line for line in other if _key(line) not in known]):
        for number, line in enumerate(source):
            if _is_stamp(line):
                merged.insert(_place(merged, source[number - 1] if number else b"", line), line)
    return b"".join(merged)


def _merged(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> list[bytes] | None:
    """Merge lines of heads without stamps, key by key where the keys are the same."""
    keys = [[_KEY.match(line) for line in lines] for lines in (base, ours, theirs)]
    names = [[match and match[0] for match in row] for row in keys]
    if None in names[0] or names[0] != names[1] or names[0] != names[2]:
        return diff3.merge(base, ours, theirs, _give_up)
    picked = [pick(*lines) for lines in zip(base, ours, theirs, strict=True)]
    return None if None in picked else [line[0] for line in picked if line]


def _give_up(_: Chunk) -> None:
    return None


def _place(merged: Sequence[bytes], before: bytes, stamp: bytes) -> int:
    """Return where a stamp goes: after the line it stood behind, else at the end of its block."""
    if before in merged:
        return merged.index(before) + 1
    if not stamp.startswith((b" ", b"\t")):
        return len(merged)
    block = [n for n, line in enumerate(merged) if line.startswith((b" ", b"\t", b"metadata:"))]
    return block[-1] + 1 if block else len(merged)


def _stamps(lines: Sequence[bytes]) -> dict[bytes, bytes]:
    result = (_STAMP.fullmatch(line) for line in lines)
    return {match[1]: match[2].strip(b"\"'") for match in result if match}


def _is_stamp(line: bytes) -> bool:
    return _STAMP.fullmatch(line) is not None


def _key(line: bytes) -> bytes:
    match = _STAMP.fullmatch(line)
    return match[1] if match else b""
