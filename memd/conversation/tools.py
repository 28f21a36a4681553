"""Classify tools and find the command, path or item in a call's input. Pure."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from memd.base.package_files import read_text

_TABLE: dict[str, Any] = tomllib.loads(read_text("conversation/tools.toml"))
# The kind of each tool by its name in lower case, and the members of a kind's input by their use.
_KINDS: dict[str, str] = {name: kind for kind, names in _TABLE["kinds"].items() for name in names}
_MEMBERS: dict[str, list[str]] = _TABLE["members"]


def tool_kind(name: str) -> str:
    """Return the kind of a tool (``shell``, ``read``, ``search``, …), "" if unknown."""
    return _KINDS.get(name.lower(), "")


def members_of(given: Mapping[str, Any], kind: str) -> list[str]:
    """Return the texts in a call's input that are its command, path or item.

    ``given`` is the input, ``kind`` one of ``command``, ``path`` and ``item``.
    """
    for name in _MEMBERS[kind]:
        texts = list(_texts(given.get(name)))
        if texts:
            return texts
    return []


def _texts(value: Any) -> Iterator[str]:
    """Yield a text, or the texts of a list."""
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
