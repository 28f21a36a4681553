"""Tell whether git ignores a folder of a project, from its ignore files, without running git.

The last matching pattern decides. The files, from the weakest to the strongest: the person's own,
the repository's ``info/exclude``, then ``.gitignore`` from the root down to the folder. Everything
in an ignored folder is ignored, whatever other patterns say.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

_FILE_BYTES = 256 * 1024  # of an ignore file that are read


def is_ignored(root: str, folder: str, home: str, environ: Mapping[str, str]) -> bool:
    """Return whether git ignores a folder, given relative to the root of its repository. Blocks."""
    config = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    general = [*_lines(f"{config}/git/ignore"), *_lines(f"{root}/.git/info/exclude")]
    rules = [("", line) for line in general]
    parts = folder.split("/")
    for depth in range(len(parts)):  # from the root down
        parent, child = "/".join(parts[:depth]), "/".join(parts[: depth + 1])
        rules += [(parent, line) for line in _lines(f"{root}/{parent}/.gitignore")]
        if _is_excluded(rules, child):
            return True
    return False


def _is_excluded(rules: list[tuple[str, str]], path: str) -> bool:
    """Return whether the last rule that matches a folder ignores it.

    A rule is the folder of its ignore file, relative to the root, and a line of that file.
    """
    ignored = False
    for base, line in rules:
        negated = line.startswith("!")
        pattern = line[1:] if negated else line.removeprefix("\\")
        relative = path.removeprefix(f"{base}/") if base else path
        if _expression(pattern.rstrip("/")).fullmatch(relative):
            ignored = not negated
    return ignored


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """Return a git pattern as a regular expression; with a slash it matches the whole path."""
    is_whole_path = "/" in pattern
    result, at = "", 0  # the expression so far, and the offset of the rest of the pattern
    text = pattern.removeprefix("/")
    while at < len(text):
        if text.startswith("**/", at):
            result, at = f"{result}(?:.*/)?", at + 3
        elif text.startswith("**", at):
            result, at = f"{result}.*", at + 2
        elif group := re.match(r"\[(!|\^)?(\]?[^\]/]*)\]", text[at:]):
            members = group[2].replace("\\", "\\\\").replace("[", "\\[")
            negation = "^" if group[1] else ""
            result, at = f"{result}[{negation}{members}]", at + group.end()
        else:
            char = text[at + 1 : at + 2] if text[at] == "\\" else text[at]
            at += 2 if text[at] == "\\" else 1
            is_escaped = text[at - 2 : at - 1] == "\\"
            wildcards = {} if is_escaped else {"*": "[^/]*", "?": "[^/]"}
            result += wildcards.get(char, re.escape(char))
    with suppress(re.error):
        return re.compile(result if is_whole_path else f"(?:.*/)?{result}", re.DOTALL)
    return re.compile(r"(?!)")  # an invalid pattern matches nothing


def _lines(path: str) -> list[str]:
    """Return the patterns of an ignore file, empty if it cannot be read."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            text = file.read(_FILE_BYTES).decode(errors="replace")
        lines = (line.rstrip(" \r") for line in text.split("\n"))
        return [line for line in lines if line and not line.startswith("#")]
    return []
