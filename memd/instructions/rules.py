"""The head of an instruction file, and the condition with which a rule loads. Pure.

Rules of this file
- No YAML is asked, so a head can do no harm: ``paths`` is read line by line, with what Claude Code
  2.1.329 makes of it (docs/decisions.md). Its YAML reads an unquoted ``**/*.ts`` behind the key,
  and nothing of a list that has one (tests/instructions/test_rules.py::test_heads).
- A condition that cannot be read is none, so the rule always loads, and a problem says so.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memd.core.names import printable
from memd.core.regex import PatternRefusedError
from memd.documents.document import LENIENT_LINE, unquoted
from memd.instructions import patterns

_OPENING = re.compile(r"\ufeff?---\s*\n")
_FENCE = "---"
_ITEM = re.compile(r"([ \t]*)-(?:[ \t]+(.*))?")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*+"|'(?:[^']|'')*+')(?:[ \t]+#.*)?""")
_KEY = re.compile(r"""("[^"]*"|'[^']*'|[^\s"'{}\[\],&*!|>%@`#-][^#]*?)[ \t]*:(?:[ \t].*)?""")
_PIECE = re.compile(r"""[{}\[\],]|"(?:[^"\\]|\\.)*+"|'[^']*+'|[^{}\[\],"']++|["']""")
_NO_TEXT = re.compile(
    r"~|null|true|false|[-+]?[0-9][0-9_.]*(?:e[-+]?[0-9]+)?|\{[^{}]*\}|[&!].*", re.IGNORECASE
)
_UNSAFE = ("*", "%", "@", "`", "|", ">", "{", "}", "]")  # how no text in a list begins
_TAGGED = ("!", "&")
_TAG = re.compile(r"(?:[!&]\S*[ \t]+)+(?=\S)")
_INNER = re.compile(r"(?:-[ \t]+)+")
_QUOTES = ('"', "'")
_MAPPING = re.compile(r":(?:[ \t]|$)")
_SHOWN_CHARACTERS = 60
_BROKEN = "its head cannot be read: it always loads"
_EMPTY = "its {} are empty or cannot be read: it always loads"


@dataclass(frozen=True, slots=True)
class RuleHead:
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
    lines, body, why = split(text)
    if why:
        return RuleHead((), body, (why,))
    if not _is_mapping(lines):
        return RuleHead((), body, (_BROKEN,) if lines else ())
    written = listed(lines, key)
    if written is None:
        return RuleHead((), body)
    if not written:
        return RuleHead((), body, (_EMPTY.format(key),))
    return _expanded(RuleHead(tuple(dict.fromkeys(written)), body))


def split(text: str) -> tuple[tuple[str, ...], str, str]:
    """Return the lines of a head, the text below it, and in words why the head is none.

    As in Claude Code the head ends with the next ``---``, wherever that stands.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return (), text, ""
    end = text.find(_FENCE, opening.end())
    if end < 0:
        return (), text, "its head has no end: it always loads"
    inner = text[opening.end() : end]
    return (
        tuple(line.rstrip("\r") for line in inner.rstrip("\n").split("\n")),
        text[end + len(_FENCE) :].lstrip(),
        "",
    )


def usable(head: RuleHead) -> RuleHead:
    """Return a head without the patterns that cannot be used, which are problems."""
    reasons = {pattern: patterns.refusal(pattern) for pattern in head.patterns}
    good = tuple(pattern for pattern, why in reasons.items() if not why)
    problems = [_refused(pattern, why) for pattern, why in reasons.items() if why]
    if head.patterns and not good:
        problems.append(_EMPTY.format("globs"))
    return replace(
        head,
        globs=head.globs if good else (),
        patterns=good,
        problems=(*head.problems, *problems),
    )


def value(lines: Sequence[str], key: str) -> str | None:
    """Return the text behind a key, the last of that name; ``None`` if there is none."""
    places = _places(lines, key)
    return unquoted(_uncommented(places[-1][1])) if places else None


def listed(lines: Sequence[str], key: str) -> list[str] | None:
    """Return the texts of a key's list, however it is written, none if it cannot be read.

    ``None`` if the key is not there. Known are ``a, b``, ``[a, b]`` and a line ``- a`` for each.
    """
    places = _places(lines, key)
    if not places:
        return None
    number, first = places[-1]
    first, below = _uncommented(first), _below(lines, number)
    more = [text for text in map(_uncommented, below) if text]
    if first.startswith("["):
        texts = _flow(" ".join((first, *more))) or [" ".join((first, *more))]
    elif first or not any(map(_ITEM.fullmatch, below)):
        texts = _scalar(first, more)
    else:
        texts = _items(below)
    return [glob for text in texts for glob in _between_commas(text)]


def _is_mapping(lines: Sequence[str]) -> bool:
    """Return whether the outermost lines of a head are keys, as YAML wants it."""
    outermost = None
    for line in lines:
        text = line.lstrip(" \t")
        depth = len(line) - len(text)
        if not text or text.startswith("#"):
            continue
        if outermost is None or depth < outermost or (depth == outermost and text[0] not in "-]}"):
            if not _KEY.fullmatch(text) or (outermost is not None and depth < outermost):
                return False
            outermost = depth
    return outermost is not None


def _expanded(head: RuleHead) -> RuleHead:
    """Return a head with the patterns that its globs stand for."""
    good: list[str] = []
    problems: list[str] = []
    for glob in head.globs:
        try:
            good += patterns.expanded(glob)
        except PatternRefusedError as error:
            problems.append(_refused(glob, str(error.facts["why"])))
    if problems and not good:
        problems.append(_EMPTY.format("globs"))
    globs = head.globs if good else ()
    return RuleHead(globs, head.body, tuple(problems), tuple(dict.fromkeys(good)))


def _refused(glob: str, why: str) -> str:
    return f"its glob {printable(glob, _SHOWN_CHARACTERS)} does not count: {why}"


def _places(lines: Sequence[str], key: str) -> list[tuple[int, str]]:
    """Return where a key stands among the first keys of a head, and what is behind it."""
    result, indentation = [], None
    for number, line in enumerate(lines):
        match = LENIENT_LINE.fullmatch(line.replace(f'"{key}"', key, 1))
        if match and indentation is None:
            indentation = match[1]
        if match and match[1] == indentation and match[2] == key:
            result.append((number, match[3] or ""))
    return result


def _below(lines: Sequence[str], number: int) -> list[str]:
    """Return the lines that go on with a key: to the next one, or one that is indented less."""
    indentation = len(lines[number]) - len(lines[number].lstrip())
    result = []
    for line in lines[number + 1 :]:
        depth = len(line) - len(line.lstrip())
        goes_on = (
            depth > indentation or _ITEM.fullmatch(line) or line.lstrip()[:1] in ("", "#", "]")
        )
        if not goes_on or (depth <= indentation and LENIENT_LINE.fullmatch(line)):
            break
        result.append(line)
    return result


def _scalar(first: str, more: Sequence[str]) -> list[str]:
    """Return the one text of a key, none if it is no text."""
    block = re.fullmatch(r"[|>][-+0-9]*", first)
    if block:
        return [("\n" if first.startswith("|") else " ").join(more)]
    text = _TAG.sub("", " ".join((first, *more)).strip(), count=1)
    mapping = not first and any(map(_KEY.fullmatch, more))
    quoted = first.startswith(_QUOTES)
    if mapping or (_QUOTED.fullmatch(text) is None if quoted else _NO_TEXT.fullmatch(text)):
        return []
    return [_text(text)]


def _items(lines: Sequence[str]) -> list[str]:
    """Return the texts of the lines ``- text``, none if YAML could not read one of them."""
    items: list[str] = []
    indentation, nested = None, False
    for line in lines:
        match, text = _ITEM.fullmatch(line), _uncommented(line)
        if match and (nested or indentation in (None, len(match[1]))):
            inner = _uncommented(match[2] or "")
            indentation, nested = len(match[1]), nested or inner.startswith("- ")
            items.append(_TAG.sub("", _INNER.sub("", inner, count=1), count=1))
        elif text and items:
            items[-1] = f"{items[-1]} {text}"
    texts: list[str] = []
    for item in items:
        flow = _flow(item) if item.startswith("[") else [item]
        broken = item.startswith(_QUOTES) and not _QUOTED.fullmatch(item)
        if not flow or broken or item.startswith(_UNSAFE):
            return []
        texts += flow
    return [_text(text) for text in texts if _is_text(text)]


def _flow(text: str) -> list[str]:
    """Return the texts of ``[a, b]``, none if YAML could not read them."""
    pieces = [piece.strip() for piece in _PIECE.findall(text) if piece.strip()]
    inner = [piece for piece in pieces if piece not in ("[", "]", ",")]
    good = text.endswith("]") and pieces.count("[") == pieces.count("]")
    if not good or any(piece.startswith(_UNSAFE) for piece in inner):
        return []
    return [_text(piece) for piece in inner if _is_text(piece)]


def _is_text(value: str) -> bool:
    """Return whether YAML takes a value for a text, and not for a number or a mapping."""
    if value.startswith(_QUOTES):
        return True
    return not (value.startswith(_TAGGED) or _NO_TEXT.fullmatch(value) or _MAPPING.search(value))


def _uncommented(text: str) -> str:
    """Return a value without the comment behind it."""
    text = text.strip()
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[1]
    return text if text.startswith(_QUOTES) else _COMMENT.sub("", text, count=1).strip()


def _text(value: str) -> str:
    """Return a value without its quotes and without the escapes that these make possible."""
    if value.startswith('"') and "\\" in value:
        try:
            return str(json.loads(value))
        except ValueError:
            return unquoted(value)
    return unquoted(value).replace("''", "'") if value.startswith("'") else unquoted(value)


def _between_commas(text: str) -> Iterator[str]:
    """Yield the texts between the commas that stand in no braces."""
    depth, start = 0, 0
    for sign in re.finditer(r"[{},]", text):
        depth = max(depth + (sign[0] == "{") - (sign[0] == "}"), 0)
        if sign[0] == "," and not depth:
            yield from filter(None, (text[start : sign.start()].strip(),))
            start = sign.end()
    yield from filter(None, (text[start:].strip(),))
