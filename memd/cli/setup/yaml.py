"""Insert an entry below a key of a plain YAML mapping and remove it again, line by line.

Only block style is edited, the way the client itself writes its file; other styles raise
NotYamlError. ``remove`` is the inverse of ``insert``.
"""

import json
import re
from typing import Any

_BLANK_OR_COMMENT = re.compile(r"\s*(#.*)?")
# A key of the top level, and what stands behind its colon.
_TOP_KEY = re.compile(r"""(["']?[\w.-]+["']?)[ ]*:([ ].*)?""")


class NotYamlError(ValueError):
    """A text is not YAML of the plain block style that can be edited."""


def find(text: str, group: str, name: str) -> dict[str, str] | None:
    """Return the values of an entry as written, by key; ``None`` if there is no entry."""
    lines = text.splitlines()
    span = _find_entry(lines, group, name)
    if span is None:
        return None
    start, end = span
    pairs = (line.strip().partition(":") for line in lines[start + 1 : end])
    return {key: value.strip() for key, _, value in pairs}


def insert(text: str, group: str, name: str, entry: dict[str, Any]) -> str:
    """Return the text with an entry right below the key ``group``.

    The key is added at the end if it is missing.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    group_line = _find_key(lines, group)
    indent = "  " if group_line is None else _entry_indent(lines, group_line)
    entry_lines = [f"{indent}{name}:"]
    entry_lines += [f"{indent * 2}{key}: {json.dumps(value)}" for key, value in entry.items()]
    if group_line is not None:
        lines[group_line + 1 : group_line + 1] = [line + newline for line in entry_lines]
        return "".join(lines)
    start = newline if lines and not lines[-1].endswith("\n") else ""
    end = "" if start else newline
    return text + start + newline.join([f"{group}:", *entry_lines]) + end


def remove(text: str, group: str, name: str) -> str:
    """Return the text without an entry, and without its key if nothing else is below that."""
    lines = text.splitlines(keepends=True)
    group_line = _find_key(lines, group)
    span = _find_entry(lines, group, name)
    if group_line is None or span is None:
        return text
    start, end = span
    below = lines[group_line + 1 : start] + lines[end:]
    if not below or not below[0].startswith((" ", "\t")):
        start = group_line  # nothing else is below the key
    others = lines[:start] + lines[end:]
    if others and end == len(lines) and not lines[-1].endswith("\n"):
        others[-1] = others[-1].rstrip("\r\n")
    return "".join(others)


def _find_key(lines: list[str], group: str) -> int | None:
    """Return the line number of a top-level key, ``None`` if missing.

    Raise NotYamlError for a style that cannot be edited.
    """
    found_line = top_key = None
    for number, line in enumerate(lines):
        bare = line.rstrip("\r\n")
        if _BLANK_OR_COMMENT.fullmatch(bare) or (bare == "---" and not number):
            continue
        # Lines below a top-level key belong to it; their content does not matter here.
        if top_key and bare.startswith((" ", "- ")):
            continue
        top_key = _TOP_KEY.fullmatch(bare)
        if top_key is None:
            raise NotYamlError(_refusal(number))
        if top_key[1].strip("\"'") == group:
            has_value_on_line = not _BLANK_OR_COMMENT.fullmatch(top_key[2] or "")
            if found_line is not None or has_value_on_line:
                raise NotYamlError(_refusal(number))
            found_line = number
    return found_line


def _refusal(number: int) -> str:
    """Return the message that refuses the line with this index."""
    return f"line {number + 1} is YAML of a kind that is not edited"


def _entry_indent(lines: list[str], group_line: int) -> str:
    """Return the indentation of the entries below a key. Raises NotYamlError for a list."""
    following = lines[group_line + 1 :]
    entries = (line for line in following if not _BLANK_OR_COMMENT.fullmatch(line.rstrip()))
    first_entry = next(entries, "")
    bare_entry = first_entry.lstrip(" ")
    indentation = first_entry[: len(first_entry) - len(bare_entry)]
    if not indentation or bare_entry.startswith("- "):
        raise NotYamlError(_refusal(group_line))
    return indentation


def _find_entry(lines: list[str], group: str, name: str) -> tuple[int, int] | None:
    """Return the line range of an entry, end exclusive; ``None`` if there is no entry."""
    group_line = _find_key(lines, group)
    if group_line is None:
        return None
    indent = _entry_indent(lines, group_line) if len(lines) > group_line + 1 else ""
    for start in range(group_line + 1, len(lines)):
        if re.fullmatch(rf"{indent}[\"']?{name}[\"']?:\s*", lines[start]):
            end = start + 1
            while end < len(lines) and lines[end].startswith(indent + " "):
                end += 1
            return start, end
        # A line without indentation ends the entries of the group.
        if lines[start][:1] not in {" ", "#", "\r", "\n"}:
            break
    return None
