"""What a tool does and what a call of it is about, by the names that assistants use. Pure."""

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

_TABLE: dict[str, Any] = tomllib.loads(
    files("memd.conversation").joinpath("tools.toml").read_text("utf-8")
)
_KINDS: dict[str, str] = {name: kind for kind, names in _TABLE["kinds"].items() for name in names}
_MEMBERS: dict[str, list[str]] = _TABLE["members"]


def tool_kind(name: str) -> str:
    """Return what a tool does (``shell``, ``read``, ``search``, …), "" where nobody knows."""
    return _KINDS.get(name.lower(), "")


def members_of(given: Mapping[str, Any], kind: str) -> list[str]:
    """Return what a call's input has as its ``command``, ``path`` or ``item``, none for none."""
    return next(filter(None, (list(_texts(given.get(key))) for key in _MEMBERS[kind])), [])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
