"""Rewriting the head of a memory in memd's layout, whatever lines it has. Pure.

Rules of this file
- A line ``key: value`` means what a person reads there: a colon, a ``#channel``, quotes or a
  leading sign in a value cut nothing off, though YAML would. A value in one pair of quotes loses
  them; indented lines below a key continue its value.
- Every key stays, in its order. Name and type take the form that they must have.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping

from memd.base.text import sha256
from memd.documents.frontmatter import FENCE, LENIENT_LINE, scalar, split

_TABLE = "metadata"
_STAMPS = ("originSessionId", "modified")  # the last two, in this order
_VALUE_BELOW = re.compile(r"[|>][+-]?\d?[+-]?")  # says that the value is in the lines below
_SLUG_CHARACTERS = 60
_HASH_DIGITS = 6  # of a name without any letter or digit


def slug(name: str, otherwise: str = "") -> str:
    """Return a name in small letters, digits and dashes.

    If nothing of it is left, ``otherwise`` is used in its place, or a hash of the name.
    """
    for text in (name, otherwise):
        decomposed = unicodedata.normalize("NFKD", text[: 4 * _SLUG_CHARACTERS]).casefold()
        without_accents = re.sub(r"[\u0300-\u036f'\u2019]", "", decomposed)  # nor apostrophes
        words = re.findall("[a-z0-9]+", without_accents)
        result = "-".join(words)[:_SLUG_CHARACTERS].strip("-")
        if result:
            return result
    return f"memory-{sha256(name.encode('utf-8', 'replace'))[:_HASH_DIGITS]}"


def with_rewritten_head(content: bytes, path: str, known: Mapping[str, str]) -> bytes:
    """Return a memory with its head rewritten; a memory without a closed head stays unchanged.

    ``known`` are the fields that the memory had before; those that the new head does not have stay.
    Keys below ``metadata`` are ``metadata.<key>``.
    """
    fenced = split(content)
    if fenced is None or not fenced.closed:
        return content
    new = dict(_fields(fenced.lines))
    # A key that is now at the top replaces the one that was below ``metadata``.
    old = {key: text for key, text in known.items() if key.rpartition(".")[2] not in new}
    fields = old | new

    # The fields with a place of their own: name, description and type; the others follow them.
    file_name = path.rpartition("/")[2].removesuffix(".md")
    name = slug(fields.pop("name", ""), file_name)
    description = fields.pop("description", "")
    top_type = fields.pop("type", "")
    kind = fields.pop(f"{_TABLE}.type", "") or top_type
    nested = {"node_type": "memory", "type": kind.strip().lower()}
    nested_keys = [key for key in fields if key.startswith(f"{_TABLE}.")]
    for key in nested_keys:
        nested.setdefault(key.partition(".")[2], fields.pop(key))
    nested |= {key: nested.pop(key) for key in _STAMPS if key in nested}  # to the end
    top = {"name": name, "description": description, **fields}

    lines = [*(f"{key}: {scalar(value)}" for key, value in top.items()), f"{_TABLE}:"]
    lines += [f"  {key}: {scalar(value)}" for key, value in nested.items()]
    fence = FENCE.decode()
    return "\n".join((fence, *lines, fence, "")).encode() + content[fenced.body :]


def _fields(lines: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each key of a head with its value, which may continue on several lines."""
    for key, (first, *continued) in _values_by_line(lines):
        text = "" if _VALUE_BELOW.fullmatch(first) else first
        yield key, " ".join((_unquoted(text), *continued)).strip()


def _values_by_line(lines: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    """Return each key with the text on its own line and on each line that continues the value."""
    entries: list[tuple[str, list[str]]] = []
    in_table = False  # below ``metadata:``
    table_indent = ""  # of the keys there; "" until the first one
    for line in lines:
        match = LENIENT_LINE.fullmatch(line)
        indent = match[1] if match else line[: len(line) - len(line.lstrip())]
        value = (match[3] or "").strip() if match else ""
        is_comment = not indent and line.startswith("#")
        if match and not indent:  # a key at the top
            in_table, table_indent = match[2] == _TABLE and not value, ""
            if not in_table:
                entries.append((match[2], [value]))
        elif match and in_table and table_indent in ("", indent):  # a key below ``metadata``
            table_indent = indent
            entries.append((f"{_TABLE}.{match[2]}", [value]))
        elif entries and line.strip() and not is_comment:  # a further line of the last value
            _, texts = entries[-1]
            texts.append(line.strip().removeprefix("- "))
    return entries


def _unquoted(value: str) -> str:
    """Return a value without the one pair of quotes that is around it."""
    inner = value[1:-1]
    if len(value) < 2 or value[0] != value[-1]:  # noqa: PLR2004 - a pair
        return value
    if value[0] == "'" and "'" not in inner.replace("''", ""):
        return inner.replace("''", "'")
    if value[0] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value if '"' in inner else inner
    return value
