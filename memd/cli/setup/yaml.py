"""An entry below a key of a plain YAML mapping, put in and taken out line by line.

Only block style is edited, the way the client itself writes its file; what is written otherwise is
refused. ``remove`` is the inverse of ``insert``.
"""

import json
import re
from typing import Any

_BLANK = re.compile(r"\s*(#.*)?")
_TOP = re.compile(r"""(["']?[\w.-]+["']?)[ ]*:([ ].*)?""")


class NotYamlError(ValueError):
    """A text is no YAML of the plain shape that is edited."""


def find(text: str, group: str, name: str) -> dict[str, str] | None:
    """Return the values of an entry as they are written, ``None`` if there is none."""
    lines = text.splitlines()
    span = _span(lines, group, name)
    if span is None:
        return None
    pairs = (line.strip().partition(":") for line in lines[span[0] + 1 : span[1]])
    return {key: value.strip() for key, _, value in pairs}


def insert(text: str, group: str, name: str, entry: dict[str, Any]) -> str:
    """Return a text with an entry right below a key, which is made at the end if it is missing."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    at = _group(lines, group)
    inner = "  " if at is None else _indents(lines, at)
    made = [f"{inner}{name}:"]
    made += [f"{inner * 2}{key}: {json.dumps(value)}" for key, value in entry.items()]
    if at is not None:
        lines[at + 1 : at + 1] = [line + newline for line in made]
        return "".join(lines)
    start = newline if lines and not lines[-1].endswith("\n") else ""
    end = "" if start else newline
    return text + start + newline.join([f"{group}:", *made]) + end


def remove(text: str, group: str, name: str) -> str:
    """Return a text without an entry, and without its key if nothing else is below that."""
    lines = text.splitlines(keepends=True)
    at = _group(lines, group)
    span = _span(lines, group, name)
    if at is None or span is None:
        return text
    start, end = span
    below = lines[at + 1 : start] + lines[end:]
    if not below or not below[0].startswith((" ", "\t")):
        start = at
    left = lines[:start] + lines[end:]
    if left and end == len(lines) and not lines[-1].endswith("\n"):
        left[-1] = left[-1].rstrip("\r\n")
    return "".join(left)


def _group(lines: list[str], group: str) -> int | None:
    """Return the line of a key of the top level. Raises NotYamlError for another style."""
    result = top = None
    for number, line in enumerate(lines):
        bare = line.rstrip("\r\n")
        if _BLANK.fullmatch(bare) or (bare == "---" and not number):
            continue
        if top and bare.startswith((" ", "- ")):
            continue
        top = _TOP.fullmatch(bare)
        if top is None:
            raise NotYamlError(_other(number))
        if top[1].strip("\"'") == group:
            if result is not None or not _BLANK.fullmatch(top[2] or ""):
                raise NotYamlError(_other(number))
            result = number
    return result


def _other(number: int) -> str:
    return f"line {number + 1} is YAML of a kind that is not edited"


def _indents(lines: list[str], at: int) -> str:
    """Return how far the entries below a line stand in."""
    below = next((line for line in lines[at + 1 :] if not _BLANK.fullmatch(line.rstrip())), "")
    space = below[: len(below) - len(below.lstrip(" "))]
    if not space or below.lstrip(" ").startswith("- "):
        raise NotYamlError(_other(at))
    return space


def _span(lines: list[str], group: str, name: str) -> tuple[int, int] | None:
    """Return the lines of an entry, first and behind the last."""
    at = _group(lines, group)
    if at is None:
        return None
    inner = _indents(lines, at) if len(lines) > at + 1 else ""
    for start in range(at + 1, len(lines)):
        if re.fullmatch(rf"{inner}[\"']?{name}[\"']?:\s*", lines[start]):
            end = start + 1
            while end < len(lines) and lines[end].startswith(inner + " "):
                end += 1
            return start, end
        if lines[start][:1] not in {" ", "#", "\r", "\n"}:
            break
    return None
