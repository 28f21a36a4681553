"""Match paths with the patterns of a rule's condition, which are those of ``.gitignore``. Pure.

They are read as Claude Code 2.1.329 does (docs/decisions.md). A pattern without a slash inside is a
name at any depth, a slash at the beginning anchors it, and with a slash at the end it matches only
folders. A matched folder includes all below it. ``!`` excludes again what matched before, case is
ignored, and no set is negated. Braces are expanded first, and a ``/**`` at the end is removed.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from memd.core import globs
from memd.core.regex import PatternRefusedError

_ALTERNATIVES = 100  # that one pattern may stand for
_BRACES = re.compile(r"([^{]*)\{([^}]+)\}(.*)", re.DOTALL)
_NEGATED_SET = re.compile(r"\[([!^])([^\]]+)\]")
_LITERAL = re.compile(r"[{}]")
_TOO_MANY = f"it stands for more than {_ALTERNATIVES} patterns"


class PathPattern(Struct, frozen=True):
    """One pattern: ``matches_below`` tests if a path, or a folder above it, matches.

    ``glob`` matches a file itself, "" if only folders match. ``folder`` matches a folder itself.
    """

    negated: bool
    matches_below: globs.Matcher
    glob: str
    folder: str


def expanded(pattern: str) -> tuple[str, ...]:
    """Return the patterns that a pattern with braces stands for; none if it matches everything.

    Raises PatternRefusedError for a pattern that is too long or stands for too many.
    """
    if len(pattern) > globs.PATTERN_CHARACTERS:
        why = f"it has {len(pattern):,} characters of {globs.PATTERN_CHARACTERS}"
        raise PatternRefusedError(why)
    result: list[str] = []
    stack = [pattern]  # patterns that may have braces
    while stack:
        first = stack.pop()
        braces = _BRACES.fullmatch(first)
        if braces:
            before, inner, after = braces.groups()
            stack += [f"{before}{each.strip()}{after}" for each in reversed(inner.split(","))]
        else:
            result.append(first.removesuffix("/**"))
        if len(stack) + len(result) > _ALTERNATIVES:
            raise PatternRefusedError(_TOO_MANY)
    return tuple(each for each in result if each not in ("", "**"))


def fits(patterns: Sequence[PathPattern], path: str) -> bool:
    """Return whether the patterns match a relative path, or a folder above it.

    For each of these, the last pattern that matches decides.
    """
    if not any(each.matches_below(path) for each in patterns if not each.negated):
        return False
    if not any(each.negated for each in patterns):
        return True
    folders = (path[:end] for end, character in enumerate(path) if character == "/")
    if any(_is_matched(patterns, folder, folder=True) for folder in folders):
        return True
    return _is_matched(patterns, path, folder=False)


def _is_matched(patterns: Iterable[PathPattern], path: str, *, folder: bool) -> bool:
    """Return whether the last pattern that matches a path or folder is not a negated one."""
    result = False
    for each in patterns:
        glob = each.folder if folder else each.glob
        if each.negated == result and glob and _compile_glob(glob)(path):
            result = not result
    return result


@lru_cache(maxsize=256)  # each some 30 KB once it was used
def compile_pattern(pattern: str) -> PathPattern:
    """Return one of the ``expanded`` patterns compiled. Raises PatternRefusedError."""
    is_negated = pattern.startswith("!")
    body = pattern.removeprefix("!").rstrip(" ")
    is_folder = body.endswith("/")
    body = body.removesuffix("/")
    is_anchored = "/" in body
    if is_folder and body.endswith("**"):  # any folder, or the folder before it and any below
        body = body.removesuffix("**").removesuffix("/") or "*"
    names = [_glob_of_name(name) for name in body.removeprefix("/").split("/")]
    if body.startswith("#") or not names[-1]:  # a comment or an empty pattern matches nothing
        return PathPattern(is_negated, lambda _: False, "", "")
    glob = "/".join(names if is_anchored else ["**", *names])
    below = _compile_glob(f"{glob}/**" if is_folder else f"{glob}{{,/**}}")
    return PathPattern(is_negated, below, "" if is_folder else glob, glob)


def _glob_of_name(name: str) -> str:
    """Return a name of a pattern (the text between two slashes) in the syntax of a glob."""
    if name == "**":
        return name
    name = _LITERAL.sub(r"\\\g<0>", re.sub(r"\*+", "*", name))
    return _NEGATED_SET.sub(r"[\2\1]", name)


@lru_cache(maxsize=64)
def _compile_glob(glob: str) -> globs.Matcher:
    """Return a test for relative paths. Raises PatternRefusedError."""
    return globs.compiled(glob, ignore_case=True)
