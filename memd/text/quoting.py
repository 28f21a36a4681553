"""Foreign text inside a text of ours: it cannot pose as a tag, and hides nothing. Pure."""

import re
from collections.abc import Sequence

from memd.text.invisible import CONTROLS, removed

# A tag of ours, or of a client's insertions, however it is dressed up.
TAG = re.compile(
    r"[<\uff1c\ufe64\u2039](?=[\W_]{0,8}"
    r"(?:memd|system[\W_]|command-|local-command|user-prompt|task-notification|antml))",
    re.IGNORECASE,
)
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile(f"[{CONTROLS}]")


def neutralise(content: str) -> str:
    """Return a text that cannot pose as a tag and hides no character that nobody sees."""
    return TAG.sub("&lt;", _CONTROL.sub("", removed(_LINE_ENDS.sub("\n", content))))


def units(content: str) -> int:
    """Return how long a text is as clients count, in UTF-16 units."""
    return len(content.encode("utf-16-le", errors="replace")) // 2


def shortened(content: str, limit: int) -> str:
    """Return the start of a text that has at most so many UTF-16 units."""
    return content.encode("utf-16-le", errors="replace")[: 2 * limit].decode(
        "utf-16-le", errors="ignore"
    )


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """Divide the room fairly: who needs less than its share leaves the rest to the others."""
    result = [0] * len(sizes)
    left = len(sizes)
    for at in sorted(range(len(sizes)), key=lambda index: sizes[index]):
        result[at] = min(sizes[at], room // left)
        room -= result[at]
        left -= 1
    return result
