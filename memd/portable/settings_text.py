"""Write a person's settings as TOML for an export, without secrets and paths. Pure.

Rules of this file
- Only options that memd knows are written, so that foreign lines, and a key under a wrong name, are
  not exported.
- Options that are left out are reported by name, never by value.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from memd.core.settings import Settings
from memd.documents import secrets

_PROGRAMS = ("argv",)  # options that name a program of this machine
_PATH = re.compile(r"\s*[/~]")
_USER_IN_ADDRESS = re.compile(r"://[^/]*@")  # a name, and perhaps a password, in an address
_DEEPEST = 8  # of lists and tables in a value; no option has more than two, and readers give up
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def settings_text(options: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return a user's parsed options as TOML, and the names of the options left out."""
    left_out: list[str] = []
    tables = _write_tables(Settings, options, "", left_out)
    parts = [f"[{name}]\n{text}" if name else text for name, text in tables if text]
    return "\n".join(parts), tuple(left_out)


def _write_tables(
    cls: type[Any], options: Mapping[str, Any], name: str, left_out: list[str]
) -> list[tuple[str, str]]:
    """Return the name and TOML text of a table and of each table in it.

    ``cls`` is the settings class of the table. Names of options left out go into ``left_out``.
    """
    prefix = f"{name}." if name else ""
    known = {item.name: item for item in fields(cls)}
    left_out += [f"{prefix}{key}" for key in options if key not in known]
    text, tables = "", list[tuple[str, str]]()
    for key, item in known.items():
        value, full_name = options.get(key), f"{prefix}{key}"
        factory: Any = item.default_factory  # MISSING, or the class of a table
        if isinstance(factory, type):
            table = value if isinstance(value, Mapping) else {}
            if value is not None and table is not value:
                left_out.append(full_name)
            tables += _write_tables(factory, table, full_name, left_out)
            continue
        if value is None:
            continue
        is_private = not item.repr or key in _PROGRAMS  # options with repr=False hold keys
        toml = "" if is_private else _toml_value(value)
        if toml:
            text += f"{key} = {toml}\n"
        else:
            left_out.append(full_name)
    return [(name, text), *tables]


def _toml_value(value: object, depth: int = 0) -> str:
    """Return a value as TOML, "" if it is a path, a secret or nothing that TOML can write.

    ``depth`` is the number of lists and tables around the value.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    if isinstance(value, str):
        private = _PATH.match(value) or _USER_IN_ADDRESS.search(value) or secrets.find(value)
        return "" if private else _toml_string(value)
    if isinstance(value, list) and depth < _DEEPEST:
        items = [_toml_value(item, depth + 1) for item in value]
        return f"[{', '.join(items)}]" if all(items) else ""  # one private item hides the list
    if isinstance(value, Mapping) and depth < _DEEPEST:
        pairs = [(key, _toml_value(item, depth + 1)) for key, item in value.items()]
        members = ", ".join(f"{_toml_key(key)} = {text}" for key, text in pairs)
        is_public = all(text and not secrets.find(key) for key, text in pairs)
        return f"{{{members}}}" if is_public else ""
    return ""


def _toml_key(name: str) -> str:
    """Return a key as TOML, in quotes if it needs them."""
    return name if _PLAIN_KEY.fullmatch(name) else _toml_string(name)


def _toml_string(text: str) -> str:
    """Return a text as a TOML string in quotes."""
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
