"""Split Markdown into blocks: paragraphs, list items, rows, headings and pieces of code. Pure."""

import re
from collections.abc import Iterator

from msgspec import Struct

FENCE = re.compile(r" {0,3}(```|~~~)")

_ITEM = re.compile(r"([ \t]*)(?:[-*+]|(\d{1,3}[.)]))[ \t]+")
_ALONE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\||>)")


class Block(Struct, frozen=True):
    """A paragraph, list item, row, heading or piece of code, with what it stands under.

    ``whole`` is one of code or a heading, which is one statement; ``step`` an item with a number.
    """

    raw: str
    context: str = ""
    whole: bool = False
    step: bool = False


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text in order, each with the headings and list items above it."""
    heading, lead = "", ""
    items: list[tuple[int, str]] = []
    for block in _blocks(text):
        if FENCE.match(block):
            yield Block(block, lead or heading, whole=True)
            continue
        plain = " ".join(block.split())
        if block.lstrip().startswith("#"):
            heading, lead, items = plain.lstrip("# "), "", []
            yield Block(plain, whole=True)
            continue
        item = _ITEM.match(block)
        if item:
            depth = len(item.group(1).expandtabs(4))
            items = [one for one in items if one[0] < depth]
            above = items[-1][1] if items else lead
            plain = plain[len(item.group().strip()) :].strip()
            items.append((depth, plain))
        else:
            items, above = [], lead if block.startswith((" ", "\t", "|", ">")) else ""
        context = ", ".join(filter(None, (heading, above)))
        yield Block(plain, context, step=bool(item and item.group(2)))
        if not item:
            table = plain if block.startswith("|") and not lead.startswith("|") else lead
            lead = plain if plain.endswith((":", "\uff1a")) else table if "|" in block else ""


def _blocks(text: str) -> Iterator[str]:
    """Yield the raw paragraphs, list items, headings, rows and blocks of code of a text."""
    part: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence:
            part.append(line)
            if mark and mark.group(1) == fence:
                yield "\n".join(part)
                part, fence = [], ""
            continue
        if part and (mark or not line.strip() or _ITEM.match(line) or _ALONE.match(line)):
            yield "\n".join(part)
            part = []
        if mark:
            fence = mark.group(1)
        if line.strip(" \t|:-") or (part and line.strip()):
            part.append(line)
        if part and _ALONE.match(line) and not mark:
            yield "\n".join(part)
            part = []
    if part:
        yield "\n".join(part)


def fenced(text: str) -> list[str]:
    """Return the parts of a text in turn: prose at even numbers, blocks of code at odd ones."""
    parts: list[str] = [""]
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark.group(1)
            parts += [line, ""]
        elif fence:
            parts[-2] += line
            fence = "" if mark and mark.group(1) == fence else fence
        else:
            parts[-1] += line
    return parts
