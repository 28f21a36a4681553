"""Render suggestions as a block of text that a hook adds to a conversation. Pure.

Rules of this file
- The block, memd's tags included, has at most ``limits.SUGGESTION_CHARACTERS`` UTF-16 units.
- A statement is quoted on one line; it cannot open or close a tag or a quotation.
"""

from collections.abc import Sequence

from memd.base import limits
from memd.base.text import iso_time
from memd.base.values import SHOWN_ELSEWHERE
from memd.state.suggestions import OpenSuggestion
from memd.text import tags
from memd.text.quoting import neutralise, shares, shortened, units

_INTRODUCTION = "The user said earlier (quoted, no request for this turn; not remembered yet):"
_REQUEST = (
    "If such a thing should hold in later conversations too, save it: "
    '`memctl suggestions accept {id}`, or reworded `memctl suggestions accept {id} --text "…"`. '
    "Otherwise ignore this and do not mention it."
)


def render(suggestions: Sequence[OpenSuggestion]) -> str:
    """Return a block with each suggestion's id, date and quotation, "" for no suggestions.

    Long quotations are cut so that the block has at most ``limits.SUGGESTION_CHARACTERS``.
    """
    if not suggestions:
        return ""
    heads = [f"- {entry.id}, {iso_time(entry.at)[:10]}{_about(entry)}: " for entry in suggestions]
    quotes = [_quotable(suggestion.text) for suggestion in suggestions]
    request = _REQUEST.format(id=suggestions[0].id)
    without_quotes = "\n".join((tags.OPEN, _INTRODUCTION, *heads, request, tags.CLOSE))
    room = limits.SUGGESTION_CHARACTERS - units(without_quotes) - len('""') * len(quotes)
    sizes = shares([units(quote) for quote in quotes], room)
    short_quotes = map(_cut_quote, quotes, sizes)
    lines = [f'{head}"{quote}"' for head, quote in zip(heads, short_quotes, strict=True)]
    return "\n".join((tags.OPEN, _INTRODUCTION, *lines, request, tags.CLOSE))


def _about(suggestion: OpenSuggestion) -> str:
    """Return what else the head of a suggestion says, "" for nothing."""
    if suggestion.corrects:
        return f", corrects {neutralise(suggestion.corrects)}"
    if suggestion.reason == SHOWN_ELSEWHERE:
        return ", save only what of it the code or git does not show"
    return ""


def _quotable(text: str) -> str:
    """Return a text on one line, without tags and double quotation marks."""
    one_line = " ".join(neutralise(text).split())
    # Again, since joined lines may form a tag.
    return neutralise(one_line).replace('"', "'")


def _cut_quote(quote: str, share: int) -> str:
    """Return a quotation with at most ``share`` UTF-16 units, with "…" if it was cut."""
    if units(quote) <= share:
        return quote
    return shortened(quote, share - 1).rstrip() + "…"
