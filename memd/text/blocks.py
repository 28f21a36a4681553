"""Split Markdown into blocks: paragraphs, list items, rows, headings and pieces of code. Pure."""

import re
from collections.abc import Iterator

from msgspec import Struct

FENCE = re.compile(r" {0,3}(```|~~~)")

_ITEM = r"([ \t]*)(?:[-*+]|(\d{1,3}[.)]))[ \t]+"
# A heading, a row or a quotation: a block of one line.
_ALONE = r"[ \t]*(?:#{1,6}[ \t]|\||>)"


class Block(Struct, frozen=True):
    """A paragraph, list item, row, heading or piece of code, with what it stands under."""

    raw: str
    context: str = ""  # the headings and list items above it
    whole: bool = False  # whether it is code or a heading, which is one statement
    step: bool = False  # whether it is a list item with a number


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text in order, each with the headings and list items above it."""
    heading = ""
    lead = ""  # the line with a colon or the table's first row that leads to what follows
    items: list[tuple[int, str]] = []  # the open list items, each with its indentation
    for block in _blocks(text):
        if FENCE.match(block):
            yield Block(block, lead or heading, whole=True)
            continue
        plain = " ".join(block.split())
        if block.lstrip().startswith("#"):
            heading, lead, items = plain.lstrip("# "), "", []
            yield Block(plain, whole=True)
            continue
        item = re.match(_ITEM, block)
        if item:
            indentation = len(item.group(1).expandtabs(4))
            items = [outer for outer in items if outer[0] < indentation]
            above = items[-1][1] if items else lead
            plain = plain[len(item.group().strip()) :].strip()
            items.append((indentation, plain))
        else:
            items = []
            above = lead if block.startswith((" ", "\t", "|", ">")) else ""
        context = ", ".join(filter(None, (heading, above)))
        yield Block(plain, context, step=bool(item and item.group(2)))
        if not item:
            lead = _next_lead(block, plain, lead)


def _next_lead(block: str, plain: str, lead: str) -> str:
    """Return the line that leads to what follows a block that is no list item, "" for none.

    ``plain`` is the block on one line, ``lead`` the line that led to the block.
    """
    if plain.endswith((":", "\uff1a")):
        return plain
    if "|" not in block:
        return ""
    is_first_row = block.startswith("|") and not lead.startswith("|")
    return plain if is_first_row else lead


def _blocks(text: str) -> Iterator[str]:
    """Yield the raw paragraphs, list items, headings, rows and blocks of code of a text."""
    block: list[str] = []  # the lines of the open block
    fence = ""  # that the open block of code began with, "" outside of code
    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence:
            block.append(line)
            if mark and mark.group(1) == fence:
                yield "\n".join(block)
                block, fence = [], ""
            continue
        begins_block = mark or not line.strip() or re.match(_ITEM, line) or re.match(_ALONE, line)
        if block and begins_block:
            yield "\n".join(block)
            block = []
        if mark:
            fence = mark.group(1)
        is_separator = not line.strip(" \t|:-")  # of a table, or a blank line
        if not is_separator or (block and line.strip()):
            block.append(line)
        if block and re.match(_ALONE, line) and not mark:
            yield "\n".join(block)
            block = []
    if block:
        yield "\n".join(block)


def fenced(text: str) -> list[str]:
    """Return the parts of a text in turn: prose at even numbers, blocks of code at odd ones."""
    parts: list[str] = [""]
    fence = ""  # that the open block of code began with, "" outside of code
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark.group(1)
            parts += [line, ""]
        elif fence:
            parts[-2] += line  # the last part is the prose behind the code
            fence = "" if mark and mark.group(1) == fence else fence
        else:
            parts[-1] += line
    return parts
