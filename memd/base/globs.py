"""Shell patterns for names and paths, as regular expressions that match in linear time. Pure.

``*`` and ``?`` stay within one part of a path, ``**`` crosses parts, ``[a-z]`` is a set and
``{a,b}`` a choice. What is none of these stands for itself.
"""

import re
from collections.abc import Callable

from memd.base import regex

MAGIC = re.compile(r"[*?\[]")  # found in a text that is a pattern and not a plain name
PATTERN_CHARACTERS = 500  # a longer pattern is refused
Matcher = Callable[[str], bool]


def compiled(pattern: str, *, ignore_case: bool = False) -> Matcher:
    """Return a test for whole names or paths. Raises Invalid."""
    if len(pattern) > PATTERN_CHARACTERS:
        why = f"it has {len(pattern)} characters of {PATTERN_CHARACTERS}"
        raise regex.pattern_refused(why)
    result = regex.foreign(rf"\A(?:{translated(pattern)})\z", ignore_case=ignore_case)
    return lambda name: result.search(name) is not None


def translated(pattern: str) -> str:
    """Return a pattern as a regular expression for google-re2."""
    expressions: list[str] = []
    position, open_braces = 0, 0
    while position < len(pattern):
        match = _LONG_SYMBOL.match(pattern, position)
        symbol = match.group() if match else pattern[position]
        position += len(symbol)
        if symbol == "}" and open_braces:
            open_braces -= 1
            expressions.append(")")
            continue
        if symbol == "{":
            open_braces += 1
        expressions.append(_symbol_expression(symbol, in_braces=open_braces > 0))
    return "".join(expressions) + ")" * open_braces


# A set has at least one character, and a bracket that closes it at once is that character.
_SET = r"\[[!^]?+(?:\][^\]]*|[^\]]+)\]"
# A symbol of several characters; any other character is a symbol by itself.
_LONG_SYMBOL = re.compile(rf"\*\*/|\*+|\\.|{_SET}")
_SYMBOL_EXPRESSIONS = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]", "{": "(?:"}


def _symbol_expression(symbol: str, *, in_braces: bool) -> str:
    """Return one symbol of a pattern as a regular expression; in braces a comma is a choice."""
    if symbol in _SYMBOL_EXPRESSIONS:
        return _SYMBOL_EXPRESSIONS[symbol]
    if symbol.startswith("*"):
        return ".*"
    if symbol == "," and in_braces:
        return "|"
    if len(symbol) > 1 and symbol.startswith("["):
        return _set_expression(symbol[1:-1])
    if len(symbol) > 1:  # a backslash, and the character that it escapes
        return re.escape(symbol[1:])
    return re.escape(symbol)


def _set_expression(inner: str) -> str:
    """Return the set with this text between its brackets; ``!`` or ``^`` first negates it."""
    negated = inner[0] in "!^"
    characters = inner[1:] if negated else inner
    # All but the hyphen of a range stands for itself; one at either end is no range.
    escaped = re.sub(r"[\\\[\]^]|^-|-$", r"\\\g<0>", characters)
    return f"[^/{escaped}]" if negated else f"[{escaped}]"
