"""Surgical changes of frontmatter: lines of the named keys change, every other byte stays.

Pure. Works on lines of bytes, so that line ends, a BOM, comments, order and foreign bytes are never
touched. ``document.py`` reads the result back before anybody gets it: what this file misjudges
becomes an error and not a damaged memory.
"""

import re
from collections.abc import Mapping

from memd.core.errors import MemdError
from memd.documents.frontmatter import Fenced, scalar

_TABLE = "metadata"
_HEADER = re.compile(rb"""["']?metadata["']?[ \t]*:[ \t]*+(?:#.*)?\s*""")
_INDENT = re.compile(rb"[ \t]*")
_MANY = 2  # between type and the stamps: where keys that memd does not know stand
# The order in which Claude Code stamps them.
_RANKS = {"node_type": 0, "type": 1, "originSessionId": 3, "modified": 4}


class FrontmatterNotEditableError(MemdError):
    """The frontmatter cannot be changed line by line without touching what is not ours."""

    code = 1011
    kind = "frontmatter_not_editable"
    hint = "write the whole memory instead"
    exit_status = 65

    def __init__(self, why: str) -> None:
        super().__init__(f"the frontmatter cannot be changed in place: {why}", why=why)


def edit(content: bytes, fenced: Fenced, fields: Mapping[str, str]) -> bytes:
    """Return the file with these fields set; a key below ``metadata`` is ``metadata.<key>``.

    Raises FrontmatterNotEditableError where ``metadata`` is not a block of lines.
    """
    lines = content[fenced.start : fenced.end].splitlines(keepends=True)
    eol = _eol(content[: fenced.start])
    for field, value in fields.items():
        table, _, key = field.rpartition(".")
        if table == _TABLE:
            _set_nested(lines, key, value, eol)
        else:
            _set_top(lines, field, value, eol)
    return content[: fenced.start] + b"".join(lines) + content[fenced.end :]


def _set_top(lines: list[bytes], key: str, value: str, eol: bytes) -> None:
    """Set a field at the top of a head, in place or where it belongs."""
    new = _line(b"", key, value)
    span = _find(lines, key, b"")
    if span is not None:
        lines[span[0] : span[1]] = [new + _eol(lines[span[0]])]
        return
    at = len(lines)
    table, name = _find(lines, _TABLE, b""), _find(lines, "name", b"")
    if key == "name":
        at = 0
    elif key == "description":
        at = name[1] if name else 0
    elif table:
        at = table[0]
    lines.insert(at, new + eol)


def _set_nested(lines: list[bytes], key: str, value: str, eol: bytes) -> None:
    """Set a field below ``metadata``, or at the top where a file has it there."""
    span = _find(lines, _TABLE, b"")
    if span is None:
        if _find(lines, key, b""):  # the flat form
            _set_top(lines, key, value, eol)
        else:
            lines += [_TABLE.encode() + b":" + eol, _line(b"  ", key, value) + eol]
        return
    if not _HEADER.fullmatch(lines[span[0]]):
        why = "its metadata is not written as a block of lines"
        raise FrontmatterNotEditableError(why)
    block = lines[span[0] + 1 : span[1]]
    indent = next((_indent(line) for line in block if line.strip()), b"  ")
    old = _find(block, key, indent)
    if old is not None:
        block[old[0] : old[1]] = [_line(indent, key, value) + _eol(block[old[0]])]
    else:
        block.insert(_place(block, key, indent), _line(indent, key, value) + eol)
    lines[span[0] + 1 : span[1]] = block


def _place(block: list[bytes], key: str, indent: bytes) -> int:
    """Return the line a new key goes to, by the order in which Claude Code writes them."""
    rank = _RANKS.get(key, _MANY)
    spans = [(_RANKS[other], span) for other in _RANKS if (span := _find(block, other, indent))]
    if rank < _MANY:
        return max((span[1] for other, span in spans if other < rank), default=0)
    return min((span[0] for other, span in spans if other > rank), default=len(block))


def _find(lines: list[bytes], key: str, indent: bytes) -> tuple[int, int] | None:
    """Return the lines of a key: its own and those of its value. The last one wins, as in YAML."""
    shape = re.compile(
        re.escape(indent) + rb"""(["']?)""" + re.escape(key.encode()) + rb"\1[ \t]*:(?:\s.*)?",
        re.DOTALL,
    )
    result = [number for number, line in enumerate(lines) if shape.fullmatch(line)]
    if not result:
        return None
    end = number = result[-1] + 1
    while number < len(lines) and _continues(lines[number], indent):
        number += 1
        if lines[number - 1].strip():
            end = number
    return result[-1], end


def _continues(line: bytes, indent: bytes) -> bool:
    """Say whether a line belongs to the value of the key above it."""
    text = line.strip()
    if not text or text.startswith(b"#"):
        return not text or len(_indent(line)) > len(indent)
    return len(_indent(line)) > len(indent) or (
        _indent(line) == indent and (text == b"-" or text.startswith(b"- "))
    )


def _line(indent: bytes, key: str, value: str) -> bytes:
    return indent + f"{key}: {scalar(value)}".encode()


def _indent(line: bytes) -> bytes:
    match = _INDENT.match(line)
    return match[0] if match else b""


def _eol(line: bytes) -> bytes:
    return line[len(line.rstrip(b"\r\n")) :] or b"\n"
