"""Find the files that an instruction file includes by ``@path``, and the text for the model. Pure.

Rules of this file
- ``@path`` counts at the start of a line and after white space, up to white space or ``#``. It does
  not count in code spans and fences.
- A comment that begins a line is not shown to the model, unless it stands in a fence. One without
  an end is a text.
- A line is read once and a code span found by a search in sorted places, so the work is linear.
"""

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from memd.instructions.values import LONG_CHARACTERS

_PATH_CHARACTERS = 1024
_MENTION = r"(?<!\S)@((?:[^\s\\#]|\\ )++)"
_PATH = r"\./|~/|/.|[A-Za-z0-9._-]"  # how a path begins
_TICKS = r"`+"
# Also in quotations and items of lists.
_FENCE = r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?(`{3,}+(?=[^`]*+$)|~{3,}+)"
_COMMENT = r" {0,3}<!--"
_COMMENT_END = "-->"


class ParsedText(Struct, frozen=True):
    """``includes`` are the paths that a text includes, as written, each once, in their order.

    ``text`` is the text that a model gets: without the comments that are blocks.
    """

    includes: tuple[str, ...]
    text: str


def target(name: str, path: str, home: str) -> str:
    """Return the path of the file that an include in the file at ``path`` names."""
    name = f"{home}{name[1:]}" if name.startswith("~/") else name
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def parsed(text: str) -> ParsedText:
    """Return the paths that a text includes, and the text that a model gets."""
    if "@" not in text and "<!--" not in text:
        return ParsedText((), text)
    return _parse_cached(text) if len(text) <= LONG_CHARACTERS else _parse(text)


@lru_cache(maxsize=512)  # as many as in the cache of ``RealDisk``
def _parse_cached(text: str) -> ParsedText:
    """Return a text's includes; the latest texts are cached."""
    return _parse(text)


def _parse(text: str) -> ParsedText:
    """Return the paths that a text includes, and the text without its comments."""
    shown: list[str] = []
    paragraphs: list[list[str]] = [[]]  # the lines between blank lines, fences and comments
    fence, number = "", -1
    lines = text.split("\n")
    last_end = max((n for n, line in enumerate(lines) if _COMMENT_END in line), default=-1)
    while (number := number + 1) < len(lines):
        line = lines[number]
        opening = None if fence else re.match(_FENCE, line)
        comment = None if fence else re.match(_COMMENT, line)
        if fence or opening:
            fence = opening[1] if opening else "" if _ends(line, fence) else fence
            paragraphs.append([])
        elif comment and number <= last_end:
            rest = line[comment.end() :]
            while _COMMENT_END not in rest and number < last_end:
                number += 1
                rest = lines[number]
            line = rest.partition(_COMMENT_END)[2]
            paragraphs.append([line])
            if not line.strip():
                continue
        elif line.strip():
            paragraphs[-1].append(line)
        else:
            paragraphs.append([])
        shown.append(line)
    paths = (path for paragraph in paragraphs for path in _paths("\n".join(paragraph)))
    return ParsedText(tuple(dict.fromkeys(paths)), "\n".join(shown))


def _ends(line: str, fence: str) -> bool:
    """Return whether a line ends fenced code: it has at least as long a fence and nothing else."""
    text = line.strip(" \t\r>")
    return text.startswith(fence) and not text.strip(fence[0])


def _paths(text: str) -> Iterator[str]:
    """Yield the paths that a paragraph includes."""
    for mention in re.finditer(_MENTION, _without_code(text)) if "@" in text else ():
        path = mention[1].replace("\\ ", " ")
        if re.match(_PATH, path) and len(path) <= _PATH_CHARACTERS:
            yield path


def _without_code(text: str) -> str:
    """Return a text with a backtick in place of each code span."""
    runs: dict[int, list[int]] = {}  # where runs of backticks begin, by their length
    for run in re.finditer(_TICKS, text):
        runs.setdefault(len(run[0]), []).append(run.start())
    pieces, at = [], 0
    for run in re.finditer(_TICKS, text):
        same = runs[len(run[0])]
        behind = bisect_right(same, run.start())
        if run.start() >= at and behind < len(same):
            pieces.append(text[at : run.start()])
            at = same[behind] + len(run[0])
    return "`".join((*pieces, text[at:]))
