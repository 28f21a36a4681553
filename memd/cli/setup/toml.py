"""A table of a TOML file, put in at its end and taken out by its place.

``remove`` is the inverse of ``insert``; each reads what it made and raises NotTomlError where
anything but the one table would change, so a file of another shape is refused, never harmed.
"""

import json
import re
import tomllib
from contextlib import suppress
from typing import Any

_OTHER_SHAPE = "its tables stand in a way that cannot be edited without loss"
_SKIPPED = re.compile(r"[ \t]*(#.*)?\r?\n?")


class NotTomlError(ValueError):
    """A text is no TOML, or its tables stand in a way that is not edited."""


def parse(text: str) -> dict[str, Any]:
    """Return what a text says. Raises NotTomlError."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotTomlError(str(error)) from error


def insert(text: str, group: str, name: str, table: dict[str, Any]) -> str:
    """Return a text with the table ``[group.name]`` at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{group}.{name}]"]
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]
    if text.endswith("\n") or not text:
        separator = newline if text else ""
        lines.append("")
    else:
        separator = newline * 2
    wanted = parse(text)
    others = wanted.get(group, {})
    if not isinstance(others, dict) or name in others:
        cause = f"{group}.{name} is there already"
        raise NotTomlError(cause)
    new = text + separator + newline.join(lines)
    added = wanted | {group: {**others, name: table}}
    if not _says(new, added) or remove(new, group, name) != text:
        raise NotTomlError(_OTHER_SHAPE)
    return new


def find(text: str, group: str, name: str) -> dict[str, Any] | None:
    """Return a table, ``None`` if there is none."""
    tables = parse(text).get(group, {})
    table = tables.get(name) if isinstance(tables, dict) else None
    return table if isinstance(table, dict) else None


def remove(text: str, group: str, name: str) -> str:
    """Return a text without the table ``[group.name]`` and the tables below it."""
    wanted = parse(text)
    if name not in wanted.get(group, {}):
        return text
    others = {other: table for other, table in wanted[group].items() if other != name}
    header = re.compile(rf"""[ \t]*\[\s*{group}\s*\.\s*(["']?){name}\1\s*[.\]]""")
    lines = text.splitlines(keepends=True)
    left: list[str] = []
    place = 0
    while place < len(lines):
        if not header.match(lines[place]):
            left.append(lines[place])
            place += 1
            continue
        end = place + 1
        while end < len(lines) and not lines[end].lstrip().startswith("["):
            end += 1
        while _SKIPPED.fullmatch(lines[end - 1]):  # what stands before the next table is its own
            end -= 1
        if left and not left[-1].strip():
            left.pop()
        if left and not lines[end - 1].endswith("\n"):
            left[-1] = left[-1].rstrip("\r\n")
        place = end
    new = "".join(left)
    if not _says(new, wanted | {group: others}):
        raise NotTomlError(_OTHER_SHAPE)
    return new


def _says(text: str, wanted: dict[str, Any]) -> bool:
    """Return whether a text says this; a group without tables counts as none."""
    with suppress(NotTomlError):
        data = parse(text)
        return all(data.get(key, {}) == wanted.get(key, {}) for key in {*data, *wanted})
    return False
