"""Setting fields of a frontmatter: the lines of these keys change, every other byte stays. Pure.

It works on lines of bytes, so that line ends, a BOM, comments, order and foreign bytes stay as they
are. ``document.py`` reads the result back before anybody gets it: a line that is misjudged here
becomes an error and not a damaged memory.
"""

import re
from collections.abc import Mapping

from memd.base.errors import MemdError
from memd.documents.frontmatter import Fenced, scalar

_TABLE = "metadata"  # the key whose fields are nested below it
_TABLE_LINE = re.compile(rb"""["']?metadata["']?[ \t]*:[ \t]*+(?:#.*)?\s*""")
_INDENT = re.compile(rb"[ \t]*")
_UNKNOWN_RANK = 2  # keys that memd does not know come between type and the stamps
# The order in which Claude Code writes its keys.
_RANKS = {"node_type": 0, "type": 1, "originSessionId": 3, "modified": 4}


class FrontmatterNotEditableError(MemdError):
    """The frontmatter cannot be changed line by line without touching what is not ours."""

    code = 1011
    kind = "frontmatter_not_editable"
    hint = "write the whole memory instead"

    def __init__(self, why: str) -> None:
        super().__init__(f"the frontmatter cannot be changed in place: {why}", why=why)


def edit(content: bytes, fenced: Fenced, fields: Mapping[str, str]) -> bytes:
    """Return the file with these fields set; a key below ``metadata`` is ``metadata.<key>``.

    Raises FrontmatterNotEditableError where ``metadata`` is not a block of lines.
    """
    lines = content[fenced.start : fenced.end].splitlines(keepends=True)
    line_end = _line_end(content[: fenced.start])  # of the opening fence
    for field, value in fields.items():
        table, _, key = field.rpartition(".")
        if table == _TABLE:
            _set_nested(lines, key, value, line_end)
        else:
            _set_top(lines, field, value, line_end)
    return content[: fenced.start] + b"".join(lines) + content[fenced.end :]


def _set_top(lines: list[bytes], key: str, value: str, line_end: bytes) -> None:
    """Set a field at the top of a head; a new line gets ``line_end``.

    A new field goes in the usual order: name, description, other fields, ``metadata``.
    """
    new_line = _line(b"", key, value)
    span = _find(lines, key, b"")
    if span is not None:
        first, end = span
        lines[first:end] = [new_line + _line_end(lines[first])]
        return
    position = len(lines)
    table_span, name_span = _find(lines, _TABLE, b""), _find(lines, "name", b"")
    if key == "name":
        position = 0
    elif key == "description":
        position = name_span[1] if name_span else 0
    elif table_span:
        position = table_span[0]
    lines.insert(position, new_line + line_end)


def _set_nested(lines: list[bytes], key: str, value: str, line_end: bytes) -> None:
    """Set a field below ``metadata``, or at the top where a file has it there."""
    span = _find(lines, _TABLE, b"")
    if span is None:
        if _find(lines, key, b""):  # the older layout has it at the top
            _set_top(lines, key, value, line_end)
        else:
            lines += [_TABLE.encode() + b":" + line_end, _line(b"  ", key, value) + line_end]
        return
    table_line, table_end = span
    if not _TABLE_LINE.fullmatch(lines[table_line]):
        why = "its metadata is not written as a block of lines"
        raise FrontmatterNotEditableError(why)
    block = lines[table_line + 1 : table_end]
    indent = next((_indent(line) for line in block if line.strip()), b"  ")
    new_line = _line(indent, key, value)
    old_span = _find(block, key, indent)
    if old_span is not None:
        first, end = old_span
        block[first:end] = [new_line + _line_end(block[first])]
    else:
        block.insert(_position_of_new_key(block, key, indent), new_line + line_end)
    lines[table_line + 1 : table_end] = block


def _position_of_new_key(block: list[bytes], key: str, indent: bytes) -> int:
    """Return the line a new key goes to, by the order in which Claude Code writes them.

    A key of the beginning goes behind those before it, any other in front of those after it.
    """
    rank = _RANKS.get(key, _UNKNOWN_RANK)
    # The known keys' lines by rank: the first one and the one behind the last.
    spans = {
        known_rank: _find(block, known_key, indent) for known_key, known_rank in _RANKS.items()
    }
    ends_before = [span[1] for known_rank, span in spans.items() if span and known_rank < rank]
    starts_after = [span[0] for known_rank, span in spans.items() if span and known_rank > rank]
    if rank < _UNKNOWN_RANK:
        return max(ends_before, default=0)
    return min(starts_after, default=len(block))


def _find(lines: list[bytes], key: str, indent: bytes) -> tuple[int, int] | None:
    """Return the numbers of a key's line and of the line behind its value, ``None`` for no key.

    ``indent`` is what the key's line begins with. Of several such lines the last one counts, as in
    YAML.
    """
    key_line = re.compile(
        re.escape(indent) + rb"""(["']?)""" + re.escape(key.encode()) + rb"\1[ \t]*:(?:\s.*)?",
        re.DOTALL,
    )
    numbers = [number for number, line in enumerate(lines) if key_line.fullmatch(line)]
    if not numbers:
        return None
    first = numbers[-1]
    end = number = first + 1
    while number < len(lines) and _continues(lines[number], indent):
        number += 1
        if lines[number - 1].strip():  # empty lines behind the value are not a part of it
            end = number
    return first, end


def _continues(line: bytes, indent: bytes) -> bool:
    """Say whether a line belongs to the value of a key above it, which has this indent."""
    text = line.strip()
    if not text:
        return True
    if len(_indent(line)) > len(indent):
        return True
    # YAML lets the items of a list stand directly below their key.
    is_list_item = text == b"-" or text.startswith(b"- ")
    return _indent(line) == indent and is_list_item


def _line(indent: bytes, key: str, value: str) -> bytes:
    """Return the line of a field, without a line end."""
    return indent + f"{key}: {scalar(value)}".encode()


def _indent(line: bytes) -> bytes:
    """Return the blanks and tabs at the beginning of a line."""
    match = _INDENT.match(line)
    return match[0] if match else b""


def _line_end(line: bytes) -> bytes:
    """Return the line end of a line, a newline if it has none."""
    return line[len(line.rstrip(b"\r\n")) :] or b"\n"
