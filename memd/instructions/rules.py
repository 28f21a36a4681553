"""Read the head of an instruction file, and the condition under which a rule loads. Pure.

Heads are read as Claude Code 2.1.329 does (docs/decisions.md): as YAML, and if that fails, once
more with the values in quotes, since ``**/*.ts`` is not YAML. No unsafe YAML is read.

Rules of this file
- If a condition cannot be read, the rule always loads, and a problem says so
  (tests/net/test_instruction_files.py).
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
# YAML's anchors and tags. They have no meaning here, and ``document.mapping`` refuses them.
_TAGS = re.compile(r"^([ \t]*(?:[\w-]+[ \t]*:|-)[ \t]+)(?:[!&]\S*(?:[ \t]+|$))+", re.MULTILINE)
_OTHER_SCALAR = re.compile(r"~|null|true|false|[-+]?[0-9][0-9_.]*(?:e[-+]?[0-9]+)?", re.IGNORECASE)
_SHOWN_CHARACTERS = 60
_HEAD_WITHOUT_END = "its head has no end: it always loads"
_HEAD_UNREADABLE = "its head cannot be read: it always loads"
_NO_GLOBS = "its {} are empty or no text: it always loads"
_NO_USABLE_GLOB = "none of its globs counts: it always loads"


class RuleHead(Struct, frozen=True):
    """The head of a rule; ``globs`` is the condition as written, empty if the rule always loads.

    ``patterns`` are the patterns without braces that the globs stand for, ``body`` is the text
    below the head, and ``problems`` are sentences without their subject.
    """

    globs: tuple[str, ...]
    body: str
    problems: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


def head(text: str, key: str = "paths") -> RuleHead:
    """Return the head of a rule; ``key`` is the key of its globs."""
    raw, body = split(text)
    if not raw:
        has_no_end = _OPENING.match(text) and _FENCE not in text[len(_FENCE) + 1 :]
        return RuleHead((), body, (_HEAD_WITHOUT_END,) if has_no_end else ())
    values = fields(raw)
    if values is None:
        return RuleHead((), body, (_HEAD_UNREADABLE,))
    if key not in values:
        return RuleHead((), body)
    written = tuple(dict.fromkeys(texts(values[key])))
    problems = () if written else (_NO_GLOBS.format(key),)
    return _with_patterns(RuleHead(written, body, problems))


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
    return document.mapping(_LINE.sub(_quote_value, untagged)) if values is None else values


def texts(value: Any) -> Iterator[str]:
    """Yield the texts of a value, which are separated by commas outside of braces.

    Of a list, yield the texts of each item.
    """
    if isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str) and not _OTHER_SCALAR.fullmatch(value):
        yield from _split_at_commas(value)


def compile_patterns(head: RuleHead) -> tuple[tuple[PathPattern, ...], tuple[str, ...]]:
    """Return the patterns of a head that can be used, and the problems of the head."""
    usable, problems = [], list(head.problems)
    for pattern in head.patterns:
        try:
            usable.append(patterns.compile_pattern(pattern))
        except PatternRefusedError as error:
            problems.append(_glob_problem(pattern, error))
    if head.patterns and not usable:
        problems.append(_NO_USABLE_GLOB)
    return tuple(usable), tuple(problems)


def _with_patterns(head: RuleHead) -> RuleHead:
    """Return a head with the patterns that its globs stand for."""
    usable: dict[str, None] = {}  # each once, in order
    problems = list(head.problems)
    for glob in head.globs:
        try:
            usable |= dict.fromkeys(patterns.expanded(glob))
        except PatternRefusedError as error:
            problems.append(_glob_problem(glob, error))
    has_refused_globs = len(problems) > len(head.problems)
    if has_refused_globs and not usable:
        problems.append(_NO_USABLE_GLOB)
    # Globs that match everything give no pattern: then there is no condition.
    return RuleHead(head.globs if usable else (), head.body, tuple(problems), tuple(usable))


def _glob_problem(glob: str, error: PatternRefusedError) -> str:
    """Return the sentence about a glob that cannot be used."""
    return f"its glob {printable(glob, _SHOWN_CHARACTERS)} does not count: {error.facts['why']}"


def _quote_value(line: re.Match[str]) -> str:
    """Return a line of a head with its value in quotes."""
    value = line[2].replace("\\", "\\\\").replace('"', '\\"')
    return f'{line[1]}"{value}"'


def _split_at_commas(text: str) -> Iterator[str]:
    """Yield the texts that are not empty between the commas outside of braces."""
    depth, start, parts = 0, 0, list[str]()
    for sign in re.finditer(r"[{},]", text):
        if sign[0] == "{":
            depth += 1
        elif sign[0] == "}":
            depth = max(depth - 1, 0)
        elif not depth:
            parts.append(text[start : sign.start()])
            start = sign.end()
    parts.append(text[start:])
    for part in parts:
        if part.strip():
            yield part.strip()
