"""Merging the frontmatter of three versions of a memory. Pure.

Rules of this file
- The stamps that memd and Claude Code set (``modified``, ``originSessionId``) say who wrote last;
  they differ with every write and are never a conflict: the newer ``modified`` brings its own.
- Two keys are two things, also where their lines touch.
- No key is ever doubled: what both sides added at one place is a conflict, unlike in a body.
"""

import re
from collections.abc import Sequence

from memd.documents import diff3

_STAMP = re.compile(rb"[ \t]*(modified|originSessionId)[ \t]*:[ \t]*(.*?)\s*", re.DOTALL)
_KEY = re.compile(rb"[ \t]*[A-Za-z_][A-Za-z0-9_.-]*[ \t]*:")


def merge_head(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the merged lines between the fences, or ``None`` for a conflict."""
    settled = diff3.pick(base, ours, theirs)
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
    keys = [[_KEY.match(line) for line in lines] for lines in (base, ours, theirs)]
    names = [[match and match[0] for match in row] for row in keys]
    if None in names[0] or names[0] != names[1] or names[0] != names[2]:
        return diff3.merge(base, ours, theirs, _give_up)
    picked = [diff3.pick(*lines) for lines in zip(base, ours, theirs, strict=True)]
    return None if None in picked else [line[0] for line in picked if line]


def _give_up(_: diff3.Chunk) -> None:
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
    found = (_STAMP.fullmatch(line) for line in lines)
    return {match[1]: match[2].strip(b"\"'") for match in found if match}


def _is_stamp(line: bytes) -> bool:
    return _STAMP.fullmatch(line) is not None


def _key(line: bytes) -> bytes:
    match = _STAMP.fullmatch(line)
    return match[1] if match else b""
