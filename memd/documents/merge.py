"""Merging what two writers made of one text that both had read. Pure.

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
- In the index the unit is the entry and not the line: additions are united, removals honoured,
  title and hook are merged one by one. An entry stands once in a merged index. Lines written by
  hand are merged as lines.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from memd.core.values import Pointer
from memd.documents import diff3, index
from memd.documents.diff3 import Chunk, Text, pick
from memd.documents.document import InvalidMemoryError, validate
from memd.documents.frontmatter_lines import Fenced, split
from memd.documents.merge_head import merge_head

_TOKEN = b"\0"  # begins what stands for the entry of a path while lines are merged


@dataclass(frozen=True, slots=True)
class _Index:
    """An index whose entries are tokens among its lines, so that only what they point to counts."""

    text: Text
    tokens: tuple[bytes, ...]
    entries: Mapping[bytes, tuple[bytes, index.Entry]]

    @classmethod
    def of(cls, content: bytes) -> "_Index":
        """Take an index apart."""
        text = Text.of(content)
        tokens = list(text.lines)
        entries: dict[bytes, tuple[bytes, index.Entry]] = {}
        for entry in index.entries(content):
            token = tokens[entry.line] = _TOKEN + entry.path.encode()
            entries.setdefault(token, (text.lines[entry.line], entry))
        return cls(text, tuple(tokens), entries)


def merge_topic(base: bytes, ours: bytes, theirs: bytes, path: str) -> bytes | None:
    """Merge a memory; a result that breaks the format where a side did not is a conflict."""
    merged = merge_lines(base, ours, theirs)
    if merged is None or _is_valid(merged, path):
        return merged
    return None if _is_valid(ours, path) or _is_valid(theirs, path) else merged


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge three texts; frontmatter, where all three have it, is merged apart from the body."""
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


def merge_index(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
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
        found = _entry(line, sides) if _is_token(line) else line
        if found is None:
            return None
        lines.append(found)
    return diff3.joined(a.text, b.text, c.text, lines)


def _is_valid(content: bytes, path: str) -> bool:
    try:
        validate(content, path)
    except InvalidMemoryError:
        return False
    return True


def _merge_fenced(texts: Sequence[bytes], heads: Sequence[Fenced]) -> bytes | None:
    """Merge all up to the body: the opening fence, what stands between, and the closing one."""
    parts = [
        (text[: at.start], text[at.start : at.end], text[at.end : at.body])
        for text, at in zip(texts, heads, strict=True)
    ]
    opening, inner, closing = zip(*parts, strict=True)
    first, last = pick(*opening), pick(*closing)
    head = merge_head(*inner)
    return None if first is None or last is None or head is None else first[0] + head + last[0]


def _merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    a, b, c = Text.of(base), Text.of(ours), Text.of(theirs)
    merged = diff3.merge(a.lines, b.lines, c.lines, _resolve_text)
    return None if merged is None else diff3.joined(a, b, c, merged)


def _resolve_text(chunk: Chunk) -> Sequence[bytes] | None:
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


def _resolve_entries(chunk: Chunk) -> Sequence[bytes] | None:
    hand = [_hand(side) for side in (chunk.base, chunk.ours, chunk.theirs)]
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


def _hand(lines: Sequence[bytes]) -> tuple[bytes, ...]:
    return tuple(line for line in lines if not _is_token(line))


def _is_token(line: bytes) -> bool:
    return line.startswith(_TOKEN) and not line.endswith((b"\n", b"\r"))


def _once(lines: Sequence[bytes], gone: Collection[bytes]) -> list[bytes]:
    """Return the lines without entries that one side removed, and each other entry once."""
    seen = set(gone)
    kept: list[bytes] = []
    for line in lines:
        if _is_token(line):
            if line in seen:
                continue
            seen.add(line)
        kept.append(line)
    return kept


def _entry(token: bytes, sides: Sequence[_Index]) -> bytes | None:
    """Return the line of an entry; the live one where both sides added it."""
    base, ours, theirs = (side.entries.get(token) for side in sides)
    if ours is None or theirs is None or base is None:
        found = theirs or ours or base
        return found[0] if found else None
    settled = pick(base[0], ours[0], theirs[0])
    if settled:
        return settled[0]
    titles = pick(base[1].title, ours[1].title, theirs[1].title)
    hooks = pick(base[1].hook, ours[1].hook, theirs[1].hook)
    if titles is None or hooks is None:
        return None
    return index.with_pointer(theirs[0], theirs[1].path, Pointer(titles[0], hooks[0]))
