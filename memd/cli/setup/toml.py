"""Insert and remove values of a TOML file by tomlkit, which keeps all other text as it is.

Both functions raise ValueError where the data would be another than expected. tomlkit is imported
where something is changed: it takes 60 ms.
"""

import re
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from memd.cli.setup.jsonc import Path

_NO_TABLE = "{} is no table"
_NOT_EDITABLE = "its tables stand in a way that cannot be edited without loss"
# Blank lines and comments at the end of a table: they are about what follows.
_END_OF_TABLE = re.compile(r"(?:^[ \t]*(?:#[^\n]*)?\r?\n)*(?:^[ \t]*#[^\n]*)?\Z", re.MULTILINE)


def parse(text: str) -> dict[str, Any]:
    """Return the data of a TOML text. Raise ValueError."""
    import tomllib  # noqa: PLC0415 - not every run needs it

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
    name, key = map(str, path)
    data = parse(text)
    siblings = data.get(name, {})
    if not isinstance(siblings, dict):
        raise ValueError(_NO_TABLE.format(name))  # noqa: TRY004 - a fault of the text
    if text and not text.endswith("\n"):
        text += "\n"

    def change(document: Any) -> None:
        if name in document:
            document[name][key] = value
        else:
            document[name] = {key: value}

    new_text = _changed(text, change)
    if key not in siblings:  # a table on one line may get other blanks
        _place_of_change("".join(text.split()), "".join(new_text.split()))
    return _checked(new_text, {**data, name: {**siblings, key: value}})


def remove(text: str, path: Path) -> str:
    """Return the text without the value at a table's name and a key, and without an empty table.

    Comments and blank lines beside the value stay, also a blank line that ``insert`` made.
    """
    name, key = map(str, path)
    data = parse(text)
    table = ""  # the lines of the value below its header, "" if it is none of a table

    def change(document: Any) -> None:
        nonlocal table
        if hasattr(document[name][key], "is_super_table"):
            table = document[name][key].as_string()
        del document[name][key]

    others = _changed(text, change)
    if table:
        start = text.rfind("\n", 0, _place_of_change(others, text)) + 1
        header, _, _ = text[start : start + len(text) - len(others)].partition("\n")
        if key not in header:  # the header of the table around it went as well
            raise ValueError(_NOT_EDITABLE)
        end = _END_OF_TABLE.search(table)
        others = others[:start] + (end[0] if end else "") + others[start:]
    siblings = {other: value for other, value in data[name].items() if other != key}
    return _checked(others, {**data, name: siblings})


def _changed(text: str, change: Callable[[Any], None]) -> str:
    """Return the text after a change of tomlkit's document. Raise ValueError."""
    import tomlkit  # noqa: PLC0415 - see above

    try:
        document = tomlkit.parse(text)
        if document.as_string() == text:  # it brings parts of a list of tables together
            change(document)
            return document.as_string()
    except tomlkit.exceptions.TOMLKitError as error:
        raise ValueError(_NOT_EDITABLE) from error
    raise ValueError(_NOT_EDITABLE)


def _place_of_change(text: str, longer: str) -> int:
    """Return where a text has more in the other. Raise ValueError if that is in several places."""
    start = _same_characters(text, longer)
    if start + _same_characters(text[::-1], longer[::-1]) < len(text):
        raise ValueError(_NOT_EDITABLE)
    return start


def _same_characters(text: str, other: str) -> int:
    """Return with how many equal characters two texts begin."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False))
    return sum(1 for _ in pairs)


def _checked(text: str, expected: dict[str, Any]) -> str:
    """Return the text if it has this data; an empty table equals a missing one."""
    data = parse(text)
    if any(data.get(key, {}) != expected.get(key, {}) for key in {*data, *expected}):
        raise ValueError(_NOT_EDITABLE)
    return text
