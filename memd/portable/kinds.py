"""Recognise the tool that a source comes from, and call its reader. Pure."""

import re
from collections.abc import Callable, Mapping

from memd.base.names import INDEX
from memd.portable import bullets, claude_code, codex
from memd.portable.decoding import is_hidden
from memd.portable.manifest import MANIFEST, is_manifest
from memd.portable.memories import ReadingBuilder
from memd.portable.values import FILE_BYTES, ImportReading, ImportSource, SourceKind
from memd.store.memory import parse

_READERS: Mapping[SourceKind, Callable[[ReadingBuilder], None]] = {
    SourceKind.CLAUDE_CODE: claude_code.read,
    SourceKind.CODEX: codex.read,
    SourceKind.TEXT: bullets.read,
}
# File names by which a kind is recognised.
_PATTERNS = {
    SourceKind.CODEX: re.compile(
        r"(?:.*/)?(?:memory_summary\.md|raw_memories\.md|rollout_summaries/.*)"
    ),
    SourceKind.CLAUDE_CODE: re.compile(
        r"(?:.*/)?(?:agent-memory(?:-local)?/.*|projects/[^/]+/memory/.*)"
    ),
}
_CODEX_SIGNS = (b"# Task Group:", b"rollout_summary_files:")
_MOST_OPENED = 16  # the most files that are opened to recognise a source
_SEARCHED_LINES = 200  # lines of a text that are searched for a list entry


def read(kind: SourceKind, source: ImportSource) -> ImportReading:
    """Read a source with the reader of its kind, which is not ``memd``.

    Raises Invalid, and Refused if nothing of that kind is in it.
    """
    builder = ReadingBuilder(kind, source)
    _READERS[kind](builder)
    return builder.reading()


def kind_of(source: ImportSource) -> SourceKind | None:
    """Return the kind of a source, ``None`` if none or more than one fits.

    Raises Invalid.
    """
    names = source.names()
    if MANIFEST in names and is_manifest(source.read(MANIFEST)):
        return SourceKind.MEMD
    kinds = {
        kind for name in names for kind, pattern in _PATTERNS.items() if pattern.fullmatch(name)
    }
    if not kinds:
        texts = [
            name
            for name in names
            if name.endswith((".md", ".txt"))
            and not is_hidden(name)
            and source.size(name) <= FILE_BYTES
        ]
        text_kinds = {_text_kind(source, name) for name in texts[:_MOST_OPENED]}
        kinds = {kind for kind in text_kinds if kind}
    if len(kinds) > 1:
        kinds.discard(SourceKind.TEXT)  # memories and notes may be lists
    return kinds.pop() if len(kinds) == 1 else None


def _text_kind(source: ImportSource, name: str) -> SourceKind | None:
    """Return the kind of a text file by its frontmatter, or by list entries in its first lines."""
    content = source.read(name)
    head = parse(content, name)
    if name.rpartition("/")[2] == INDEX:
        is_codex = any(sign in content for sign in _CODEX_SIGNS)
        return SourceKind.CODEX if is_codex else SourceKind.CLAUDE_CODE
    if head.type is not None:
        return SourceKind.CLAUDE_CODE
    lines = head.body.split("\n", _SEARCHED_LINES)[:_SEARCHED_LINES]
    return SourceKind.TEXT if any(map(bullets.entry, lines)) else None
