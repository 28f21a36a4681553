"""Whether git ignores a folder of a project, by its ignore files, read here without a process.

The last pattern that fits decides, the files from the weakest to the strongest: the person's own,
the repository's ``info/exclude``, then ``.gitignore`` from the root down to the folder. What lies
in an ignored folder is ignored, whatever else is said of it.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

_BYTES = 256 * 1024


def is_ignored(root: str, folder: str, home: str, environ: Mapping[str, str]) -> bool:
    """Say whether git ignores a folder, given relative to the root of its repository. Blocks."""
    config = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    shared = [*_lines(f"{config}/git/ignore"), *_lines(f"{root}/.git/info/exclude")]
    parts = folder.split("/")
    rules = [("", line) for line in shared]
    for depth in range(1, len(parts) + 1):
        above = "/".join(parts[: depth - 1])
        rules += [(above, line) for line in _lines(f"{root}/{above}/.gitignore")]
        if _decided(rules, "/".join(parts[:depth])):
            return True
    return False


def _decided(rules: list[tuple[str, str]], path: str) -> bool:
    """Say what the last rule that fits a folder says of it."""
    ignored = False
    for above, line in rules:
        negated = line.startswith("!")
        pattern = line[1:] if negated else line.removeprefix("\\")
        inside = path.removeprefix(f"{above}/") if above else path
        if _expression(pattern.rstrip("/")).fullmatch(inside):
            ignored = not negated
    return ignored


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """Return what a pattern fits; one with a slash in it is meant from its own folder on."""
    anchored = "/" in pattern
    result, at = "", 0
    text = pattern.removeprefix("/")
    while at < len(text):
        if text.startswith("**/", at):
            result, at = f"{result}(?:.*/)?", at + 3
        elif text.startswith("**", at):
            result, at = f"{result}.*", at + 2
        elif group := re.match(r"\[(!|\^)?(\]?[^\]/]*)\]", text[at:]):
            inside = group[2].replace("\\", "\\\\").replace("[", "\\[")
            result, at = f"{result}[{'^' if group[1] else ''}{inside}]", at + group.end()
        else:
            char = text[at + 1 : at + 2] if text[at] == "\\" else text[at]
            at += 2 if text[at] == "\\" else 1
            known = {"*": "[^/]*", "?": "[^/]"} if text[at - 2 : at - 1] != "\\" else {}
            result += known.get(char, re.escape(char))
    with suppress(re.error):
        return re.compile(result if anchored else f"(?:.*/)?{result}", re.DOTALL)
    return re.compile(r"(?!)")  # no pattern of git's fits nothing that we know


def _lines(path: str) -> list[str]:
    """Return the patterns of a file, none where it cannot be read."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            text = file.read(_BYTES).decode(errors="replace")
        lines = (line.rstrip(" \r") for line in text.split("\n"))
        return [line for line in lines if line and not line.startswith("#")]
    return []
