"""The head of a rule: the globs with which it loads, and what of the file is its text. Pure.

Rules of this file
- No YAML is asked: a glob like ``**/*.ts`` is none, and a head cannot do harm. What looks like
  ``paths: …`` is read line by line (tests/instructions/test_rules.py::test_heads).
- A condition that cannot be read is none, so the rule always loads, and a problem says so
  (tests/instructions/test_rules.py::test_broken_heads_load_and_are_named).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memd.core import globs
from memd.core.names import printable
from memd.core.regex import PatternRefusedError
from memd.documents.document import LENIENT_LINE, unquoted

_OPENING = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*\r?$\n?", re.MULTILINE)
_ITEM = re.compile(r"[ \t]*-(?:[ \t]+(.*))?")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_PIECE = re.compile(r"""[{}\[\],]|"[^"]*"|'[^']*'|[^{}\[\],"']+|["']""")
_SHOWN_CHARACTERS = 60

Matcher = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class RuleHead:
    """``globs`` is the condition as written, empty for a rule that always loads.

    ``body`` is the text below the head, ``problems`` are sentences without their subject.
    """

    globs: tuple[str, ...]
    body: str
    problems: tuple[str, ...] = ()


def head(text: str, key: str = "paths") -> RuleHead:
    """Return what the head of a rule says under a key, and the text below the head."""
    lines, body, why = split(text)
    if why:
        return RuleHead((), body, (why,))
    written = listed(lines, key)
    if written == []:
        return RuleHead((), body, (f"its {key} are empty or cannot be read: it always loads",))
    return RuleHead(tuple(dict.fromkeys(written or ())), body)


def condition(written: RuleHead) -> RuleHead:
    """Return a head without the globs that cannot be used, which are problems."""
    reasons = {glob: _refusal(glob) for glob in written.globs}
    problems = [
        f"its glob {printable(glob, _SHOWN_CHARACTERS)} does not count: {why}"
        for glob, why in reasons.items()
        if why
    ]
    usable = tuple(glob for glob, why in reasons.items() if not why)
    if written.globs and not usable:
        problems.append("none of its globs can be used: it always loads")
    return RuleHead(usable, written.body, (*written.problems, *problems))


def fits(patterns: Iterable[str], path: str) -> bool:
    """Return whether a path fits one of the globs, which must be such as ``condition`` returns."""
    matchers = (_compiled(glob) for glob in patterns)
    return any(not isinstance(matches, str) and matches(path) for matches in matchers)


def split(text: str) -> tuple[tuple[str, ...], str, str]:
    """Return the lines of a head, the text below it, and in words why there is no end to it."""
    opening = _OPENING.match(text)
    if opening is None:
        return (), text, ""
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        return (), text, "its head has no end: it always loads"
    inner = text[opening.end() : closing.start()]
    return tuple(inner.splitlines()), text[closing.end() :], ""


def value(lines: Sequence[str], key: str) -> str | None:
    """Return what stands behind a key in its line, the last of that name; ``None`` if none does."""
    result = None
    for line in lines:
        match = LENIENT_LINE.fullmatch(line)
        if match and not match[1] and match[2] == key:
            result = unquoted(_uncommented(match[3] or ""))
    return result


def listed(lines: Sequence[str], key: str) -> list[str] | None:
    """Return the texts of a key's list, in whichever way it is written; ``None`` if none is there.

    Known are ``a, b``, ``[a, b]`` over one or more lines, and a line ``- a`` for each.
    """
    result = None
    for number, line in enumerate(lines):
        match = LENIENT_LINE.fullmatch(line)
        if match is None or match[1] or match[2] != key:
            continue
        first = _uncommented(match[3] or "")
        below = _below(lines[number + 1 :])
        if first.startswith("["):
            whole = " ".join((first, *(_uncommented(line) for line in below))).strip()
            result = _separate(whole[1:-1]) if whole.endswith("]") else []
        elif first:
            result = _separate(unquoted(first))
        else:
            items = [_ITEM.fullmatch(line) for line in below if _uncommented(line)]
            texts = [unquoted(_uncommented(item[1] or "")) if item else "" for item in items]
            result = [glob for text in texts for glob in _separate(text)] if all(texts) else []
    return result


def _refusal(glob: str) -> str:
    """Return in words why a glob cannot be used, "" if it can."""
    longest = globs.PATTERN_CHARACTERS
    if len(glob) > longest:
        return f"it has {len(glob):,} characters of {longest}"
    test = _compiled(glob)
    return test if isinstance(test, str) else ""


@lru_cache(maxsize=256)  # each some 30 KB once it was used
def _compiled(glob: str) -> Matcher | str:
    """Return a test for relative paths, or in words why there is none."""
    try:
        return globs.compiled(glob.removeprefix("./").removeprefix("/"))
    except PatternRefusedError as error:
        return str(error.facts["why"])


def _below(lines: Sequence[str]) -> list[str]:
    """Return the lines that go on with a key: up to the next key."""
    result = []
    for line in lines:
        match = LENIENT_LINE.fullmatch(line)
        if match and not match[1] and line.strip():
            break
        result.append(line)
    return result


def _uncommented(text: str) -> str:
    """Return a value without the comment behind it, if it is not in quotes."""
    text = text.strip()
    return text if text[:1] in ("'", '"') else _COMMENT.sub("", text, count=1).strip()


def _separate(text: str) -> list[str]:
    """Return the texts between commas that stand in no quotes and in no braces."""
    return [text for text in map(unquoted, _between_commas(text)) if text]


def _between_commas(text: str) -> Iterator[str]:
    depth, pieces = 0, list[str]()
    for piece in _PIECE.findall(text):
        depth = max(depth + (piece == "{") - (piece == "}"), 0)
        if piece == "," and not depth:
            yield "".join(pieces)
            pieces = []
        else:
            pieces.append(piece)
    yield "".join(pieces)
