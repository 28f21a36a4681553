"""Tell whether the words around a relative date make its day uncertain. Pure.

Rules of this file
- A phrase that counts from another one (``two weeks from Monday``, ``the day after tomorrow``),
  that is inexact (``about a week ago``) or holds again and again gets no date.
- A weekday or day of a month that is past (``since Friday``) gets no date that is ahead.
- Code, addresses, paths, file names and quotations stay as they are.
- In doubt there is no date: a wrong date does more harm than a missing one.
"""

import re
from bisect import bisect_right
from functools import cached_property

from memd.text.habits import REPEATED, RESOLVED

_WINDOW = 160  # characters around a phrase, of which so many are looked at without their dates:
_BEFORE, _AFTER = 90, 60
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
_UNIT = (
    r"(?:days?|weekdays?|nights?|mornings?|evenings?|weeks?|weekends?|fortnights?|sprints?|months?"
    rf"|quarters?|years?|hours?|minutes?|{_WEEKDAY}s?)"
)
_COUNTED_BEFORE = re.compile(
    # "two weeks from", "the day after the", "two weeks and"
    rf"\b{_UNIT}\s+(?:from|before|after|following|preceding|past|prior to|ahead of|since)"
    r"(?:\s+the)?\s+$"
    r"|\b(?:days?|weeks?|months?|years?|\d+|an?|one|two|three|four|five|six|several)"
    r"\s+(?:and|or|to)\s+$"
    # "about", "1.", "2-" and the like: the number is inexact or goes on
    r"|\b(?:about|around|approximately|roughly|almost|nearly|over|under|more than|less than"
    r"|at least|at most|up to|within|some|circa|only|maybe|perhaps|not)\s+$|[~<>\u2248]\s?$"
    r"|\d[.,\u2013]$"
    # what takes so long, or has so long
    r"|\b(?:expires?|expired|expiring|times? out|rotated?s?|valid|deleted|purged|removed|done"
    r"|finished|completed|built|written|once|twice|times?|ready|delivered|shipped|respond\w*|repl(?:y|ies))"
    r"(?:\s+\w+)?\s+$",
    re.IGNORECASE,
)
_COUNTED_AFTER = re.compile(
    r"\s+(?:from(?!\s+now)|before|after|prior|later|earlier|of|since|or (?:so|two|three|more|less)"
    r"|(?:and )?a half)\b",
    re.IGNORECASE,
)
# "the last month" may be the thirty days before, "the next year" the twelve months ahead.
_SPAN_BEFORE = re.compile(r"\b(?:the|our|my|their|these|every|each|per)\s+$", re.IGNORECASE)
_SPAN_AFTER = re.compile(r"\s+(?:of|before|after|but|or (?:so|two))\b", re.IGNORECASE)
_DAY_BEFORE = re.compile(
    rf"\b{_UNIT}\s+(?:from|before|after|following|preceding|past|prior to|ahead of)(?:\s+the)?\s+$"
    r"|\b(?:an?|any|some|one|same|that|first|second|third|fourth|fifth|\d(?:st|nd|rd|th)|following"
    r"|previous|preceding|earlier|later|other|another|only|alternate|very)\s+$"
    r"|\b(?:Black|Good|Cyber|Easter|Patch|Ash|Holy|Palm|Fat|Shrove)\s+$"
    r"|\b(?:next|last|this|following|previous) week,?\s+(?:on\s+)?$",
    re.IGNORECASE,
)
_DAY_AFTER = re.compile(
    r"\s+(?:week|fortnight)\b|\s+(?:of|after next|before last|in a week|in a fortnight)\b"
    r"|,?\s+(?:of |in )?(?:next|last|this|the following|the previous) (?:week|month|year)\b"
    rf"|\s+in\s+(?:the\s+)?(?:month\b|{_MONTH}(?!\w))|,?\s+\(?(?:the\s+)?(?:\d+(?:st|nd|rd|th)\b"
    rf"|\d+\.?\s+(?:of\s+)?{_MONTH}(?!\w)|{_MONTH}\s+\d|\d+[/.]\d|\d{{4}}-)|\s+and\s+\w+\s+weeks?\b"
    "|以来",
    re.IGNORECASE,
)
_EVENT_AFTER = re.compile(r"\s+(?:after|before|following|preceding)\b", re.IGNORECASE)
_THE_BEFORE = re.compile(r"\bthe\s+$", re.IGNORECASE)
_PAST_BEFORE = re.compile(
    r"\bsince\s+(?:the\s+)?$|\w(?<!\bneed)(?:ed|oke|oze)\s+(?:it\s+)?on\s+(?:the\s+)?$"
    r"|\b(?:was|were|did|had|went|came|froze|broke|began|happened|met|told|said|sent|left)\b"
    r"(?:(?!\b(?:will|shall|going|plan\w*|scheduled|due|to|is|are|by|until|after)\b)[^.!?;\n]){0,60}$"
    r"|(?<!\bbe )(?<!\bget )(?<!\bgets )\b(?:released|merged|deployed|shipped|crashed|failed|landed"
    r"|fixed|started|finished|founded|launched|removed|migrated|switched)"
    r"(?:(?!\b(?:will|shall|going|plan\w*|scheduled|due|to|is|are|by|until|after|for)\b)"
    r"[^.!?;\n]){0,40}$",
    re.IGNORECASE,
)
_PAST_AFTER_ZH = re.compile(r"[^\u3002\uff01\uff1f\n]{0,12}(?:了|过)")
_PLANNED = re.compile(
    r"\b(?:scheduled|planned|postponed|moved|delayed|expected|supposed|agreed|booked|pushed)"
    r"\s+(?:it\s+)?on\s+$",
    re.IGNORECASE,
)
# What is copied as it is. A quotation ends on its line.
_VERBATIM = re.compile(
    r"^[ \t]{0,3}(?P<fence>```+|~~~+)[\s\S]*?(?:^[ \t]{0,3}(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|^[ \t]{0,3}>[^\n]*|^(?:\t| {4,})(?![-*+\d])[^\n]*"
    r"|(?P<code>(?<!`)`+(?!`))[^\n]{1,300}?(?<!`)(?P=code)(?!`)"
    r"|(?<![\w+.-])[a-z][a-z\d+.-]*://[^\s)>\]]+|\bwww\.\S+|(?<![\w.+-])[\w.+-]+@[\w.-]+"
    r"|(?<![^\s(\[\"'`])(?:\w:)?[\w.~$@-]*[/\\][^\s()]+|(?<![\w-])[\w-]+(?:\.[A-Za-z]\w*)+|\]\([^)\n]*\)"
    r"|\"[^\"\n]{1,300}\"|(?<!\w)'[^'\n]{2,200}?'(?!\w)"
    "|\u201c[^\u201d\n]{1,300}\u201d|\u201e[^\u201c\u201d\n]{1,300}[\u201c\u201d]"
    "|\u2018[^\u2019\n]{1,300}\u2019(?!\\w)|\u00ab[^\u00bb\n]{1,300}\u00bb"
    "|\u300c[^\u300d\n]{1,300}\u300d|\u300e[^\u300f\n]{1,300}\u300f",
    re.MULTILINE,
)


class DateContexts:
    """Tells of which phrases of a text the date is uncertain; the text is searched once."""

    def __init__(self, text: str) -> None:
        self._text = text

    def is_verbatim(self, start: int) -> bool:
        """Return whether what begins at ``start`` is code, an address or a quotation."""
        number = bisect_right(self._spans, (start, len(self._text))) - 1
        return number >= 0 and start < self._spans[number][1]

    def distance_is_uncertain(self, start: int, end: int) -> bool:
        """Return whether "in two weeks" or "tomorrow" counts from another day, or is inexact."""
        before, after = self._around(start, end)
        return bool(_COUNTED_BEFORE.search(before) or _COUNTED_AFTER.match(after))

    def named_day_is_uncertain(self, start: int, end: int) -> bool:
        """Return whether "tomorrow" is a part of "a week from tomorrow" and the like."""
        before, after = self._around(start, end)
        return bool(_DAY_BEFORE.search(before) or re.match(r"\s+(?:week|fortnight)\b", after))

    def period_is_uncertain(self, start: int, end: int) -> bool:
        """Return whether "last month" is a part of a longer phrase, or a span up to today."""
        before, after = self._around(start, end)
        is_counted = _DAY_BEFORE.search(before) or _SPAN_AFTER.match(after)
        return bool(is_counted or _SPAN_BEFORE.search(before))

    def weekday_is_uncertain(self, start: int, end: int, *, bare: bool) -> bool:
        """Return whether a weekday names an uncertain day; ``bare`` is one without "next"."""
        before, after = self._around(start, end)
        if _DAY_BEFORE.search(before) or _DAY_AFTER.match(after):
            return True
        if _EVENT_AFTER.match(after) and _THE_BEFORE.search(before):
            return True
        if not self._text[start:end].isascii():
            return bool(bare and _PAST_AFTER_ZH.match(after))
        return bare and self.is_past(start, end)

    def is_past(self, start: int, end: int) -> bool:
        """Return whether the words before a phrase speak of the past."""
        before, _ = self._around(start, end)
        return bool(_PAST_BEFORE.search(before) and not _PLANNED.search(before))

    def is_repeated(self, start: int, end: int) -> bool:
        """Return whether a word such as "always" or "every" stands near a phrase."""
        before, after = self._around(start, end)
        sentence = re.split(r"[.!?]\s|\n", before)[-1] + re.split(r"[.!?]\s|\n", after)[0]
        return REPEATED.search(sentence) is not None

    def _around(self, start: int, end: int) -> tuple[str, str]:
        """Return the text before and after a phrase, without the dates that stand there."""
        before = self._text[max(0, start - _WINDOW) : start]
        after = self._text[end : end + _WINDOW]
        return RESOLVED.sub("", before)[-_BEFORE:], RESOLVED.sub("", after)[:_AFTER]

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """The parts of the text that are copied as they are, in order."""
        return [match.span() for match in _VERBATIM.finditer(self._text)]
