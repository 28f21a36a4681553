"""Insert and remove values of a TOML file by tomlkit, which keeps all other text as it is.

Both functions raise ValueError where the data would be another than expected. tomlkit is imported
where something is changed: it takes 60 ms.
"""

import re
import tomllib
from itertools import takewhile
from typing import Any

from memd.cli.setup.jsonc import Path

_NO_TABLE = "{} is no table"
_NOT_EDITABLE = "its tables stand in a way that cannot be edited without loss"
# Blank lines and comments at the end of a table: they are about what follows.
_END_OF_TABLE = re.compile(r"(?:^[ \t]*(?:#[^\n]*)?\r?\n)*(?:^[ \t]*#[^\n]*)?\Z", re.MULTILINE)


def parse(text: str) -> dict[str, Any]:
    """Return the data of a TOML text. Raise ValueError."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(_NOT_EDITABLE) from error


def find(text: str, path: Path) -> Any:
    """Return the value at a table's name and a key, ``None`` if there is none."""
    name, key = map(str, path)
    table = parse(text).get(name)
    return table.get(key) if isinstance(table, dict) else None


def insert(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a table's name and a key; the table may be new."""
    import tomlkit  # noqa: PLC0415 - see above

    name, key = map(str, path)
    data = parse(text)
    siblings = data.get(name, {})
    if not isinstance(siblings, dict):
        raise ValueError(_NO_TABLE.format(name))  # noqa: TRY004 - a fault of the text
    if text and not text.endswith("\n"):
        text += "\n"
    try:
        document = tomlkit.parse(text)
        if name not in document:  # a table that has only tables needs no line of its own
            document[name] = tomlkit.table(is_super_table=isinstance(value, dict))
        table: Any = document[name]
        table[key] = value
        new_text = document.as_string()
    except tomlkit.exceptions.TOMLKitError as error:
        raise ValueError(_NOT_EDITABLE) from error
    return _checked(new_text, {**data, name: {**siblings, key: value}})


def remove(text: str, path: Path) -> str:
    """Return the text without the value at a table's name and a key, and without an empty table.

    Comments and blank lines beside the value stay, also a blank line that ``insert`` made.
    """
    import tomlkit  # noqa: PLC0415 - see above

    name, key = map(str, path)
    data = parse(text)
    siblings = {other: value for other, value in data[name].items() if other != key}
    try:
        document = tomlkit.parse(text)
        table: Any = document[name]
        removed = table[key].as_string() if isinstance(table[key], tomlkit.items.Table) else ""
        del table[key]
        others = document.as_string()
    except tomlkit.exceptions.TOMLKitError as error:
        raise ValueError(_NOT_EDITABLE) from error
    if removed and (end := _END_OF_TABLE.search(removed)):
        same_start = _same_characters(text, others)
        if same_start + _same_characters(text[::-1], others[::-1]) < len(others):
            raise ValueError(_NOT_EDITABLE)  # its parts stand in several places
        place = others.rfind("\n", 0, same_start) + 1
        others = others[:place] + end[0] + others[place:]
    return _checked(others, {**data, name: siblings})


def _same_characters(text: str, other: str) -> int:
    """Return with how many equal characters two texts begin."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False))
    )


def _checked(text: str, expected: dict[str, Any]) -> str:
    """Return the text if it has this data; an empty table equals a missing one."""
    data = parse(text)
    if any(data.get(key, {}) != expected.get(key, {}) for key in {*data, *expected}):
        raise ValueError(_NOT_EDITABLE)
    return text
