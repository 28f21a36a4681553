"""Read memories of mem0 from JSON: the answer of its ``get_all``, or the list in it. Pure."""

import re
from typing import Any

import msgspec

from memd.core.values import MemoryType
from memd.portable.decoding import each, entries, files, json, seconds_of
from memd.portable.memories import ReadingBuilder
from memd.text.words import WIDE

_LEAST_WORDS = 4  # mem0 saves scraps like "Likes tea", of which nothing can be recalled
# Chinese, Japanese and Korean have no spaces: two characters count as a word.
_WORD = re.compile(rf"[{WIDE}]{{1,2}}|[^\s{WIDE}]+")
_TYPES = frozenset(MemoryType)


class _Memory(msgspec.Struct):
    """A memory of mem0."""

    memory: str
    metadata: dict[str, Any] | None = None
    categories: list[str] | None = None
    created_at: str | None = None
    updated_at: str | None = None


def read(builder: ReadingBuilder) -> None:
    """Propose a memory for each entry of the JSON files with at least four words."""
    for name in files(builder, ".json"):
        values, page = entries(builder, name, "results")
        if json(page.get("next", b"null"), name, Any):
            builder.problems.append(f"{name} is one page of several; get the others too")
        for where, entry in each(builder, name, values, _Memory):
            if len(_WORD.findall(entry.memory)) < _LEAST_WORDS:
                builder.leave_out(where, f"junk: it has fewer than {_LEAST_WORDS} words")
                continue
            kind = str((entry.metadata or {}).get("type"))
            builder.add(
                entry.memory,
                where,
                kind=MemoryType(kind) if kind in _TYPES else None,
                at=seconds_of(entry.updated_at or entry.created_at) or builder.changed_at(name),
                tags=tuple(entry.categories or ()),
            )
