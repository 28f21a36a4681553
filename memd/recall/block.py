"""Render memories as one block of text that a client inserts into a prompt. Pure.

Rules of this file
- The block stands in a tag of memd's own, so that it can be removed from a transcript again.
- There are three sections with headings: instructions (the person's own rules), background, and
  quoted texts that give no orders (from outside, other agents, imports and teams).
- A memory's text is quoted line by line, as data. It can neither open or close the tags around it
  nor begin a line of its own.
- A description whose words are in the text is left out. One notice names memories that may be out
  of date.
- Clients cut long insertions, so the block stays within a budget in UTF-16 units, as they count.
  Each memory is in it, long ones shortened so that the others fit.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec.structs import replace

from memd.core import limits, regex, text
from memd.core.text import SAID
from memd.core.values import FOREIGN, PERSON, PERSONAL
from memd.recall.select import SurfacedMemory
from memd.text import tags
from memd.text.quoting import neutralise, shares, shortened, units

_TEMPLATE = files("memd.recall").joinpath("templates", "block.md").read_text("utf-8")
_INTRODUCTION, *_HEADINGS, _OLD = _TEMPLATE.strip().split("\n\n")
_OF_THE_PERSON, _BACKGROUND, _QUOTED = range(len(_HEADINGS))
_OPEN = f"{tags.OPEN}\n{_INTRODUCTION}"
_REST = "\n> [shortened: read the file for the rest]"
_NAME_CHARACTERS = 100
_DESCRIPTION_CHARACTERS = 300
_SOURCES = {
    "outside": ", from outside",
    "agent": ", from another agent",
    "import": ", imported",
    "team": ", from the team",
}
_WORD = re.compile(r"\w+")
_COVERED = 0.8  # share of a description's characters in words that the text's beginning has
_LEAST = 300  # units of each text that have to fit; a shorter part would be of no use
_BEGINNING = 1000  # characters; a longer text may be shortened
# Code, versions, dates and states, which may have changed since a memory was written.
_CHANGES = (
    r"[`/]|[\pL\pN_]_[\pL\pN_]|[a-z][A-Z]|[\pL\pN_]\.[\pL\pN_]|\(\)|\p{Nd}"
    r"|(?i:\b(?:now|current|currently|today|still|until|pending|blocked|broken|due|deadline|freeze"
    r"|deploy\w*|migrat\w*|releas\w*)\b)|[目现]前|现在|正在|截止"
)
_SAID = re.compile(rf"^{re.escape(SAID)}.*$", re.MULTILINE)


def render(
    memories: Sequence[SurfacedMemory], budget: int = limits.BLOCK_CHARACTERS
) -> tuple[str, int]:
    """Return the block of at most ``budget`` units, and how many of the first memories are in it.

    "" and 0 if there are none or none fits.
    """
    for number in range(len(memories), 0, -1):
        shown = sorted(memories[:number], key=_section)
        old = _old(shown)
        heads, quotes = list(_heads(shown)), [_quote(memory) for memory in shown]
        sizes = [units(quote) for quote in quotes]
        frame = "\n\n".join(filter(None, (_OPEN, *heads, old, tags.CLOSE)))
        # What is left for the quotations if each of them is cut and gets its note.
        room = budget - units(frame) - number * (units(_REST) + len("\n"))
        if room >= sum(min(size, _LEAST) for size in sizes):
            entries = (
                "\n".join(filter(None, (head, _shorten(quote, share))))
                for head, quote, share in zip(heads, quotes, shares(sizes, room), strict=True)
            )
            parts = (_OPEN, *entries, old, tags.CLOSE)
            return "\n\n".join(filter(None, parts)), number
    return "", 0


def beside(memory: SurfacedMemory, line: str) -> SurfacedMemory | None:
    """Return a memory without its description if its index line has all words of that.

    ``None`` if the line has all words of the text too, except quotations. ``line`` is "" if the
    session does not have the index.
    """
    # All words are needed, since the missing one may be the very branch or port in question.
    known = set(_WORD.findall(line.casefold()))
    if not known.issuperset(_WORD.findall(memory.description.casefold())):
        return memory
    repeated = known.issuperset(_WORD.findall(_SAID.sub("", memory.content).casefold()))
    return None if line and repeated else replace(memory, description="")


def _section(memory: SurfacedMemory) -> int:
    """Return the section that a memory belongs to, by its origin and type."""
    if memory.origin in FOREIGN:
        return _QUOTED
    return _OF_THE_PERSON if memory.origin == PERSON and memory.type in PERSONAL else _BACKGROUND


def _heads(shown: Iterable[SurfacedMemory]) -> Iterable[str]:
    """Yield the lines above each memory's text; a section's first memory has its heading too."""
    last = -1
    for memory in shown:
        section = _section(memory)
        heading = f"{_HEADINGS[section]}\n\n" if section != last else ""
        header = _plain(memory.header, limits.SURFACED_BYTES)
        facts = f"{memory.type or 'no type'}, {memory.scope}, {_name(memory)}"
        yield f"{heading}{header}\n{facts}{_SOURCES.get(memory.origin, '')}"
        last = section


def _old(shown: Iterable[SurfacedMemory]) -> str:
    """Return a notice with the names of memories that may be out of date, "" if there are none."""
    names = [
        _name(memory)
        for memory in shown
        if memory.stale_notice
        and _section(memory) != _OF_THE_PERSON
        and _may_have_changed(f"{memory.description}\n{_SAID.sub('', memory.content)}")
    ]
    return _OLD.replace("{{names}}", ", ".join(names)) if names else ""


def _may_have_changed(content: str) -> bool:
    """Return whether a text has code, a version, a date or a state."""
    # A lone surrogate cannot be encoded; it is none of these.
    return _changes().search(content.encode(errors="replace")) is not None


@cache
def _changes() -> Any:
    """Return the pattern of what may have changed, compiled.

    Texts are searched while a prompt waits; google-re2 takes a tenth of the time of ``re``.
    """
    return regex.own(_CHANGES)


def _name(memory: SurfacedMemory) -> str:
    """Return a memory's name as one harmless line."""
    return _plain(memory.name, _NAME_CHARACTERS)


def _plain(content: str, limit: int) -> str:
    """Return a text as one harmless line of at most ``limit`` characters."""
    return neutralise(text.one_line(neutralise(content), limit))


def _quote(memory: SurfacedMemory) -> str:
    """Return a memory's text as a quotation, with its description unless the text has it."""
    content = neutralise(memory.content)
    description = _plain(memory.description, _DESCRIPTION_CHARACTERS)
    if not _covers(content[:_BEGINNING].casefold(), description.casefold()):
        content = f"{description}\n{content}".strip("\n")
    return "\n".join(f"> {line}".rstrip() for line in content.split("\n")) if content else ""


def _covers(content: str, description: str) -> bool:
    """Return whether a text has most words of a description."""
    words = _WORD.findall(description)
    return sum(len(word) for word in words if word in content) >= _COVERED * sum(map(len, words))


def _shorten(quote: str, share: int) -> str:
    """Return a quotation cut to ``share`` units, with a note if it was cut."""
    if units(quote) <= share:
        return quote
    return shortened(quote, share).rstrip() + _REST
