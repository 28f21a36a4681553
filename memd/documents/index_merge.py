"""Merging what two writers made of one index that both had read. Pure.

The unit is the entry and not the line: additions are united, removals honoured, title and hook are
merged one by one. An entry stands once in a merged index. Lines written by hand are merged as
lines. The sides are called as in ``memory_merge.py``.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from memd.core.values import Pointer
from memd.documents import diff3
from memd.documents.diff3 import Chunk, SplitText, pick
from memd.documents.entries import IndexEntry, entries, with_pointer

_TOKEN = b"\0"  # begins what stands for the entry of a path while lines are merged


class _Index(Struct, frozen=True):
    """An index whose entries are tokens among its lines, so that only what they point to counts."""

    text: SplitText
    tokens: tuple[bytes, ...]
    entries: Mapping[bytes, tuple[bytes, IndexEntry]]

    @classmethod
    def of(cls, content: bytes) -> "_Index":
        """Take an index apart."""
        text = SplitText.of(content)
        tokens = list(text.lines)
        result: dict[bytes, tuple[bytes, IndexEntry]] = {}
        for entry in entries(content):
            token = tokens[entry.line] = _TOKEN + entry.path.encode()
            result.setdefault(token, (text.lines[entry.line], entry))
        return cls(text, tuple(tokens), result)


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge three indexes by their entries; ``None`` where both rewrote the same words."""
    settled = pick(base, ours, theirs)
    if settled:
        return settled[0]
    sides = a, b, c = _Index.of(base), _Index.of(ours), _Index.of(theirs)
    merged = diff3.merge(a.tokens, b.tokens, c.tokens, _resolve_entries)
    if merged is None:
        return None
    known, mine, live = (set(side.entries) for side in sides)
    lines: list[bytes] = []
    for line in _once(merged, gone=known - (mine & live)):
        result = _entry(line, sides) if _is_token(line) else line
        if result is None:
            return None
        lines.append(result)
    return diff3.joined(a.text, b.text, c.text, lines)


def _resolve_entries(chunk: Chunk) -> Sequence[bytes] | None:
    """Unite the entries of a chunk that both sides changed; ``None`` is a conflict."""
    hand = [
        tuple(line for line in side if not _is_token(line))
        for side in (chunk.base, chunk.ours, chunk.theirs)
    ]
    text = pick(*hand)
    if text is None and hand[0]:
        return None
    if text is None:
        frame = chunk.theirs + chunk.ours
    else:
        frame = chunk.theirs if text[0] == hand[2] else chunk.ours
    base, ours, theirs = (
        set(filter(_is_token, side)) for side in (chunk.base, chunk.ours, chunk.theirs)
    )
    wanted = (theirs - (base - ours)) | (ours - base)
    lines = [line for line in frame if line in wanted or not _is_token(line)]
    for side in (chunk.theirs, chunk.ours):
        for number, line in enumerate(side):
            if line in wanted and line not in lines:
                before = side[number - 1] if number else None
                lines.insert(_place(lines, before), line)
    return lines


def _place(lines: Sequence[bytes], before: bytes | None) -> int:
    """Return where an entry goes: behind the line that it stood behind, else at the end.

    One that stood first goes behind the entries that stand first here.
    """
    if before is None:
        return next((n for n, line in enumerate(lines) if not _is_token(line)), len(lines))
    return lines.index(before) + 1 if before in lines else len(lines)


def _is_token(line: bytes) -> bool:
    return line.startswith(_TOKEN) and not line.endswith((b"\n", b"\r"))


def _once(lines: Sequence[bytes], gone: Collection[bytes]) -> list[bytes]:
    """Return the lines without entries that one side removed, and each other entry once."""
    seen = set(gone)
    retained: list[bytes] = []
    for line in lines:
        if _is_token(line):
            if line in seen:
                continue
            seen.add(line)
        retained.append(line)
    return retained


def _entry(token: bytes, sides: Sequence[_Index]) -> bytes | None:
    """Return the line of an entry; the live one where both sides added it."""
    base, ours, theirs = (side.entries.get(token) for side in sides)
    if ours is None or theirs is None or base is None:
        result = theirs or ours or base
        return result[0] if result else None
    settled = pick(base[0], ours[0], theirs[0])
    if settled:
        return settled[0]
    titles = pick(base[1].title, ours[1].title, theirs[1].title)
    hooks = pick(base[1].hook, ours[1].hook, theirs[1].hook)
    if titles is None or hooks is None:
        return None
    return with_pointer(theirs[0], theirs[1].path, Pointer(titles[0], hooks[0]))
