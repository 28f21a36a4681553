"""The patterns of a rule's condition, which are those of ``.gitignore``. Pure.

As Claude Code 2.1.329 has them (docs/decisions.md): without a slash inside a pattern is a name at
any depth, a slash at the beginning anchors it, one at the end asks for a folder; a folder means
all below it; ``!`` takes back, case does not count, a set is never negated. Braces are taken apart
first, and a ``/**`` at the end is taken off.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memd.core import globs
from memd.core.regex import PatternRefusedError

_ALTERNATIVES = 100  # that one pattern may stand for
_BRACES = re.compile(r"([^{]*)\{([^}]+)\}(.*)", re.DOTALL)
_NEGATED_SET = re.compile(r"\[([!^])([^\]]+)\]")
_LITERAL = re.compile(r"[{}]")
_TOO_MANY = f"it stands for more than {_ALTERNATIVES} patterns"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A pattern as globs: what it matches, and that with all below it.

    ``glob`` is "" where it matches folders alone.
    """

    negated: bool
    glob: str
    below: str


def expanded(pattern: str) -> tuple[str, ...]:
    """Return the patterns that one stands for; none if it matches everything.

    Raises PatternRefusedError for one that is too long or stands for too many.
    """
    if len(pattern) > globs.PATTERN_CHARACTERS:
        why = f"it has {len(pattern):,} characters of {globs.PATTERN_CHARACTERS}"
        raise PatternRefusedError(why)
    result: list[str] = []
    waiting = [pattern]
    while waiting:
        braces = _BRACES.fullmatch(waiting[-1])
        last = waiting.pop()
        if braces:
            before, inner, after = braces.groups()
            waiting += [f"{before}{each.strip()}{after}" for each in reversed(inner.split(","))]
        else:
            result.append(last.removesuffix("/**"))
        if len(waiting) + len(result) > _ALTERNATIVES:
            raise PatternRefusedError(_TOO_MANY)
    return tuple(each for each in result if each not in ("", "**"))


def refusal(pattern: str) -> str:
    """Return in words why one of the ``expanded`` patterns cannot be used, "" if it can."""
    try:
        _matches(_read(pattern).below, "")
    except PatternRefusedError as error:
        return str(error.facts["why"])
    return ""


def fits(patterns: Sequence[str], path: str) -> bool:
    """Return whether a relative path fits: the last pattern that matches it or a folder decides.

    The patterns are such as ``expanded`` returns and ``refusal`` finds nothing against.
    """
    read = [_read(pattern) for pattern in patterns]
    if not any(_matches(each.below, path) for each in read if not each.negated):
        return False
    if not any(each.negated for each in read):
        return True
    ends = [index for index, character in enumerate(path) if character == "/"]
    folders = (path[:end] for end in ends)
    return any(_decides(read, folder, "/") for folder in folders) or _decides(read, path, "")


def _decides(patterns: Iterable[_Pattern], path: str, slash: str) -> bool:
    """Return whether the last pattern that matches just this path or folder is no negated one."""
    result = False
    for each in patterns:
        if each.negated == result and (each.glob or slash):
            matched = _matches(each.glob or each.below.removesuffix("/**"), path)
            result = result != matched
    return result


@lru_cache(maxsize=1024)
def _read(pattern: str) -> _Pattern:
    """Return a pattern as globs."""
    negated = pattern.startswith("!")
    body = pattern[negated:].rstrip(" ")
    folder = body.endswith("/")
    body = body.removesuffix("/")
    anchored = "/" in body
    if folder and body.endswith("**"):  # any folder, or any below one: the one itself too
        body = body.removesuffix("**").removesuffix("/") or "*"
    names = [_name(name) for name in body.removeprefix("/").split("/")]
    glob = "/".join(names if anchored else ["**", *names])
    if body.startswith("#") or not names[-1]:
        return _Pattern(negated, "", "/")  # a comment, or nothing
    return _Pattern(negated, "" if folder else glob, f"{glob}/**" if folder else f"{glob}{{,/**}}")


def _name(name: str) -> str:
    """Return one part of a pattern as the same of a glob."""
    if name == "**":
        return name
    name = _LITERAL.sub(r"\\\g<0>", re.sub(r"\*+", "*", name))
    return _NEGATED_SET.sub(r"[\2\1]", name)


def _matches(glob: str, path: str) -> bool:
    return _compiled(glob)(path)


@lru_cache(maxsize=256)  # each some 30 KB once it was used
def _compiled(glob: str) -> globs.Matcher:
    """Return a test for relative paths. Raises PatternRefusedError."""
    return globs.compiled(glob, ignore_case=True)
