"""The head of a memory: where it is, what its fields say, how its lines change. Pure.

A head stands between two lines ``---`` at the beginning of a file, within 30 lines and 16 KiB. Its
fields are texts by key: ``name``, ``description``, ``metadata.type``; nothing is nested deeper.

A head is read in the first of these ways that succeeds:
1. Lines ``key: value`` that YAML takes for the same texts: ``plain_fields``. It takes a twentieth
   of the time, and a look at a new directory reads a thousand heads (docs/decisions.md).
2. python-frontmatter, behind a guard (``guarded_yaml.py``).
3. Lines as a person reads them: ``description: note: this``. Lines that are no field make the head
   *damaged*; what could be read is returned, and nothing of memd rewrites the file.

In all three a ``#`` behind other words is text, although YAML takes it for a comment.

A field is set by replacing or adding its line. All other bytes stay: order, comments, line ends.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memd.base import limits
from memd.base.errors import Invalid

BOM = b"\xef\xbb\xbf"  # the byte order mark of UTF-8
# Whoever reads one byte more than this has enough of any file for ``split``.
HEAD_BYTES = limits.FRONTMATTER_BYTES + 1024
TABLE = "metadata"  # the key whose fields stand indented below it
BELOW = f"{TABLE}."  # begins the keys of these fields
STAMPS = (f"{BELOW}originSessionId", f"{BELOW}modified")  # the last fields, in this order

_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*(?:\r?\n|\Z)")
_LINES = re.compile(rb"(?:[^\n]*\n){0,%d}?(?=(---[ \t]*\r?(?:\n|\Z)))" % (limits.HEAD_LINES - 2))
_UNCLOSED = re.compile(rb"(?:[^\n]*(?:\n|\Z)){0,%d}" % (limits.HEAD_LINES - 1))
_INDICATORS = "-?:,[]{}#&*!|>'\"%@`<"  # YAML's: no unquoted value begins with one
# Groups: indent, key, value in double quotes, value in single quotes, plain value.
_PLAIN_LINE = (
    r"""(?m)^( *+)([A-Za-z_][A-Za-z0-9_-]{0,63}):"""
    rf"""(?:[ ]++(?:"([^"\\\n]*+)"|'([^'\n]*+)'|([^ \n{re.escape(_INDICATORS)}]"""
    r"""[^:\n]*+(?::(?=[^ \n])[^:\n]*+)*+))?)?[ ]*+$"""
)
# Groups: indent, quote, key, value.
_KEY_LINE = re.compile(
    rb"""([ \t]*)(["']?)([A-Za-z_][A-Za-z0-9_.-]*)\2[ \t]*:(?:[ \t]+(.*?))?\s*""", re.DOTALL
)
_VALUE_BELOW = r"[|>][+-]?\d?[+-]?"  # says that the value is in the lines below
# What some reader of YAML makes a number, a date, a boolean or nothing of (YAML 1.1 and 1.2).
_MISREAD = (
    r"(?i)(?:~|=|null|true|false|yes|no|on|off|y|n"
    r"|[-+]?[0-9][0-9_,.:]*(?:e[-+]?[0-9]+)?|[-+]?\.(?:[0-9][0-9_]*(?:e[-+]?[0-9]+)?|inf|nan)"
    r"|0[xob][0-9a-f_]+|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[t ].*)?)"
)
_TIME_STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"  # plain in Claude Code's layout
_ESCAPED = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"  # by YAML, and not by JSON
_SURROGATE = "[\ud800-\udfff]"


def head_not_editable(why: str) -> Invalid:
    """Return the error that a field cannot be set without touching lines of other fields."""
    return Invalid(
        f"the frontmatter cannot be changed in place: {why}",
        hint="write the whole memory instead",
        why=why,
    )


class Head(Struct, frozen=True):
    """The place of a head in a file, as byte offsets, and its ``text`` between the fences."""

    start: int  # of the first line behind the opening fence
    end: int  # of the closing fence
    body: int  # of the text behind the closing fence
    content: int  # of the text behind the blank line that may follow the fence
    closed: bool  # there is a closing fence; without one the head is the first 30 lines
    text: str  # with ``\n`` at the end of each line


class HeadFields(Struct, frozen=True):
    """What a head says: texts by key, and what is wrong with it."""

    values: Mapping[str, str]
    problem: str = ""  # why other programs cannot read it, in words
    damaged: bool = False  # some of its lines could not be read


class Part(Struct):
    """The lines of one field, or a line that is no field (``key`` is "").

    ``indent`` and ``value`` are those of the first line; a comment is no value.
    """

    key: str
    indent: bytes
    value: str
    lines: list[bytes]  # with their ends


def split(content: bytes) -> Head | None:
    """Return where the head is, ``None`` if the file does not begin with a fence.

    The first ``HEAD_BYTES`` of a file give the same result as all of it.
    """
    opening = _OPENING.match(content, 0, HEAD_BYTES)
    if opening is None or opening.end() == HEAD_BYTES:
        return None
    start = opening.end()
    lines = _LINES.match(content, start, HEAD_BYTES)
    closed = lines is not None and lines.end(1) < HEAD_BYTES
    if lines is None or not closed:
        lines = _UNCLOSED.match(content, start, HEAD_BYTES)
    end = lines.end() if lines else start
    body = lines.end(1) if lines and closed else end
    text = content[start:end].decode("utf-8", errors="replace").replace("\r\n", "\n")
    line_end = next((e for e in (b"\r\n", b"\n") if content.startswith(e, body)), b"")
    return Head(start, end, body, body + len(line_end), closed, text)


def read(head: Head) -> HeadFields:
    """Return what a head says, whatever its text is. Never raises."""
    is_small = head.end - head.start <= limits.FRONTMATTER_BYTES
    fields = plain_fields(head.text) if head.closed and is_small else None
    if fields is not None:
        return HeadFields(fields)
    loaded, reason = mapping(head.text)
    if not head.closed:
        loaded, reason = None, f"it is not closed within {limits.HEAD_LINES} lines"
    lines = parts(head.text.encode())
    by_line, is_complete = _fields_by_line(lines)
    if loaded is None:
        is_readable = is_complete and head.closed and is_small
        return HeadFields(by_line, reason, damaged=not is_readable)
    table = loaded.get(TABLE)
    nested = table if isinstance(table, dict) else {}
    fields = {str(key): _text(value) for key, value in loaded.items() if value is not nested}
    if not fields.get(TABLE):
        fields.pop(TABLE, None)
    fields |= {f"{BELOW}{key}": _text(value) for key, value in nested.items()}
    # One line of plain words with a `` #``, behind which YAML cuts.
    is_cut = [
        part.key
        for part in lines
        if part.key
        and len(part.lines) == 1
        and " #" in part.value
        and part.value[0] not in _INDICATORS
    ]
    return HeadFields(fields | {key: by_line[key] for key in is_cut})


def plain_fields(text: str) -> dict[str, str] | None:
    """Return the fields of simple lines, ``None`` where YAML has to read them.

    Simple are ``key: value``, quotes without escapes, and one level below ``metadata:``.
    """
    lines = re.findall(_PLAIN_LINE, text)
    if len(lines) != text.count("\n") or not text.replace("\n", "").isprintable():
        return None
    fields: dict[str, str] = {}
    tables = 0
    in_table, table_indent = False, ""  # the indent is "" until the first line below ``metadata``
    for indent, key, double, single, plain in lines:
        value = double or single or plain.rstrip(" ")
        if indent:
            if not in_table or table_indent not in ("", indent):
                return None
            table_indent = indent
            fields[BELOW + key] = value
        elif key == TABLE and not value:
            in_table, table_indent = True, ""
            tables += 1
        else:
            in_table = False
            fields[key] = value
    is_distinct = len(fields) + tables == len(lines) and tables <= 1 and TABLE not in fields
    return fields if is_distinct else None


def mapping(text: str) -> tuple[Mapping[str, Any] | None, str]:
    """Return what ``guarded_yaml.mapping`` does.

    The library is imported when the first head needs it: most need none, and it takes a tenth of a
    start.
    """
    from memd.store import guarded_yaml  # noqa: PLC0415 - see above

    return guarded_yaml.mapping(text)


def parts(raw: bytes) -> list[Part]:
    """Return the lines of a head by field, in their order; joined they are the head again.

    A line that continues a value belongs to the field. ``metadata:`` is a field, and so is each key
    below it.
    """
    result: list[Part] = []
    in_table, table_indent, field_indent = False, b"", b""  # the last is that of the last field
    for line in raw.splitlines(keepends=True):
        match = _KEY_LINE.fullmatch(line)
        text = line.strip()
        indent = match[1] if match else line[: len(line) - len(line.lstrip(b" \t"))]
        if match and (not indent or (in_table and table_indent in (b"", indent))):
            raw_value = match[4] or b""
            value = "" if raw_value.startswith(b"#") else raw_value.decode("utf-8", "replace")
            key = match[3].decode()
            if indent:
                key, table_indent = BELOW + key, indent
            else:
                in_table, table_indent = key == TABLE and not value, b""
            result.append(Part(key, indent, value, [line]))
            field_indent = indent
            continue
        is_deeper = len(indent) > len(field_indent)
        is_list_item = indent == field_indent and (text == b"-" or text.startswith(b"- "))
        if result and result[-1].key and (not text or is_deeper or is_list_item):
            result[-1].lines.append(line)
        else:
            result.append(Part("", indent, "", [line]))
    return result


def with_fields(raw: bytes, fields: Mapping[str, str], line_end: bytes) -> bytes:
    """Return the lines of a head with these fields set; a new line gets ``line_end``.

    Where a file has a field of ``metadata`` at the top, as older files do, it is set there. The
    caller reads the result back. Raises Invalid.
    """
    result = parts(raw)
    for wanted, value in fields.items():
        keys = [part.key for part in result]
        short = wanted.removeprefix(BELOW)
        key = short if wanted not in keys and TABLE not in keys and short in keys else wanted
        is_nested = key.startswith(BELOW)
        indents = (part.indent for part in result if part.key.startswith(BELOW))
        indent = next(indents, b"  ") if is_nested else b""
        line = indent + f"{short}: {scalar(value)}".encode()
        if key in keys:
            old = result[len(keys) - 1 - keys[::-1].index(key)].lines  # the last one, as in YAML
            size = max(number for number, each in enumerate(old, 1) if each.strip())
            old_end = old[0][len(old[0].rstrip(b"\r\n")) :] or b"\n"
            old[:size] = [line + old_end]  # empty lines behind the value stay
            continue
        if is_nested and TABLE not in keys:
            result.append(Part(TABLE, b"", "", [TABLE.encode() + b":" + line_end]))
            keys.append(TABLE)
        at = keys.index(TABLE) if TABLE in keys else len(keys)
        if is_nested and result[at].value:
            why = "its metadata is not written as a block of lines"
            raise head_not_editable(why)
        if is_nested:
            later = STAMPS[STAMPS.index(key) + 1 :] if key in STAMPS else STAMPS
            block = [at, *(n for n, each in enumerate(keys) if each.startswith(BELOW))]
            at = next((n for n in block if keys[n] in later), block[-1] + 1)
        result.insert(at, Part(key, indent, value, [line + line_end]))
    return b"".join(line for part in result for line in part.lines)


def lines_of(fields: Mapping[str, str]) -> bytes:
    """Return the lines of a whole head: the fields at the top, then those below ``metadata``."""
    top = [f"{key}: {scalar(text)}\n" for key, text in fields.items() if not key.startswith(BELOW)]
    nested = [
        f"  {key.removeprefix(BELOW)}: {scalar(text)}\n"
        for key, text in fields.items()
        if key.startswith(BELOW)
    ]
    return "".join(["---\n", *top, f"{TABLE}:\n", *nested, "---\n"]).encode()


def scalar(value: str) -> str:
    """Return a value as one line of YAML that every reader reads back as this text.

    White space is folded. Quotes are added only if the text would be misread without them.
    """
    text = re.sub(_SURROGATE, "\ufffd", " ".join(value.split()))
    is_misread = re.fullmatch(_MISREAD, text) and not re.fullmatch(_TIME_STAMP, text)
    has_marks = ": " in text or " #" in text or text[-1:] == ":" or not text.isprintable()
    if text and text[0] not in _INDICATORS and not has_marks and not is_misread:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return re.sub(_ESCAPED, lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _text(value: Any) -> str:
    """Return a YAML value as one text."""
    if isinstance(value, dict):
        return ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    # Without libyaml an escape may name half a character, which no reply can carry.
    return str(value).encode("utf-8", errors="replace").decode()


def _fields_by_line(lines: list[Part]) -> tuple[dict[str, str], bool]:
    """Return the fields of a head as a person reads its lines, and whether all lines were read."""
    fields: dict[str, str] = {}
    is_complete = True
    for part in lines:
        first, *more = part.lines
        if not part.key:
            is_complete &= not first.strip() or first.lstrip().startswith(b"#")
            continue
        deeper = {match[1] for match in map(_KEY_LINE.fullmatch, more) if match}
        is_deep = "." in part.key or len(deeper) > 1 or bool(part.value)
        is_unindented = any(line.strip() and line[:1] not in (b" ", b"\t") for line in more)
        is_complete &= not (deeper and is_deep) and not is_unindented
        own = "" if re.fullmatch(_VALUE_BELOW, part.value) else _unquoted(part.value)
        texts = [line.decode("utf-8", errors="replace").strip() for line in more]
        fields[part.key] = " ".join([own, *filter(None, texts)]).strip()
    if not fields.get(TABLE):
        fields.pop(TABLE, None)
    return fields, is_complete


def _unquoted(value: str) -> str:
    """Return a value without the one pair of quotes that is around it."""
    inner = value[1:-1]
    if len(value) < 2 or value[0] != value[-1] or value[0] not in "\"'":  # noqa: PLR2004 - a pair
        return value
    if value[0] == "'":
        return inner.replace("''", "'")
    try:
        return str(json.loads(value))
    except ValueError:
        return inner
