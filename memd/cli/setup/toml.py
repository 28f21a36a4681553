"""Insert a table at the end of a TOML file and remove it again, or set options of a table.

The rest of the text stays. ``remove`` is the inverse of ``insert``. All parse their result and
raise NotTomlError if anything else would change.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_NOT_EDITABLE = "its tables stand in a way that cannot be edited without loss"
# A blank line or one with only a comment.
_BLANK_OR_COMMENT = re.compile(r"[ \t]*(#.*)?\r?\n?")


class NotTomlError(ValueError):
    """A text is not TOML, or its tables are written in a way that cannot be edited."""


def parse(text: str) -> dict[str, Any]:
    """Return the data of a TOML text. Raise NotTomlError."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotTomlError(str(error)) from error


def insert(text: str, group: str, name: str, table: Mapping[str, Any]) -> str:
    """Return the text with the table ``[group.name]`` at its end.

    Raise NotTomlError if the table exists already.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{group}.{name}]"]
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]
    if text.endswith("\n") or not text:
        separator = newline if text else ""
        lines.append("")
    else:
        separator = newline * 2
    data = parse(text)
    siblings = data.get(group, {})
    if not isinstance(siblings, dict) or name in siblings:
        cause = f"{group}.{name} is there already"
        raise NotTomlError(cause)
    new_text = text + separator + newline.join(lines)
    expected = data | {group: {**siblings, name: table}}
    if not _parses_to(new_text, expected) or remove(new_text, group, name) != text:
        raise NotTomlError(_NOT_EDITABLE)
    return new_text


def with_options(text: str, name: str, options: dict[str, Any]) -> str:
    """Return the text with these options in the table ``[name]``, which may be new.

    Raise NotTomlError.
    """
    data = parse(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    header = re.compile(rf"[ \t]*\[\s*{name}\s*\][ \t]*(#.*)?\r?\n?")
    start = next((place for place, line in enumerate(lines) if header.fullmatch(line)), -1)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    if start < 0:
        lines += [newline] * bool(lines) + [f"[{name}]{newline}"]
        start = len(lines) - 1
    for key, value in reversed([*options.items()]):
        line = f"{key} = {json.dumps(value, ensure_ascii=False)}{newline}"
        places = range(start + 1, _table_end(lines, start))
        old = [place for place in places if re.match(rf"[ \t]*{key}[ \t]*=", lines[place])]
        lines[old[0] if old else start + 1 : old[0] + 1 if old else start + 1] = [line]
    new_text = "".join(lines)
    table = data.get(name, {})
    if not isinstance(table, dict) or not _parses_to(new_text, data | {name: table | options}):
        raise NotTomlError(_NOT_EDITABLE)
    return new_text


def find(text: str, group: str, name: str) -> dict[str, Any] | None:
    """Return the values of the table ``[group.name]``, ``None`` if there is none."""
    tables = parse(text).get(group, {})
    table = tables.get(name) if isinstance(tables, dict) else None
    return table if isinstance(table, dict) else None


def remove(text: str, group: str, name: str) -> str:
    """Return the text without the table ``[group.name]`` and the tables below it."""
    data = parse(text)
    if name not in data.get(group, {}):
        return text
    siblings = {other: table for other, table in data[group].items() if other != name}
    header = re.compile(rf"""[ \t]*\[\s*{group}\s*\.\s*(["']?){name}\1\s*[.\]]""")
    lines = text.splitlines(keepends=True)
    other_lines: list[str] = []
    place = 0
    while place < len(lines):
        if not header.match(lines[place]):
            other_lines.append(lines[place])
            place += 1
            continue
        place = _table_end(lines, place)
        # ``insert`` put a blank line before the table.
        if other_lines and not other_lines[-1].strip():
            other_lines.pop()
        if other_lines and not lines[place - 1].endswith("\n"):
            other_lines[-1] = other_lines[-1].rstrip("\r\n")
    new_text = "".join(other_lines)
    if not _parses_to(new_text, data | {group: siblings}):
        raise NotTomlError(_NOT_EDITABLE)
    return new_text


def _table_end(lines: list[str], start: int) -> int:
    """Return the place after the last line of the table whose header is at ``start``."""
    end = start + 1
    while end < len(lines) and not lines[end].lstrip().startswith("["):
        end += 1
    # Comments before the next table belong to that one.
    while _BLANK_OR_COMMENT.fullmatch(lines[end - 1]):
        end -= 1
    return end


def _parses_to(text: str, expected: dict[str, Any]) -> bool:
    """Return whether a text parses to this data; an empty group equals a missing one."""
    with suppress(NotTomlError):
        data = parse(text)
        return all(data.get(key, {}) == expected.get(key, {}) for key in {*data, *expected})
    return False
