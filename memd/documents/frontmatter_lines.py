"""Frontmatter as lines: where it lies in a file, and reading and writing simple values. Pure.

Most frontmatter is ``key: value`` lines; reading those here is several times cheaper than YAML and
gives the same answer, or none at all. The lenient reading is for text that YAML refuses, as people
write it (``description: note: this``).
"""

import re
from dataclasses import dataclass
from typing import Any

from memd.core import limits

FENCE = b"---"
BOM = b"\xef\xbb\xbf"
# Whoever reads one byte more than this has enough of any file for ``split``.
HEAD_BYTES = limits.FRONTMATTER_BYTES + 1024
_KEY_LINE = re.compile(r"( *)([A-Za-z_][A-Za-z0-9_-]{0,63}):(?: (.*))?")
LENIENT_LINE = re.compile(r"([ \t]*)([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*:(?:[ \t]+(.*))?")
_INDICATORS = frozenset("-?:,[]{}#&*!|>'\"%@`")
# What some reader of YAML makes a number, a date, a boolean or nothing of (YAML 1.1 and 1.2).
_MISREAD = re.compile(
    r"(?:~|=|null|true|false|yes|no|on|off|y|n"
    r"|[-+]?[0-9][0-9_,.:]*(?:e[-+]?[0-9]+)?|[-+]?\.(?:[0-9][0-9_]*(?:e[-+]?[0-9]+)?|inf|nan)"
    r"|0[xob][0-9a-f_]+|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[t ].*)?)",
    re.IGNORECASE,
)
_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Fenced:
    """Where the frontmatter lies: byte offsets of its first line, its closing fence, the body.

    Without a closing fence in the first 30 lines ``closed`` is false and ``lines`` holds what is
    there of those lines.
    """

    start: int
    end: int
    body: int
    closed: bool
    lines: tuple[str, ...]


def split(content: bytes) -> Fenced | None:
    """Find the frontmatter; ``None`` when the file does not begin with a fence.

    Looks at the first 30 lines and ``HEAD_BYTES`` only, so that a head gives the whole's answer.
    """
    start = len(BOM) if content.startswith(BOM) else 0
    if not content.startswith(FENCE, start):
        return None
    head = content[start:HEAD_BYTES]
    lines = head[: _after_lines(head)].splitlines(keepends=True)[: limits.HEAD_LINES]
    if len(content) > HEAD_BYTES and not lines[-1].endswith((b"\n", b"\r")):
        lines.pop()  # cut in the middle
    if not lines or lines[0].rstrip() != FENCE:
        return None
    first = at = start + len(lines[0])
    inner: list[str] = []
    for line in lines[1:]:
        if line.rstrip() == FENCE:
            return Fenced(first, at, at + len(line), closed=True, lines=tuple(inner))
        inner.append(line.rstrip(b"\r\n").decode("utf-8", errors="replace"))
        at += len(line)
    return Fenced(first, at, at, closed=False, lines=tuple(inner))


def plain(lines: tuple[str, ...]) -> dict[str, Any] | None:
    """Read simple lines as YAML would, values as strings; ``None`` when YAML must be asked.

    Understood are ``key: value``, quotes without escapes, and one level under ``metadata:``.
    """
    top: dict[str, Any] = {}
    block: dict[str, Any] | None = None
    indent = ""
    for line in lines:
        match = _KEY_LINE.fullmatch(line)
        if match is None:
            return None
        spaces, key, value = match[1], match[2], (match[3] or "").strip(" ")
        read = simple(value)
        if read is None:
            return None
        if spaces:
            if block is None or (indent and spaces != indent) or key in block:
                return None
            indent, block[key] = spaces, read
            top["metadata"] = block
        else:
            if key in top:
                return None
            top[key] = read
            block = {} if key == "metadata" and not value else None
            indent = ""
    return top


def lenient(lines: tuple[str, ...]) -> tuple[dict[str, Any], bool]:
    """Read what looks like ``key: value``; say whether every line did (or was empty, a comment)."""
    top: dict[str, Any] = {}
    understood = True
    parent, indent = "", ""
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LENIENT_LINE.fullmatch(line)
        if match is None:
            understood = False
            continue
        spaces, key, value = match[1], match[2], unquoted(match[3] or "")
        if not spaces:
            top[key] = value
            parent, indent = "" if value else key, ""
        elif parent and indent in ("", spaces):
            block = top[parent] if isinstance(top[parent], dict) else {}
            block[key] = value
            top[parent], indent = block, spaces
        else:
            understood = False
    return top, understood


def scalar(value: str) -> str:
    """Write a value on one line so that every reader of YAML reads this text back.

    White space is folded; quotes stand only where a plain text would be misread.
    """
    text = _SURROGATE.sub("\ufffd", " ".join(value.split()))
    if text and _is_plain(text) and (_STAMP.fullmatch(text) or not _MISREAD.fullmatch(text)):
        return text
    if not _UNSAFE.search(text):
        if '"' not in text and "\\" not in text:
            return f'"{text}"'
        if "'" not in text:
            return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", escaped) + '"'


def unquoted(value: str) -> str:
    """Return a value without the pair of quotes around it, if it has one."""
    text = value.strip()
    pair = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if pair else text


def _after_lines(head: bytes) -> int:
    at = 0
    for _ in range(limits.HEAD_LINES):
        at = head.find(b"\n", at) + 1
        if not at:
            return len(head)
    return at


def simple(value: str) -> str | None:
    """Return what a value means, quoted or not, ``None`` when YAML must be asked."""
    if not value or _is_plain(value):
        return value
    inner = value[1:-1]
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    if quoted and value[0] not in inner and inner.isprintable() and "\\" not in inner:
        return inner
    return None


def _is_plain(text: str) -> bool:
    return (
        text[0] not in _INDICATORS
        and ": " not in text
        and " #" not in text
        and text[-1] != ":"
        and text != "<<"
        and text.isprintable()
    )
