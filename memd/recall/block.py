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
from collections.abc import Sequence
from functools import cache
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from memd.base import limits, regex, text
from memd.base.package_files import read_text
from memd.base.text import SAID
from memd.base.values import FOREIGN, PERSON, PERSONAL
from memd.recall.select import SurfacedMemory
from memd.text import tags
from memd.text.quoting import neutralise, shares, shortened, units

_TEMPLATE = read_text("recall/templates/block.md")
_INTRODUCTION, *_HEADINGS, _NOTICE = _TEMPLATE.strip().split("\n\n")
# The indexes of the sections' headings.
_INSTRUCTIONS, _BACKGROUND, _QUOTED = range(len(_HEADINGS))
_OPENING = f"{tags.OPEN}\n{_INTRODUCTION}"
_CUT_NOTE = "\n> [shortened: read the file for the rest]"
_NAME_CHARACTERS = 100
_DESCRIPTION_CHARACTERS = 300
_SOURCES = {  # words for a memory's origin
    "outside": ", from outside",
    "agent": ", from another agent",
    "import": ", imported",
    "team": ", from the team",
}
_WORD = re.compile(r"\w+")
_COVERED_SHARE = 0.8  # share of a description's characters in words that the text's beginning has
_LEAST_UNITS = 300  # units of each text that have to fit; a shorter part would be of no use
_BEGINNING_CHARACTERS = 1000  # a longer text may be shortened
# Code, versions, dates and states, which may have changed since a memory was written.
_CHANGES = (
    r"[`/]|[\pL\pN_]_[\pL\pN_]|[a-z][A-Z]|[\pL\pN_]\.[\pL\pN_]|\(\)|\p{Nd}"
    r"|(?i:\b(?:now|current|currently|today|still|until|pending|blocked|broken|due|deadline|freeze"
    r"|deploy\w*|migrat\w*|releas\w*)\b)|[目现]前|现在|正在|截止"
)
_QUOTATION = re.compile(rf"^{re.escape(SAID)}.*$", re.MULTILINE)


def render(
    memories: Sequence[SurfacedMemory], budget: int = limits.BLOCK_CHARACTERS
) -> tuple[str, int]:
    """Return the block of at most ``budget`` units, and how many of the first memories are in it.

    The result is "" and 0 if there are no memories or none fits.
    """
    all_entries = [_entry(memory) for memory in memories]
    for number in range(len(memories), 0, -1):
        headers, quotes, old_names, last_section = [], [], [], -1
        for section, header, quote, old_name in sorted(all_entries[:number], key=itemgetter(0)):
            # A section's first memory has its heading too.
            heading = f"{_HEADINGS[section]}\n\n" if section != last_section else ""
            headers.append(f"{heading}{header}")
            quotes.append(quote)
            old_names += [old_name] if old_name else []
            last_section = section
        notice = _NOTICE.replace("{{names}}", ", ".join(old_names)) if old_names else ""
        sizes = [units(quote) for quote in quotes]
        frame = "\n\n".join(filter(None, (_OPENING, *headers, notice, tags.CLOSE)))
        # What is left for the quotations if each of them is cut and gets its note.
        room = budget - units(frame) - number * (units(_CUT_NOTE) + len("\n"))
        if room < sum(min(size, _LEAST_UNITS) for size in sizes):
            continue
        entries = []
        for header, quote, size, share in zip(
            headers, quotes, sizes, shares(sizes, room), strict=True
        ):
            shown_quote = quote
            if size > share:
                shown_quote = shortened(quote, share).rstrip() + _CUT_NOTE
            entries.append(f"{header}\n{shown_quote}" if shown_quote else header)
        return "\n\n".join(filter(None, (_OPENING, *entries, notice, tags.CLOSE))), number
    return "", 0


def without_repetition(memory: SurfacedMemory, line: str) -> SurfacedMemory | None:
    """Return a memory without what its index line says already.

    It is without its description if the line has all words of that, and ``None`` if the line has
    all words of the text too, except quotations. A rule of the person stays, since the index calls
    its lines notes and no instructions. ``line`` is "" if the session does not have the index.
    """
    # All words are needed, since the missing one may be the very branch or port in question.
    words_of_line = set(_WORD.findall(line.casefold()))
    if not words_of_line.issuperset(_WORD.findall(memory.description.casefold())):
        return memory
    content = _QUOTATION.sub("", memory.content).casefold()
    is_repeated = line and words_of_line.issuperset(_WORD.findall(content))
    is_rule = memory.origin == PERSON and memory.type in PERSONAL
    if is_repeated and not is_rule:
        return None
    return replace(memory, description="")


def _entry(memory: SurfacedMemory) -> tuple[int, str, str, str]:
    """Return a memory's section, its header, its text as a quotation, and its name or "".

    The name is for the notice about memories that may be out of date. The quotation begins with the
    description unless the text has it.
    """
    is_rule = memory.origin == PERSON and memory.type in PERSONAL
    section = _INSTRUCTIONS if is_rule else _BACKGROUND
    if memory.origin in FOREIGN:
        section = _QUOTED
    name = _plain(memory.name, _NAME_CHARACTERS)
    facts = f"{memory.type or 'no type'}, {memory.scope}, {name}{_SOURCES.get(memory.origin, '')}"
    content = neutralise(memory.content)
    description = _plain(memory.description, _DESCRIPTION_CHARACTERS)
    beginning = content[:_BEGINNING_CHARACTERS].casefold()
    words = _WORD.findall(description.casefold())
    covered = sum(len(word) for word in words if word in beginning)
    if covered < _COVERED_SHARE * sum(map(len, words)):
        content = f"{description}\n{content}".strip("\n")
    quote = "\n".join(f"> {line}".rstrip() for line in content.split("\n")) if content else ""
    old_name = ""
    if memory.stale_notice and not is_rule:
        stated = f"{memory.description}\n{_QUOTATION.sub('', memory.content)}"
        # A lone surrogate cannot be encoded; it is none of what may have changed.
        may_have_changed = _changes().search(stated.encode(errors="replace"))
        old_name = name if may_have_changed else ""
    return section, f"{_plain(memory.header, limits.SURFACED_BYTES)}\n{facts}", quote, old_name


@cache
def _changes() -> Any:
    """Return the pattern of what may have changed, compiled.

    Texts are searched while a prompt waits; google-re2 takes a tenth of the time of ``re``.
    """
    return regex.own(_CHANGES)


def _plain(content: str, limit: int) -> str:
    """Return a text as one harmless line of at most ``limit`` characters."""
    return neutralise(text.one_line(neutralise(content), limit))
