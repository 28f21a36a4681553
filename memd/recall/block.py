"""Memories as one block of text for clients that only paste. Pure.

Rules of this file
- The block stands inside memd's own tag, so that it can be cut out of a transcript again.
- What a memory says is quoted line by line, as data. No text of a memory can open or close the
  tags around it or begin a line of its own.
- What a memory says twice stands there once: a description that the text shown repeats is left out,
  and so is a "Why" that says nothing of its own.
- Clients cut long insertions: the whole stays within a budget, counted as they count, in UTF-16
  units. Every memory that goes out is in it, a long one shortened so that the others fit.
"""

import re
from collections.abc import Sequence
from importlib.resources import files

from memd.core import limits, tags, text
from memd.recall import repeats
from memd.recall.select import SurfacedMemory
from memd.text.quoting import neutralise, shortened, units

_INTRODUCTION = files("memd.recall").joinpath("templates", "block.md").read_text("utf-8").strip()
_OPEN = f"{tags.OPEN}\n<system-reminder>\n{_INTRODUCTION}"
_CLOSE = f"</system-reminder>\n{tags.CLOSE}"
_REST = "\n> [shortened: read the file for the rest]"
_NAME_CHARACTERS = 100
_DESCRIPTION_CHARACTERS = 300
_UNQUOTED = re.compile("^> ?", re.MULTILINE)


def render(
    memories: Sequence[SurfacedMemory], budget: int = limits.BLOCK_CHARACTERS
) -> tuple[str, int]:
    """Return the block, and how many of the memories (the first ones) it has room for.

    No memory, or no room for any: an empty block.
    """
    frame = units(_OPEN) + units(_CLOSE) + 2
    for number in range(len(memories), 0, -1):
        shown = memories[:number]
        room = budget - frame - sum(_fixed(memory) for memory in shown)
        if room >= 0:
            quotes = [_quote(memory.content) for memory in shown]
            shares = _shares([units(quote) for quote in quotes], room)
            entries = [_entry(*item) for item in zip(shown, quotes, shares, strict=True)]
            return "\n\n".join((_OPEN, *entries)) + f"\n\n{_CLOSE}", number
    return "", 0


def _entry(memory: SurfacedMemory, quote: str, share: int) -> str:
    *head, description = _head(memory)
    body = _shorten(quote, share)
    if not repeats.stands_in(description, _UNQUOTED.sub("", body)):
        head.append(description)
    return "\n".join(filter(None, (*head, body, memory.stale_notice)))


def _head(memory: SurfacedMemory) -> tuple[str, str, str]:
    name = _plain(memory.name, _NAME_CHARACTERS)
    return (
        _plain(memory.header, limits.SURFACED_BYTES),
        f"{memory.type or 'no type'}, {memory.scope}, {name}",
        f"> {_plain(memory.description, _DESCRIPTION_CHARACTERS)}".rstrip(),
    )


def _plain(said: str, limit: int) -> str:
    return neutralise(text.one_line(neutralise(said), limit))


def _fixed(memory: SurfacedMemory) -> int:
    head = "\n".join(_head(memory))
    return units(head) + units(memory.stale_notice or "") + units(_REST) + len("\n\n\n\n")


def _quote(content: str) -> str:
    content = repeats.once(neutralise(content))
    return "\n".join(f"> {line}".rstrip() for line in content.split("\n")) if content else ""


def _shorten(quote: str, share: int) -> str:
    if units(quote) <= share:
        return quote
    return shortened(quote, share).rstrip() + _REST


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """Divide the room fairly: who needs less than its share leaves the rest to the others."""
    shares = [0] * len(sizes)
    left = len(sizes)
    for at in sorted(range(len(sizes)), key=lambda index: sizes[index]):
        shares[at] = min(sizes[at], room // left)
        room -= shares[at]
        left -= 1
    return shares
