"""Classify tools and find the command, path or item in a call's input. Pure."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct, toml

from memd.base.package_files import read_text


class _ToolTable(Struct, frozen=True):
    """``tools.toml``: tools in lower case by kinds, members of a call's input by their use."""

    kinds: dict[str, frozenset[str]]
    members: dict[str, list[str]]


@cache
def _table() -> _ToolTable:
    return toml.decode(read_text("conversation/tools.toml"), type=_ToolTable)


def tool_kind(name: str) -> str:
    """Return the kind of a tool (``shell``, ``read``, ``search``, …), "" if unknown."""
    kinds, lower = _table().kinds, name.lower()
    return next((kind for kind, names in kinds.items() if lower in names), "")


def members_of(given: Mapping[str, Any], kind: str) -> list[str]:
    """Return the texts in a call's input that are its command, path or item.

    ``given`` is the input, ``kind`` one of ``command``, ``path`` and ``item``.
    """
    for name in _table().members[kind]:
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
