"""Shell patterns for names and paths, as regular expressions that match in linear time. Pure.

``*`` and ``?`` stay within one part of a path, ``**`` crosses parts, ``[a-z]`` is a set and
``{a,b}`` a choice. What is none of these stands for itself.
"""

import re
from collections.abc import Callable

from memd.core import regex

MAGIC = re.compile(r"[*?\[]")
PATTERN_CHARACTERS = 500
Matcher = Callable[[str], bool]


def compiled(pattern: str, *, ignore_case: bool = False) -> Matcher:
    """Return a test for whole names or paths. Raises PatternRefusedError."""
    if len(pattern) > PATTERN_CHARACTERS:
        why = f"it has {len(pattern)} characters of {PATTERN_CHARACTERS}"
        raise regex.PatternRefusedError(why)
    result = regex.foreign(rf"\A(?:{translated(pattern)})\z", ignore_case=ignore_case)
    return lambda name: result.search(name) is not None


def translated(pattern: str) -> str:
    """Return a pattern as a regular expression for google-re2."""
    parts: list[str] = []
    at, depth = 0, 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        text = token.group() if token else pattern[at]
        at += len(text)
        if text == "{":
            depth += 1
        elif text == "}" and depth:
            depth -= 1
            parts.append(")")
            continue
        parts.append(_piece(text, choosing=depth > 0))
    return "".join(parts) + ")" * depth


# A set has at least one character, and a bracket that closes it at once is that character.
_SET = r"\[[!^]?+(?:\][^\]]*|[^\]]+)\]"
_TOKEN = re.compile(rf"\*\*/|\*+|\\.|{_SET}")
_FIXED = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]", "{": "(?:"}


def _piece(text: str, *, choosing: bool) -> str:
    """Return one token of a pattern as a regular expression; ``choosing``: it is within braces."""
    if text in _FIXED:
        return _FIXED[text]
    if text.startswith("*"):
        return ".*"
    if text == "," and choosing:
        return "|"
    if len(text) > 1 and text.startswith("["):
        return _set(text[1:-1])
    return re.escape(text[1:] if len(text) > 1 else text)  # without the backslash before it


def _set(inner: str) -> str:
    """Return the set with this text between its brackets; ``!`` or ``^`` first negates it."""
    negated = inner[0] in "!^"
    characters = inner[1:] if negated else inner
    # All but the hyphen of a range stands for itself.
    escaped = re.sub(r"[\\\[\]^]", r"\\\g<0>", characters)
    return f"[^/{escaped}]" if negated else f"[{escaped}]"
