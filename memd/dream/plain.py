"""Facts of any age and shape, read without ever failing, and their texts made harmless. Pure.

Rules of this file
- A text from a memory or a model stands on one line between two backticks. Markdown takes nothing
  in there for more than text: no heading, list, fence, link, image or HTML.
- Characters that show nothing, end a line or turn the direction of text come out as spaces or not
  at all, and so does half a character that no encoding can carry.
- What has not the type that was asked for is as if it were not there.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from memd.core.text import one_line
from memd.text.invisible import removed

TEXT = 300  # characters of one text
ROWS = 100  # of one list; who wants more reads the JSON
_TICK = "'"  # stands for a backtick, which would end the span
_ID = re.compile(r"[a-z][0-9]{1,18}")


def span(value: object, limit: int = TEXT) -> str:
    """Return a text as a code span of at most so many characters, "" where there is none."""
    if not isinstance(value, str):
        return ""
    line = one_line(value[: 8 * limit], 2 * limit).replace("`", _TICK)
    seen = "".join(char for char in removed(line) if char.isprintable())
    shown = one_line(seen, limit)
    return f"`{shown}`" if shown else ""


def identity(value: object) -> str:
    """Return the id of a change, a proposal or a job if that is what it is, else ""."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def number(value: object) -> float:
    """Return a number that is not negative, 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    try:
        return value if math.isfinite(value) and value > 0 else 0
    except OverflowError:
        return 0  # a whole number beyond all floats


def texts(value: object) -> list[str]:
    """Return the texts of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def rows(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def few(lines: list[str]) -> Iterator[str]:
    """Yield the first lines as a list of Markdown, and how many there are beyond them."""
    yield from (f"- {line}" for line in lines[:ROWS])
    if len(lines) > ROWS:
        yield f"- and {len(lines) - ROWS} more"
