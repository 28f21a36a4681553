"""The files of programs that use the Messages API's memory tool. Pure.

Such a program writes free text; a memory has a head. What it writes is stored byte for byte where
it is a valid memory already. Other text gets a head of memd's, with a mark, and whoever looks
through the tool is shown exactly the text without that head: line numbers stay right. A file that
somebody else keeps without a valid head is left in its own form.
"""

import re

from memd.core.names import TEAM, printable
from memd.core.text import one_line
from memd.core.values import MemoryFile, MemoryType
from memd.documents import document
from memd.documents.document import split

MARK = "tool_text"  # the head's key that says: the head is memd's, the rest is the program's
MARKED = "verbatim"
_DESCRIPTION_CHARACTERS = 120
_LEADERS = re.compile(r"[\s#>*+\-=]+")


def shown(content: bytes) -> str:
    """Return what a program sees of a file: without memd's own head. Raises UnicodeDecodeError."""
    start = _text_start(content)
    return content[start:].decode() if start else content.decode()


def stored(path: str, text: str, old: MemoryFile | None, *, session: str, modified: str) -> bytes:
    """Return the bytes to store for a program's text; ``old`` is the file it replaces.

    ``modified`` is ISO 8601 in UTC. A head that is there is kept; its description follows the
    text's first line as long as nobody gave it another.
    """
    raw = text.encode()
    if _valid(raw, path) and not _text_start(raw):
        return raw
    if old is not None and _text_start(old.content):
        return _kept_head(path, text, old, modified)
    if old is not None and not _valid(old.content, path):
        return raw
    return _new_head(path, text, session=session, modified=modified) + raw


def renamed(path: str, old: MemoryFile) -> bytes:
    """Return the bytes of a file that moves to ``path``: only a head of memd's takes its name."""
    start = _text_start(old.content)
    if not start or old.header.name != slug(old.header.path):
        return old.content
    head = document.with_fields(old.content[:start], {"name": slug(path)})
    return head + old.content[start:]


def description(path: str, text: str) -> str:
    """Return one line about a text: its first line that says something."""
    for line in text.splitlines():
        words = one_line(_LEADERS.sub(" ", line, count=1), _DESCRIPTION_CHARACTERS)
        if any(c.isalnum() for c in words):
            return "".join(c if c.isprintable() else " " for c in words).strip()
    return f"notes in {printable(path)}"


def slug(path: str) -> str:
    """Return the name that a file gives to a memory without one."""
    stem = path.rpartition("/")[2].removesuffix(".md").lower()
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-") or "notes"


def _kept_head(path: str, text: str, old: MemoryFile, modified: str) -> bytes:
    head = old.content[: _text_start(old.content)]
    fields = {"metadata.modified": modified}
    if old.header.description == description(path, shown(old.content)):
        fields["description"] = description(path, text)
    return document.with_fields(head, fields) + text.encode()


def _new_head(path: str, text: str, *, session: str, modified: str) -> bytes:
    """Return the frontmatter of a file that a program makes, marked as made by the tool."""
    head = document.new(
        slug(path),
        description(path, text),
        MemoryType.REFERENCE,
        "",  # no body
        session="" if path.startswith(TEAM) else session,
        modified=modified,
    )
    return document.with_fields(head, {f"metadata.{MARK}": MARKED})


def _text_start(content: bytes) -> int:
    """Return where the program's text begins behind a head of memd's; 0 without such a head."""
    fenced = split(content)
    if fenced is None or not fenced.closed:
        return 0
    parsed = document.parse(content[: fenced.body], "")
    if parsed.damaged or parsed.metadata.get(MARK) != MARKED:
        return 0
    for blank in (b"\n", b"\r\n"):
        if content.startswith(blank, fenced.body):
            return fenced.body + len(blank)
    return fenced.body


def _valid(content: bytes, path: str) -> bool:
    try:
        document.validate(content, path)
    except document.InvalidMemoryError:
        return False
    return True
