"""Characters that show nothing, through which text reaches a model and no reader. Pure.

Joiners and variation selectors have honest uses (emoji, Persian, Hindi) and pass. Tags, direction
overrides, zero-width spaces and controls have none in notes.
"""

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def find(text: str) -> str:
    """Return the first character that shows nothing, as ``U+XXXX``, or ""."""
    found = _UNSEEN.search(text)
    return f"U+{ord(found.group()):04X}" if found else ""


def shown(text: str) -> str:
    """Return a text with such characters written out as ``<U+XXXX>``."""
    return _UNSEEN.sub(lambda found: f"<U+{ord(found.group()):04X}>", text)
