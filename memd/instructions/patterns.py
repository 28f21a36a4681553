"""Match paths with the patterns of a rule's condition, which are those of ``.gitignore``. Pure.

As Claude Code 2.1.329 has them (docs/decisions.md): without a slash inside a pattern is a name at
any depth, a slash at the beginning anchors it, one at the end asks for a folder; a folder means
all below it; ``!`` takes back, case does not count, a set is never negated. Braces are taken apart
first, and a ``/**`` at the end is taken off.
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
    """One pattern: a test for what it matches and all below that, and the same as a glob.

    ``glob`` is what it matches itself, "" where that is folders alone.
    """

    negated: bool
    matches_below: globs.Matcher
    glob: str
    folder: str


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


def fits(patterns: Sequence[PathPattern], path: str) -> bool:
    """Return whether a relative path fits: the last pattern that matches it or a folder decides."""
    if not any(each.matches_below(path) for each in patterns if not each.negated):
        return False
    if not any(each.negated for each in patterns):
        return True
    folders = (path[:end] for end, character in enumerate(path) if character == "/")
    return any(_is_matched(patterns, folder, folder=True) for folder in folders) or _is_matched(
        patterns, path, folder=False
    )


def _is_matched(patterns: Iterable[PathPattern], path: str, *, folder: bool) -> bool:
    """Return whether the last pattern that matches a path or folder is not a negated one."""
    result = False
    for each in patterns:
        glob = each.folder if folder else each.glob
        if each.negated == result and glob and _compiled(glob)(path):
            result = not result
    return result


@lru_cache(maxsize=256)  # each some 30 KB once it was used
def compiled(pattern: str) -> PathPattern:
    """Return one of the ``expanded`` patterns compiled. Raises PatternRefusedError."""
    negated = pattern.startswith("!")
    body = pattern[negated:].rstrip(" ")
    only_folders = body.endswith("/")
    body = body.removesuffix("/")
    anchored = "/" in body
    if only_folders and body.endswith("**"):  # any folder, or any below one: the one itself too
        body = body.removesuffix("**").removesuffix("/") or "*"
    names = [_name(name) for name in body.removeprefix("/").split("/")]
    if body.startswith("#") or not names[-1]:
        return PathPattern(negated, lambda _: False, "", "")  # a comment, or nothing
    glob = "/".join(names if anchored else ["**", *names])
    below = _compiled(f"{glob}/**" if only_folders else f"{glob}{{,/**}}")
    return PathPattern(negated, below, "" if only_folders else glob, glob)


def _name(name: str) -> str:
    """Return one part of a pattern as the same of a glob."""
    if name == "**":
        return name
    name = _LITERAL.sub(r"\\\g<0>", re.sub(r"\*+", "*", name))
    return _NEGATED_SET.sub(r"[\2\1]", name)


@lru_cache(maxsize=64)
def _compiled(glob: str) -> globs.Matcher:
    """Return a test for relative paths. Raises PatternRefusedError."""
    return globs.compiled(glob, ignore_case=True)
