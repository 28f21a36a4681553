"""Read the head of an instruction file, and the condition under which a rule loads. Pure.

As Claude Code 2.1.329 reads heads (docs/decisions.md): by YAML, and where that refuses one once
more with its values in quotes, since ``**/*.ts`` is none. Nothing that could do harm is read.

Rules of this file
- A condition that cannot be read is none, so the rule always loads, and a problem says so
  (tests/instructions/test_rules.py::test_heads).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from memd.core import limits
from memd.core.names import printable
from memd.core.regex import PatternRefusedError
from memd.documents import document
from memd.instructions import patterns
from memd.instructions.patterns import PathPattern

_OPENING = re.compile(r"\ufeff?---\s*\n")
_FENCE = "---"
_LINE = re.compile(r"^([ \t]*[\w-]+[ \t]*:[ \t]+)(?![\"'])(\S(?:.*\S)?)[ \t]*$", re.MULTILINE)
# YAML's anchors and tags, which say nothing here and are refused where heads are read.
_TAGS = re.compile(r"^([ \t]*(?:[\w-]+[ \t]*:|-)[ \t]+)(?:[!&]\S*(?:[ \t]+|$))+", re.MULTILINE)
_NO_TEXT = re.compile(r"~|null|true|false|[-+]?[0-9][0-9_.]*(?:e[-+]?[0-9]+)?", re.IGNORECASE)
_SHOWN_CHARACTERS = 60
_ENDLESS = "its head has no end: it always loads"
_BROKEN = "its head cannot be read: it always loads"
_EMPTY = "its {} are empty or no text: it always loads"
_USELESS = "none of its globs counts: it always loads"


class RuleHead(Struct, frozen=True):
    """``globs`` is the condition as written, empty for a file that always loads.

    ``patterns`` are those that the globs stand for, ``body`` is the text below the head, and
    ``problems`` are sentences without their subject.
    """

    globs: tuple[str, ...]
    body: str
    problems: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


def head(text: str, key: str = "paths") -> RuleHead:
    """Return what the head of a rule says under a key, and the text below the head."""
    raw, body = split(text)
    if not raw:
        endless = _OPENING.match(text) and _FENCE not in text[len(_FENCE) + 1 :]
        return RuleHead((), body, (_ENDLESS,) if endless else ())
    values = fields(raw)
    if values is None:
        return RuleHead((), body, (_BROKEN,))
    if key not in values:
        return RuleHead((), body)
    written = tuple(dict.fromkeys(texts(values[key])))
    problems = () if written else (_EMPTY.format(key),)
    return _expanded(RuleHead(written, body, problems))


def split(text: str) -> tuple[str, str]:
    """Return the head of a text and the text below it.

    As in Claude Code the head ends with the next ``---``, wherever that stands.
    """
    opening = _OPENING.match(text)
    end = text.find(_FENCE, opening.end()) if opening else -1
    if opening is None or end < 0:
        return "", text
    return text[opening.end() : end], text[end + len(_FENCE) :].lstrip()


def fields(raw: str) -> Mapping[str, Any] | None:
    """Return the values of a head by key, each a text, a list or a mapping of them.

    ``None`` if the head cannot be read.
    """
    if len(raw) > limits.FRONTMATTER_BYTES:
        return None
    untagged = _TAGS.sub(r"\1", raw.replace("\r\n", "\n"))
    values = document.mapping(untagged)
    return document.mapping(_LINE.sub(_quoted, untagged)) if values is None else values


def texts(value: Any) -> Iterator[str]:
    """Yield the texts of a value, between commas that stand in no braces; of a list, of each."""
    if isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str) and not _NO_TEXT.fullmatch(value):
        yield from _between_commas(value)


def compiled(head: RuleHead) -> tuple[tuple[PathPattern, ...], tuple[str, ...]]:
    """Return the patterns of a head that can be used, and what is wrong with the head."""
    good, problems = [], list(head.problems)
    for pattern in head.patterns:
        try:
            good.append(patterns.compiled(pattern))
        except PatternRefusedError as error:
            problems.append(_refused(pattern, error))
    if head.patterns and not good:
        problems.append(_USELESS)
    return tuple(good), tuple(problems)


def _expanded(head: RuleHead) -> RuleHead:
    """Return a head with the patterns that its globs stand for."""
    good: dict[str, None] = {}
    problems = list(head.problems)
    for glob in head.globs:
        try:
            good |= dict.fromkeys(patterns.expanded(glob))
        except PatternRefusedError as error:
            problems.append(_refused(glob, error))
    if len(problems) > len(head.problems) and not good:
        problems.append(_USELESS)
    return RuleHead(head.globs if good else (), head.body, tuple(problems), tuple(good))


def _refused(glob: str, error: PatternRefusedError) -> str:
    """Return the sentence about a glob that cannot be used."""
    return f"its glob {printable(glob, _SHOWN_CHARACTERS)} does not count: {error.facts['why']}"


def _quoted(line: re.Match[str]) -> str:
    """Return a line of a head with its value in quotes."""
    value = line[2].replace("\\", "\\\\").replace('"', '\\"')
    return f'{line[1]}"{value}"'


def _between_commas(text: str) -> Iterator[str]:
    """Yield the texts between the commas that stand in no braces."""
    depth, start = 0, 0
    for sign in re.finditer(r"[{},]", text):
        depth = max(depth + (sign[0] == "{") - (sign[0] == "}"), 0)
        if sign[0] == "," and not depth:
            yield from filter(None, (text[start : sign.start()].strip(),))
            start = sign.end()
    yield from filter(None, (text[start:].strip(),))
