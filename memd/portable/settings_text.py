"""The settings of a person as an export takes them: made anew, without secrets and paths. Pure.

Rules of this file
- Only options that memd knows are written, so that a line which somebody else put there, or a key
  under a wrong name, goes nowhere.
- What is left out is named, never shown.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from memd.core.settings import Settings
from memd.documents import secrets

_PROGRAMS = ("argv",)
_PATH = re.compile(r"\s*[/~]")
_USER = re.compile(r"://[^/]*@")  # a name, and perhaps a password, in an address
_DEPTH = 8  # of lists and tables in a value; no option has more than two, and readers give up
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def settings_text(options: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return parsed options of the user's file as TOML, and the names of those left out."""
    left_out: list[str] = []
    tables = _tables(Settings, options, "", left_out)
    parts = [f"[{name}]\n{text}" if name else text for name, text in tables if text]
    return "\n".join(parts), tuple(left_out)


def _tables(
    cls: type[Any], options: Mapping[str, Any], name: str, left_out: list[str]
) -> list[tuple[str, str]]:
    """Return name and text of a table and of those in it."""
    prefix = f"{name}." if name else ""
    known = {item.name: item for item in fields(cls)}
    left_out += [f"{prefix}{key}" for key in options if key not in known]
    text, tables = "", list[tuple[str, str]]()
    for key, item in known.items():
        value = options.get(key)
        factory: Any = item.default_factory  # MISSING, or the class of a table
        if isinstance(factory, type):
            table = value if isinstance(value, Mapping) else {}
            left_out += [] if table is value or value is None else [f"{prefix}{key}"]
            tables += _tables(factory, table, f"{prefix}{key}", left_out)
        elif value is not None:
            written = "" if not item.repr or key in _PROGRAMS else _value(value)
            text += f"{key} = {written}\n" if written else ""
            left_out += [] if written else [f"{prefix}{key}"]
    return [(name, text), *tables]


def _value(value: object, depth: int = 0) -> str:
    """Return a value as TOML, "" for one that an archive must not have.

    ``depth`` is in how many lists and tables of the option the value lies.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    if isinstance(value, str):
        private = _PATH.match(value) or _USER.search(value) or secrets.find(value)
        return "" if private else _quoted(value)
    if isinstance(value, list) and depth < _DEPTH:
        items = [_value(item, depth + 1) for item in value]
        return f"[{', '.join(items)}]" if all(items) else ""
    if isinstance(value, Mapping) and depth < _DEPTH:
        pairs = [(key, _value(item, depth + 1)) for key, item in value.items()]
        plain = all(text and not secrets.find(key) for key, text in pairs)
        return "{" + ", ".join(f"{_key(k)} = {text}" for k, text in pairs) + "}" if plain else ""
    return ""


def _key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
