"""Merging what two writers made of one index that both had read. Pure.

The unit is the entry and not the line: additions are united, removals honoured, title and hook are
merged one by one. An entry stands once in a merged index. Lines written by hand are merged as
lines. The sides are called as in ``memory_merge.py``.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from memd.base.values import Pointer
from memd.documents import diff3
from memd.documents.diff3 import Chunk, SplitText, merged_value
from memd.documents.entries import IndexEntry, entries, with_pointer

_TOKEN_START = b"\0"  # a token stands for the entry of a path while lines are merged


class _Index(Struct, frozen=True):
    """An index whose entries are tokens among its lines, so that only what they point to counts."""

    text: SplitText
    tokens: tuple[bytes, ...]  # the lines, each entry replaced by its token
    entries: Mapping[bytes, tuple[bytes, IndexEntry]]  # by token: the entry's line, and the entry

    @classmethod
    def of(cls, content: bytes) -> "_Index":
        """Replace the entries of an index by tokens."""
        text = SplitText.of(content)
        tokens = list(text.lines)
        by_token: dict[bytes, tuple[bytes, IndexEntry]] = {}
        for entry in entries(content):
            token = _TOKEN_START + entry.path.encode()
            tokens[entry.line] = token
            by_token.setdefault(token, (text.lines[entry.line], entry))
        return cls(text, tuple(tokens), by_token)


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge three indexes by their entries; ``None`` if both sides rewrote the same words."""
    one_sided = merged_value(base, ours, theirs)
    if one_sided:
        return one_sided[0]
    base_index, ours_index, theirs_index = map(_Index.of, (base, ours, theirs))
    sides = (base_index, ours_index, theirs_index)
    merged = diff3.merge(
        base_index.tokens, ours_index.tokens, theirs_index.tokens, _resolve_entries
    )
    if merged is None:
        return None
    in_base, in_ours, in_theirs = (set(side.entries) for side in sides)
    removed = in_base - (in_ours & in_theirs)  # by at least one side
    lines: list[bytes] = []
    for token_or_line in _without_repeated(merged, removed):
        line = _entry_line(token_or_line, sides) if _is_token(token_or_line) else token_or_line
        if line is None:
            return None
        lines.append(line)
    return diff3.joined_lines(base_index.text, ours_index.text, theirs_index.text, lines)


def _resolve_entries(chunk: Chunk) -> Sequence[bytes] | None:
    """Unite the entries of a chunk that both sides changed; ``None`` is a conflict.

    Lines that a person wrote are merged as text: both sides may add some, but if both changed old
    ones in different ways, that is a conflict.
    """
    base_text, theirs_text = _text_lines(chunk.base), _text_lines(chunk.theirs)
    merged_text = merged_value(base_text, _text_lines(chunk.ours), theirs_text)
    # The side whose text stays also gives the order of the lines.
    if merged_text is not None:
        ordered_lines = chunk.theirs if merged_text[0] == theirs_text else chunk.ours
    elif not base_text:  # both sides only added text
        ordered_lines = chunk.theirs + chunk.ours
    else:
        return None
    wanted = _merged_tokens(chunk)
    lines = [line for line in ordered_lines if line in wanted or not _is_token(line)]
    for side in (chunk.theirs, chunk.ours):
        for number, line in enumerate(side):
            if line in wanted and line not in lines:
                line_before = side[number - 1] if number else None
                lines.insert(_place_of_entry(lines, line_before), line)
    return lines


def _text_lines(lines: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the lines that are no tokens of entries."""
    return tuple(line for line in lines if not _is_token(line))


def _merged_tokens(chunk: Chunk) -> set[bytes]:
    """Return the tokens of the entries that stay: ``theirs`` with the changes of ``ours``."""
    base, ours, theirs = (
        set(filter(_is_token, side)) for side in (chunk.base, chunk.ours, chunk.theirs)
    )
    removed_by_us, added_by_us = base - ours, ours - base
    return (theirs - removed_by_us) | added_by_us


def _place_of_entry(lines: Sequence[bytes], line_before: bytes | None) -> int:
    """Return the position for an entry in ``lines``: behind ``line_before``, else at the end.

    ``None`` means that the entry was the first line; it goes behind the entries that are first.
    """
    if line_before is None:
        return next((n for n, line in enumerate(lines) if not _is_token(line)), len(lines))
    return lines.index(line_before) + 1 if line_before in lines else len(lines)


def _is_token(line: bytes) -> bool:
    """Say whether this is the token of an entry; a real line has a line end."""
    return line.startswith(_TOKEN_START) and not line.endswith((b"\n", b"\r"))


def _without_repeated(lines: Sequence[bytes], removed: Collection[bytes]) -> list[bytes]:
    """Return the lines without the ``removed`` entries, and with each other entry once."""
    skipped = set(removed)
    retained: list[bytes] = []
    for line in lines:
        if _is_token(line):
            if line in skipped:
                continue
            skipped.add(line)
        retained.append(line)
    return retained


def _entry_line(token: bytes, sides: Sequence[_Index]) -> bytes | None:
    """Return the merged line of an entry, ``None`` if both sides changed the same words.

    ``sides`` are the base, our index and theirs. If both sides added the entry, it is their line.
    """
    base, ours, theirs = (side.entries.get(token) for side in sides)
    if ours is None or theirs is None or base is None:
        line_and_entry = theirs or ours or base
        return line_and_entry[0] if line_and_entry else None
    base_line, base_entry = base
    ours_line, ours_entry = ours
    theirs_line, theirs_entry = theirs
    line = merged_value(base_line, ours_line, theirs_line)
    if line:
        return line[0]
    title = merged_value(base_entry.title, ours_entry.title, theirs_entry.title)
    hook = merged_value(base_entry.hook, ours_entry.hook, theirs_entry.hook)
    if title is None or hook is None:
        return None
    return with_pointer(theirs_line, theirs_entry.path, Pointer(title[0], hook[0]))
