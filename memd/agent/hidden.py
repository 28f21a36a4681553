"""Characters that show nothing, through which text reaches a model and no reader. Pure.

Joiners and variation selectors have honest uses (emoji, Persian, Hindi) and pass. Tags, direction
overrides, zero-width spaces and controls have none in notes.
"""

import re

from memd.core.courtesy import give_way
from memd.core.text import BIDI

_AT_ONCE = 64 * 1024  # characters; a search keeps the interpreter until its end
_UNSEEN = re.compile(
    f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b{BIDI}\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def find(text: str) -> str:
    """Return the first character that shows nothing, as ``U+XXXX``, or ""."""
    found = _UNSEEN.search(text)
    return f"U+{ord(found.group()):04X}" if found else ""


def shown(text: str) -> str:
    """Return a text with such characters written out as ``<U+XXXX>``."""
    parts = []
    for start in range(0, len(text), _AT_ONCE):
        give_way()
        parts.append(_UNSEEN.sub(_written_out, text[start : start + _AT_ONCE]))
    return "".join(parts)


def _written_out(found: re.Match[str]) -> str:
    return f"<U+{ord(found.group()):04X}>"
