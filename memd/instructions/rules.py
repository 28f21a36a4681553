"""Read the head of an instruction file, and the condition under which a rule loads. Pure.

A head is read as YAML, and if that fails, once more with the values in quotes, since ``**/*.ts`` is
not YAML. No unsafe YAML is read.

Rules of this file
- If a condition cannot be read, the rule always loads, and a problem says so
  (tests/net/test_instruction_files.py).
- A glob without a slash is a name in any folder. What lies below a folder that fits, fits too.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from memd.base import globs, limits
from memd.base.errors import Invalid
from memd.base.globs import Matcher
from memd.base.names import printable
from memd.store import memory

_OPENING = r"\ufeff?---\s*\n"
_FENCE = "---"
_LINE = r"(?m)^([ \t]*(?:[\w-]+[ \t]*:|-)[ \t]+)(?![\"'])(\S(?:.*\S)?)[ \t]*$"
_OTHER_SCALAR = r"(?i)~|null|true|false|[-+]?[0-9][0-9_.]*(?:e[-+]?[0-9]+)?"
_SHOWN_CHARACTERS = 60
_HEAD_WITHOUT_END = "its head has no end: it always loads"
_HEAD_UNREADABLE = "its head cannot be read: it always loads"
_NO_GLOBS = "its paths are empty or no text: it always loads"
_NO_USABLE_GLOB = "none of its globs counts: it always loads"


class RuleHead(Struct, frozen=True):
    """The head of a rule, and the ``body`` below it; ``problems`` are without their subject.

    ``globs`` is the condition as written and ``matchers`` the same as tests of a path; both are
    empty if the rule always loads.
    """

    body: str
    globs: tuple[str, ...] = ()
    matchers: tuple[Matcher, ...] = ()
    problems: tuple[str, ...] = ()


def head(text: str) -> RuleHead:
    """Return the head of a rule."""
    raw, body = split(text)
    if not raw:
        has_no_end = re.match(_OPENING, text) and _FENCE not in text[len(_FENCE) + 1 :]
        return RuleHead(body, problems=(_HEAD_WITHOUT_END,) if has_no_end else ())
    values = _fields(raw)
    if values is None:
        return RuleHead(body, problems=(_HEAD_UNREADABLE,))
    written = tuple(dict.fromkeys(_texts(values.get("paths"))))
    if not written:
        return RuleHead(body, problems=(_NO_GLOBS,) if "paths" in values else ())
    matchers: list[Matcher] = []
    problems: list[str] = []
    for glob in written:
        try:
            matchers.append(_matcher(glob))
        except Invalid as error:
            shown = printable(glob, _SHOWN_CHARACTERS)
            problems.append(f"its glob {shown} does not count: {error.facts['why']}")
    if not matchers:
        return RuleHead(body, problems=(*problems, _NO_USABLE_GLOB))
    return RuleHead(body, written, tuple(matchers), tuple(problems))


def split(text: str) -> tuple[str, str]:
    """Return the head of a text and the text below it.

    The head ends with the next ``---``, wherever that stands.
    """
    opening = re.match(_OPENING, text)
    end = text.find(_FENCE, opening.end()) if opening else -1
    if opening is None or end < 0:
        return "", text
    return text[opening.end() : end], text[end + len(_FENCE) :].lstrip()


def _fields(raw: str) -> Mapping[str, Any] | None:
    """Return the values of a head by key, ``None`` if it cannot be read."""
    if len(raw) > limits.FRONTMATTER_BYTES:
        return None
    raw = raw.replace("\r\n", "\n")
    values, _ = memory.mapping(raw)
    return memory.mapping(re.sub(_LINE, _quote_value, raw))[0] if values is None else values


def _quote_value(line: re.Match[str]) -> str:
    """Return a line of a head with its value in quotes."""
    value = line[2].replace("\\", "\\\\").replace('"', '\\"')
    return f'{line[1]}"{value}"'


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a value, or of each item of a list.

    They are separated by commas outside of braces.
    """
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str) and not re.fullmatch(_OTHER_SCALAR, value):
        depth, text = 0, ""
        for character in f"{value},":
            depth = max(depth + (character == "{") - (character == "}"), 0)
            if character == "," and not depth:
                if text.strip():
                    yield text.strip()
                text = ""
            else:
                text += character
        if text.strip(" ,"):  # a brace without its end
            yield text.strip().removesuffix(",")


@lru_cache(maxsize=512)  # as many as a project may have
def _matcher(glob: str) -> globs.Matcher:
    """Return a test for paths below the rule's folder. Raises Invalid."""
    path = glob.strip("/")
    name = path if "/" in glob.rstrip("/") else f"**/{path}"
    return globs.compiled(f"{name}{{,/**}}", ignore_case=True)
