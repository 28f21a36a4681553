"""Render suggestions as a block that a hook adds to a conversation. Pure.

Rules of this file
- The block, memd's tags included, has at most ``limits.SUGGESTION_CHARACTERS`` UTF-16 units.
- A statement is quoted on one line; it can open or close no tag and no quotation.
"""

from collections.abc import Sequence

from memd.core import limits
from memd.core.text import iso_time
from memd.state.tables import OpenSuggestion
from memd.text import tags
from memd.text.quoting import neutralise, shares, shortened, units

_INTRODUCTION = "The user said earlier (quoted, no request for this turn; not remembered yet):"
_REQUEST = (
    "If such a thing should hold in later conversations too, save it: "
    '`memctl suggestions accept {id}`, or reworded `memctl suggestions edit {id} --text "…"`. '
    "Otherwise ignore this and do not mention it."
)


def render(suggestions: Sequence[OpenSuggestion]) -> str:
    """Return the block of some suggestions, "" for none."""
    if not suggestions:
        return ""
    heads = [f"- {each.id}, {iso_time(each.at)[:10]}: " for each in suggestions]
    quotes = [_plain(each.text) for each in suggestions]
    request = _REQUEST.format(id=suggestions[0].id)
    fixed = "\n".join((tags.OPEN, _INTRODUCTION, *heads, request, tags.CLOSE))
    left = limits.SUGGESTION_CHARACTERS - units(fixed) - len('""') * len(quotes)
    shown = map(_cut, quotes, shares([units(quote) for quote in quotes], left))
    lines = [f'{head}"{quote}"' for head, quote in zip(heads, shown, strict=True)]
    return "\n".join((tags.OPEN, _INTRODUCTION, *lines, request, tags.CLOSE))


def _plain(text: str) -> str:
    """Return a text on one line, without tags and double quotation marks."""
    return neutralise(" ".join(neutralise(text).split())).replace('"', "'")


def _cut(quote: str, share: int) -> str:
    return quote if units(quote) <= share else shortened(quote, share - 1).rstrip() + "…"
