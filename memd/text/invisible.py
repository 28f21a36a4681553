"""Find characters that are invisible or turn the direction of text: their one table. Pure.

Text that is hidden in such characters reaches a model but no reader, a credential with one inside
is still a credential, and a name with a mark of direction looks like another name.

The table holds what Unicode says to leave out of display (its property
``Default_Ignorable_Code_Point``), all format characters but those that are drawn around the digits
or letters behind them, and the controls. The constants are the insides of character classes.
"""

import re
from functools import cache
from typing import Any

from memd.base import regex

# Marks, embeddings, overrides and isolates (the property Bidi_Control), one by one.
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# Honest in emoji, Persian and the scripts of India: joiners and variation selectors.
JOINERS = "\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Everything else that shows nothing: soft hyphens, fillers, zero-width spaces, tags, annotations.
HIDDEN = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
# C0 without tab and the two that end lines, DEL, C1.
CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
# What some programs take for the end of a line, beside CR, LF and controls.
SEPARATORS = "\u2028\u2029"

_DIRECTIONS = f"[{DIRECTIONS}]"
_NOT_DRAWN = f"[{DIRECTIONS}{JOINERS}{HIDDEN}]"
_NOT_HONEST = f"[{CONTROLS}{DIRECTIONS}{HIDDEN}]"


def without_directions(text: str) -> str:
    """Return a text without the characters that turn its direction."""
    # Twelve searches for one character each take less time than one for any of them.
    has_any = not text.isascii() and any(sign in text for sign in DIRECTIONS)
    return re.sub(_DIRECTIONS, "", text) if has_any else text


def visible(text: str) -> str:
    """Return a text without controls and invisible characters; joiners and ends of lines stay."""
    return text if _not_honest().search(text) is None else re.sub(_NOT_HONEST, "", text)


@cache
def _not_honest() -> Any:
    """Return the pattern of a character that no honest note needs, for a search in long texts."""
    return regex.own(_NOT_HONEST)


def removed(text: str) -> str:
    """Return a text without all invisible characters, joiners included; controls stay."""
    return text if text.isascii() else re.sub(_NOT_DRAWN, "", text)


def find(text: str) -> str:
    """Return the first character that no honest note needs as ``U+XXXX``, "" if there is none."""
    match = re.search(_NOT_HONEST, text)
    return f"U+{ord(match.group()):04X}" if match else ""


def spelled_out(text: str) -> str:
    """Return a text with each hidden character spelled out as ``<U+XXXX>``."""
    return re.sub(_NOT_HONEST, lambda match: f"<U+{ord(match.group()):04X}>", text)
