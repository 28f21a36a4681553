"""Recognise the tool that a source comes from, and call its reader. Pure."""

import re
from collections.abc import Callable, Mapping

import msgspec

from memd.core.names import INDEX
from memd.documents.document import parse
from memd.portable import (
    basic_memory,
    bullets,
    chats,
    claude_ai,
    claude_code,
    claude_mem,
    codex,
    cursor_rules,
    mem0,
)
from memd.portable.decoding import ERRORS, is_hidden, without_bom
from memd.portable.manifest import MANIFEST, is_manifest
from memd.portable.memories import ReadingBuilder
from memd.portable.values import FILE_BYTES, ImportReading, ImportSource, SourceKind

_READERS: Mapping[SourceKind, Callable[[ReadingBuilder], None]] = {
    SourceKind.CLAUDE_CODE: claude_code.read,
    SourceKind.CODEX: codex.read,
    SourceKind.BASIC_MEMORY: basic_memory.read,
    SourceKind.CLAUDE_MEM: claude_mem.read,
    SourceKind.MEM0: mem0.read,
    SourceKind.CLAUDE_AI: claude_ai.read,
    SourceKind.TEXT: bullets.read,
    SourceKind.CURSOR: cursor_rules.read,
    SourceKind.CHATS: chats.read,
}
# Patterns of file names, and members of JSON objects, by which a kind is recognised.
_NAME_PATTERNS = {
    SourceKind.CODEX: r"memory_summary\.md|raw_memories\.md|rollout_summaries/.*",
    SourceKind.CURSOR: r"\.cursor/rules/.*|\.cursorrules|[^/]*\.mdc",
    SourceKind.CLAUDE_CODE: r"agent-memory(?:-local)?/.*|projects/[^/]+/memory/.*",
    SourceKind.CHATS: r"conversations(?:-[^/]*)?\.json",
}
_CHATS = re.compile(rf"(?:.*/)?(?:{_NAME_PATTERNS[SourceKind.CHATS]})")
_PATTERNS = [(kind, re.compile(rf"(?:.*/)?(?:{text})")) for kind, text in _NAME_PATTERNS.items()]
_KIND_OF_MEMBER = {
    "observations": SourceKind.CLAUDE_MEM,
    "memory": SourceKind.MEM0,
    "results": SourceKind.MEM0,
    "conversations_memory": SourceKind.CLAUDE_AI,
    "project_memories": SourceKind.CLAUDE_AI,
    "mapping": SourceKind.CHATS,
    "chat_messages": SourceKind.CHATS,
}
_ABSENT = msgspec.Raw(b"")
_KnownMembers = msgspec.defstruct(
    "_KnownMembers", [(member, msgspec.Raw, _ABSENT) for member in _KIND_OF_MEMBER]
)
_CODEX_SIGNS = (b"# Task Group:", b"rollout_summary_files:")
_HEAD_BYTES = 1024  # bytes that are read to see whether JSON is a list
_MOST_OPENED = 16  # the most files that are opened to recognise a source
_SEARCHED_LINES = 200  # lines of a text that are searched for a list entry


class _List(msgspec.Struct, array_like=True):
    """A JSON list; only its first entry is decoded."""

    first: msgspec.Raw


def read(kind: SourceKind, source: ImportSource) -> ImportReading:
    """Read a source with the reader of its kind, which is not ``memd``.

    Raises SourceDamagedError, and SourceRefusedError if nothing of that kind is in it.
    """
    builder = ReadingBuilder(kind, source)
    _READERS[kind](builder)
    return builder.reading()


def kind_of(source: ImportSource) -> SourceKind | None:
    """Return the kind of a source, ``None`` if none or more than one fits.

    A data export of claude.ai has chats too, but counts as memories. Raises SourceDamagedError.
    """
    names = source.names()
    if MANIFEST in names and is_manifest(source.read(MANIFEST)):
        return SourceKind.MEMD
    kinds = {kind for name in names for kind, pattern in _PATTERNS if pattern.fullmatch(name)}
    readable = [name for name in names if not is_hidden(name) and source.size(name) <= FILE_BYTES]
    # Files of chats are known by their names, and may be long.
    jsons = [name for name in readable if name.endswith(".json") and not _CHATS.fullmatch(name)]
    for name in jsons[:_MOST_OPENED]:
        kinds |= _json_kinds(without_bom(source, name))
    if not kinds:
        texts = [name for name in readable if name.endswith((".md", ".txt"))]
        text_kinds = {_text_kind(source, name) for name in texts[:_MOST_OPENED]}
        kinds = {kind for kind in text_kinds if kind}
    if SourceKind.CLAUDE_AI in kinds:
        kinds.discard(SourceKind.CHATS)  # its data export has memories and chats
    if len(kinds) > 1:
        kinds.discard(SourceKind.TEXT)  # memories and notes may be lists
    return kinds.pop() if len(kinds) == 1 else None


def _json_kinds(content: bytes) -> set[SourceKind]:
    """Return the kinds whose members a JSON object has, or the first entry of a list."""
    try:
        if content[:_HEAD_BYTES].lstrip().startswith(b"["):
            content = bytes(msgspec.json.decode(content, type=_List).first)
        value = msgspec.json.decode(content, type=_KnownMembers)
    except ERRORS:
        return set()
    return {kind for member, kind in _KIND_OF_MEMBER.items() if bytes(getattr(value, member))}


def _text_kind(source: ImportSource, name: str) -> SourceKind | None:
    """Return the kind of a text file by its frontmatter, or by list entries in its first lines."""
    content = source.read(name)
    head = parse(content, name)
    if name.rpartition("/")[2] == INDEX:
        is_codex = any(sign in content for sign in _CODEX_SIGNS)
        return SourceKind.CODEX if is_codex else SourceKind.CLAUDE_CODE
    if "permalink" in head.metadata:
        return SourceKind.BASIC_MEMORY
    if head.type is not None:
        return SourceKind.CLAUDE_CODE
    lines = head.body.split("\n", _SEARCHED_LINES)[:_SEARCHED_LINES]
    return SourceKind.TEXT if any(map(bullets.entry, lines)) else None
