"""Put foreign text into memd's own texts so that it cannot pose as a tag or hide anything. Pure."""

import re
from collections.abc import Sequence

from memd.text.invisible import CONTROLS, DIRECTIONS, HIDDEN, removed

# A tag of ours, or of a client's insertions, however it is dressed up.
_TAG = (
    r"(?i)[<\uff1c\ufe64\u2039](?=[\W_]{0,8}+"
    r"(?:memd|system[\W_]|command-|local-command|user-prompt|task-notification|antml))"
)
_LINE_ENDS = "\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
_CONTROL = f"[{CONTROLS}]"
_OPENING = f"{_TAG}|<(?=!--)"
_UNSHOWN = f"\x1b\\[[\\d;?]*[A-Za-z]|[{CONTROLS}{DIRECTIONS}{HIDDEN}]|`{{5,}}"
_OMITTED = r"…(?:\s*…)+"
_LONG_WORD = r"(?<=[^!-~])[!-~]{12,}$"


def neutralise(content: str) -> str:
    """Return a text that cannot pose as a tag and has no invisible characters."""
    is_plain = content.isascii() and content.replace("\n", "").isprintable()
    if is_plain and "<" not in content:
        return content  # most texts: they have nothing to replace
    visible = re.sub(_CONTROL, "", removed(re.sub(_LINE_ENDS, "\n", content)))
    return re.sub(_TAG, "&lt;", visible)


def units(content: str) -> int:
    """Return the length of a text in UTF-16 units, as clients count."""
    if content.isascii():
        return len(content)
    return len(content.encode("utf-16-le", errors="replace")) // 2


def shortened(content: str, limit: int) -> str:
    """Return the longest beginning of a text with at most ``limit`` UTF-16 units."""
    encoded = content.encode("utf-16-le", errors="replace")
    return encoded[: 2 * limit].decode("utf-16-le", errors="ignore")  # two bytes a unit


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """Divide the room among parts of these sizes fairly, and return what each gets.

    A part that needs less than its share leaves the rest to the others.
    """
    result = [0] * len(sizes)
    parts_left = len(sizes)
    for index in sorted(range(len(sizes)), key=lambda n: sizes[n]):  # the smallest first
        result[index] = min(sizes[index], room // parts_left)
        room -= result[index]
        parts_left -= 1
    return result


def beginning(text: str, most: int) -> str:
    """Return the start of a text without a cut long word, which may be half a credential."""
    start = text[:most]
    ends_with_word = len(text) <= most or text[most].isspace()
    return start if ends_with_word else re.sub(_LONG_WORD, "", start)


def code_span(text: str, most: int, words: int | None = None) -> str:
    """Return the start of a text as inline code of Markdown, "" if nothing of it is visible.

    ``…`` replaces what was cut and what is invisible, and breaks what would be a tag or a comment.
    """
    shown = re.sub(_UNSHOWN, "…", re.sub(_OPENING, r"\g<0>…", text))
    folded = re.sub(_OMITTED, "…", " ".join(shown.split())).strip(" …")
    short = " ".join(folded.split(" ")[:words])
    if len(short) > most:
        short = beginning(short, most - 1)
    if len(short) < len(folded):
        short = f"{short.rstrip(' …')}…"
    # The mark is longer than any row of backticks in the text.
    longest_row = max(map(len, re.findall("`+", short)), default=0)
    mark = "`" * (longest_row + 1)
    pad = " " if short.startswith("`") or short.endswith("`") else ""
    return f"{mark}{pad}{short}{pad}{mark}" if short.strip("…") else ""
