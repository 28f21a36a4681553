"""Convert between memories and the free text of programs that use the memory tool. Pure.

A text that is a valid memory already is stored byte for byte. Other text gets a frontmatter of
memd's, with a mark; the tool shows such a file without it, so that line numbers are right. A file
that another program keeps without valid frontmatter stays without it.
"""

import re

from memd.base.errors import Invalid
from memd.base.names import TEAM, printable
from memd.base.text import one_line
from memd.base.values import MemoryFile, MemoryType
from memd.store import memory
from memd.store.memory import split

# The field and its value that mark a frontmatter as memd's, above a program's own text.
MARK = "tool_text"
MARKED = "verbatim"
_DESCRIPTION_CHARACTERS = 120
_LINE_MARKS = r"[\s#>*+\-=]+"


def shown(content: bytes) -> str:
    """Return a file's text without memd's own frontmatter. Raises UnicodeDecodeError."""
    start = _text_start(content)
    return content[start:].decode() if start else content.decode()


def stored(path: str, text: str, old: MemoryFile | None, *, session: str, modified: str) -> bytes:
    """Return the bytes to store for a program's text; ``old`` is the file it replaces.

    ``modified`` is ISO 8601 in UTC. An existing frontmatter stays; its description is updated from
    the text's first line unless it was changed by somebody.
    """
    content = text.encode()
    if _is_memory(content, path) and not _text_start(content):
        return content
    if old is not None and _text_start(old.content):
        return _with_old_head(path, text, old, modified)
    if old is not None and not _is_memory(old.content, path):
        return content
    return _new_head(path, text, session=session, modified=modified) + content


def renamed(path: str, old: MemoryFile) -> bytes:
    """Return the bytes of a file that moves to ``path``; only memd's frontmatter is renamed."""
    start = _text_start(old.content)
    if not start or old.header.name != slug(old.header.path):
        return old.content
    head = memory.with_fields(old.content[:start], {"name": slug(path)})
    return head + old.content[start:]


def description(path: str, text: str) -> str:
    """Return a description of a text: its first line with a letter or digit."""
    for line in text.splitlines():
        words = one_line(re.sub(_LINE_MARKS, " ", line, count=1), _DESCRIPTION_CHARACTERS)
        if any(c.isalnum() for c in words):
            return "".join(c if c.isprintable() else " " for c in words).strip()
    return f"notes in {printable(path)}"


def slug(path: str) -> str:
    """Return the memory name made from a file's name."""
    stem = path.rpartition("/")[2].removesuffix(".md").lower()
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-") or "notes"


def _with_old_head(path: str, text: str, old: MemoryFile, modified: str) -> bytes:
    """Return a text below the frontmatter of the file that it replaces."""
    head = old.content[: _text_start(old.content)]
    fields = {"metadata.modified": modified}
    if old.header.description == description(path, shown(old.content)):
        fields["description"] = description(path, text)
    return memory.with_fields(head, fields) + text.encode()


def _new_head(path: str, text: str, *, session: str, modified: str) -> bytes:
    """Return the frontmatter of a file that a program makes, marked as made by the tool."""
    head = memory.new(
        slug(path),
        description(path, text),
        MemoryType.REFERENCE,
        "",  # no body
        session="" if path.startswith(TEAM) else session,
        modified=modified,
    )
    return memory.with_fields(head, {f"metadata.{MARK}": MARKED})


def _text_start(content: bytes) -> int:
    """Return the offset of the program's text behind memd's own frontmatter.

    It is 0 for a file without such a frontmatter.
    """
    head = split(content)
    if head is None or not head.closed:
        return 0
    parsed = memory.parse(content[: head.body], "")
    if parsed.damaged or parsed.metadata.get(MARK) != MARKED:
        return 0
    for blank_line in (b"\n", b"\r\n"):
        if content.startswith(blank_line, head.body):
            return head.body + len(blank_line)
    return head.body


def _is_memory(content: bytes, path: str) -> bool:
    """Return whether a content is a valid memory."""
    try:
        memory.validate(content, path)
    except Invalid:
        return False
    return True
