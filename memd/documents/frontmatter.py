"""Frontmatter: finding it in a file and reading its lines. Pure; the door of PyYAML.

Rules of this file
- ``key: value`` lines are read here without YAML, several times faster and with the same result
  (``simple_fields``); other lines are left to YAML. ``quick_fields`` reads a whole head in the
  layout that Claude Code and memd write, for the first scan of a large directory.
- ``lenient_fields`` reads lines that people write and YAML refuses (``description: note: this``).
- Nothing reaches PyYAML before ``problem`` has let it pass. Measured: 30,000 brackets end the
  process in the C loader, a 674-byte chain of merges costs a minute, and tags make dates, sets and
  errors of many classes. So a text is checked by size and brackets, then as a stream of events,
  which needs neither recursion nor memory; what passes is a shallow mapping without anchors,
  aliases, merges or tags.
"""

import re
from typing import Any

import yaml
from msgspec import Struct

from memd.base import limits
from memd.base.values import ORIGINS, MemoryType

FENCE = b"---"
BOM = b"\xef\xbb\xbf"  # the byte order mark of UTF-8
# Whoever reads one byte more than this has enough of any file for ``split``.
HEAD_BYTES = limits.FRONTMATTER_BYTES + 1024
# Groups: indent, key, value. The first form is one that YAML reads in the same way.
_KEY_LINE = re.compile(r"( *)([A-Za-z_][A-Za-z0-9_-]{0,63}):(?: (.*))?")
LENIENT_LINE = re.compile(r"([ \t]*)([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*:(?:[ \t]+(.*))?")
_INDICATORS = frozenset("-?:,[]{}#&*!|>'\"%@`")  # YAML's: no unquoted value begins with one
# What some reader of YAML makes a number, a date, a boolean or nothing of (YAML 1.1 and 1.2).
_MISREAD = re.compile(
    r"(?:~|=|null|true|false|yes|no|on|off|y|n"
    r"|[-+]?[0-9][0-9_,.:]*(?:e[-+]?[0-9]+)?|[-+]?\.(?:[0-9][0-9_]*(?:e[-+]?[0-9]+)?|inf|nan)"
    r"|0[xob][0-9a-f_]+|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[t ].*)?)",
    re.IGNORECASE,
)
_TIME_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
# Characters that YAML must be given as escapes.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Values stay the strings that were written: no dates, booleans or sexagesimal numbers.
LOADER: Any = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
ERRORS = (yaml.YAMLError, ValueError)  # ValueError: what the pure Python scanner makes of escapes
# The scanner's cost grows with the square of open brackets; no depth can exceed their number.
_MOST_BRACKETS = 64
Fields = tuple[str, str, MemoryType | None, str]  # name, description, type, origin
# A text that every reader of YAML takes for this very text.
_PLAIN_TEXT = rb"[A-Za-z0-9_](?:[A-Za-z0-9_.:+/-]*[A-Za-z0-9_])?"
# A whole head in the usual layout. Groups: name, description, type at the top, type below
# ``metadata``, origin.
_HEAD = re.compile(
    rb"---\n"
    rb"name: ([^\r\n]+)\n"
    rb"description: ([^\r\n]+)\n"
    rb"(?:type: (%(plain)s)\n"
    rb"|metadata:\n"
    rb"(?:  node_type: %(plain)s\n)?"
    rb"  type: (%(plain)s)\n"
    rb"(?:  origin: (%(origins)s)\n)?"
    rb"(?:  originSessionId: %(plain)s\n)?"
    rb"(?:  modified: %(plain)s\n)?)"
    rb"---\n" % {b"plain": _PLAIN_TEXT, b"origins": "|".join(ORIGINS).encode()}
)
_TYPES: dict[bytes, MemoryType] = {kind.encode(): kind for kind in MemoryType}


class Fenced(Struct, frozen=True):
    """The place of the frontmatter in a file, as byte offsets, and its lines."""

    start: int  # of the first line behind the opening fence
    end: int  # of the closing fence
    body: int  # of the text behind the closing fence
    closed: bool  # there is a closing fence among the first 30 lines
    lines: tuple[str, ...]  # without the fences; without a closing one, all of the first 30 lines


def split(content: bytes) -> Fenced | None:
    """Find the frontmatter; ``None`` when the file does not begin with a fence.

    Only the first 30 lines within ``HEAD_BYTES`` are read, so the head of a file gives the same
    result as all of it.
    """
    start = len(BOM) if content.startswith(BOM) else 0
    if not content.startswith(FENCE, start):
        return None
    head = content[start:HEAD_BYTES]
    first_lines = head[: _after_lines(head)]
    # ``splitlines`` also ends lines at a lone CR, so there may be more than 30 of them.
    lines = first_lines.splitlines(keepends=True)[: limits.HEAD_LINES]
    if len(content) > HEAD_BYTES and not lines[-1].endswith((b"\n", b"\r")):
        lines.pop()  # HEAD_BYTES cut it in the middle
    if not lines or lines[0].rstrip() != FENCE:
        return None

    first_line = offset = start + len(lines[0])  # ``offset`` is where the next line begins
    inner: list[str] = []
    for line in lines[1:]:
        if line.rstrip() == FENCE:
            body = offset + len(line)
            return Fenced(first_line, offset, body, closed=True, lines=tuple(inner))
        inner.append(line.rstrip(b"\r\n").decode("utf-8", errors="replace"))
        offset += len(line)
    return Fenced(first_line, offset, offset, closed=False, lines=tuple(inner))


def simple_fields(lines: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the fields of simple lines as YAML would read them, ``None`` if YAML must read them.

    Simple are ``key: value``, quotes without escapes, and one level below ``metadata:``. A key that
    stands twice is left to YAML.
    """
    top: dict[str, Any] = {}
    block: dict[str, Any] | None = None  # the fields below ``metadata:``, while in it
    indent = ""  # of the fields in the block; "" until the first one
    for line in lines:
        match = _KEY_LINE.fullmatch(line)
        if match is None:
            return None
        spaces, key, raw_value = match[1], match[2], (match[3] or "").strip(" ")
        value = simple_value(raw_value)
        if value is None:
            return None
        if spaces:
            # Indented elsewhere than below ``metadata:``, unevenly, or a key twice: for YAML.
            is_uneven = indent not in {"", spaces}
            if block is None or is_uneven or key in block:
                return None
            indent, block[key] = spaces, value
            top["metadata"] = block  # instead of its own, empty value
        else:
            if key in top:  # a key twice: for YAML
                return None
            top[key] = value
            block = {} if key == "metadata" and not raw_value else None
            indent = ""
    return top


def lenient_fields(lines: tuple[str, ...]) -> tuple[dict[str, Any], bool]:
    """Return the fields of all lines that look like ``key: value``, and whether all lines do.

    Empty lines and comments count as such lines. Values lose the quotes around them; fields may be
    nested one level deep.
    """
    top: dict[str, Any] = {}
    all_lines_read = True
    parent, indent = "", ""  # the key that indented lines belong to, and their indent
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LENIENT_LINE.fullmatch(line)
        if match is None:
            all_lines_read = False
            continue
        spaces, key, value = match[1], match[2], unquoted(match[3] or "")
        if not spaces:
            top[key] = value
            parent, indent = "" if value else key, ""
        elif parent and indent in ("", spaces):
            block = top[parent] if isinstance(top[parent], dict) else {}
            block[key] = value
            top[parent], indent = block, spaces
        else:  # nested deeper, or indented below no key
            all_lines_read = False
    return top, all_lines_read


def scalar(value: str) -> str:
    """Return a value as one line of YAML that every reader reads back as this text.

    White space is folded. Quotes are added only if the text would be misread without them.
    """
    text = _SURROGATE.sub("\ufffd", " ".join(value.split()))
    # A time stamp stays without quotes, as in the layout of Claude Code.
    is_misread = bool(_MISREAD.fullmatch(text)) and not _TIME_STAMP.fullmatch(text)
    if text and _is_plain(text) and not is_misread:
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
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


def quick_fields(head: bytes) -> Fields | None:
    """Return the fields of a memory's header, if its head has the usual layout; else ``None``.

    One regular expression reads it, several times faster than ``split`` and ``simple_fields``.
    """
    match = _HEAD.match(head)
    if match is None or match.end() > limits.FRONTMATTER_BYTES:
        return None
    raw_name, raw_description, flat, nested, origin = match.groups()
    kind = _TYPES.get(flat or nested)
    name, description = _head_text(raw_name), _head_text(raw_description)
    if kind is None or not name or not description:
        return None
    return name, description, kind, (origin or b"").decode()


def problem(raw: str) -> str:
    """Return the reason why YAML must not load a frontmatter, "" if it may.

    ``raw`` is the text between the fences. Never raises and never builds a value.
    """
    if len(raw.encode("utf-8", errors="replace")) > limits.FRONTMATTER_BYTES:
        return f"it is larger than {limits.FRONTMATTER_BYTES} bytes"
    if raw.count("[") + raw.count("{") > _MOST_BRACKETS:
        return f"it has more than {_MOST_BRACKETS} brackets"
    try:
        return _check_events(raw)
    except ERRORS as error:
        mark = getattr(error, "problem_mark", None)
        # YAML counts from 0, and the first line of the file is the fence.
        where = f" in line {mark.line + 2}" if mark is not None else ""
        return f"it is not valid YAML{where}"


def _after_lines(head: bytes) -> int:
    """Return the offset behind the first 30 lines, among which a head must end."""
    offset = 0
    for _ in range(limits.HEAD_LINES):
        offset = head.find(b"\n", offset) + 1
        if not offset:  # ``find`` returned -1: there are fewer lines
            return len(head)
    return offset


def simple_value(value: str) -> str | None:
    """Return the text of a YAML value, quoted or not, ``None`` if YAML must read it."""
    if not value or _is_plain(value):
        return value
    inner = value[1:-1]
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    has_escape = value[0] in inner or "\\" in inner
    if is_quoted and not has_escape and inner.isprintable():
        return inner
    return None


def _is_plain(text: str) -> bool:
    """Say whether YAML reads an unquoted text as this very text."""
    return (
        text[0] not in _INDICATORS
        and ": " not in text  # a mapping
        and text[-1] != ":"  # a key
        and " #" not in text  # a comment
        and text != "<<"  # a merge key
        and text.isprintable()
    )


def _head_text(raw: bytes) -> str | None:
    """Return the text of a raw value in a head, ``None`` if YAML must read it."""
    try:
        text = simple_value(raw.decode().strip(" "))
    except UnicodeDecodeError:
        return None
    # As ``document.parse`` folds a name; only quotes keep blanks at the ends.
    if text and ("  " in text or text[0] == " " or text[-1] == " "):
        return " ".join(text.split())
    return text


def _check_events(raw: str) -> str:
    """Check a YAML text event by event; return why it is refused, "" if it is not.

    Events need neither recursion nor memory, unlike values. Raises what PyYAML raises.
    """
    depth = nodes = documents = 0
    for event in yaml.parse(raw, Loader=LOADER):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if documents > 1:
            return "it has more than one document"
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            reason = _refusal(event, is_root=depth == 0)
            if reason:
                return reason
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > limits.FRONTMATTER_DEPTH or nodes > limits.FRONTMATTER_NODES:
            return "it is nested too deep or has too many values"
    return ""


def _refusal(event: Any, *, is_root: bool) -> str:
    """Return why the event of a YAML node is refused, "" if it is not."""
    reason = ""
    if isinstance(event, yaml.AliasEvent):
        reason = "it uses an alias"
    elif event.anchor is not None:
        reason = "it uses an anchor"
    elif event.tag is not None:
        reason = "it uses a tag"
    elif isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style:
        reason = "it uses a merge key"
    elif is_root and not isinstance(event, yaml.MappingStartEvent):
        reason = "it is not a mapping"
    return reason
