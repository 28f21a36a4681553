"""Tell whether a weekday in a sentence names one day or a habit. Pure.

Rules of this file
- ``Deploys go out on Tuesday`` is true every week: the weekday is no date.
- Words for a single event (``after Thursday``, ``we're freezing``, ``will``, ``deadline``) make it
  one day, and so does a sentence of nothing but the weekday.
- ``always``, ``usually`` and the like make it a habit, except as a bound (``until Friday``).
- In doubt it is a habit and gets no date: a wrong date does more harm than a missing one.
"""

import re
from bisect import bisect_right
from functools import cached_property

_END = re.compile(r"[.!?]\s+|[\u3002\uff01\uff1f]|\n\s*\n|\n\s*(?=[-*+#|>])")
# The date that stands behind a resolved phrase says nothing about the sentence.
RESOLVED = re.compile(
    r"\s?\((?:week of )?\d{4}-(?:Q\d|\d\d)(?:-\d\d)?(?: to \d{4}-\d\d)?\)|\s?\(\d{4}-Q\d\)"
)
_BOUND_BEFORE = re.compile(
    r"(?:\b(?:after|before|by|until|till|from|since|due|effective|as of"
    r"|(?:start|begin|end)(?:s|ing)?|through)(?:\s+on)?(?:\s+the)?\s+|从|自|(?<![一二三四五六日天])[至到])$",
    re.IGNORECASE,
)
_BOUND_BEHIND = re.compile(r"\s*(?:之?前|之?后|以前|以后|起|开始|截止|为止|到期)")
_BEHIND_RANGE = re.compile(
    r"\s*(?:to|through|-|\u2013)\s*\w+day\b|\s*[到至](?:周|星期|礼拜)", re.IGNORECASE
)
_CHARACTERS_BEFORE = 24  # characters: more than the longest bound
_SINGLE_EVENT = re.compile(
    r"\b(?:will|won't|shall|going to|let's|(?:this|next) (?:week|month|quarter)|today|tomorrow"
    r"|tonight|due|deadline|freez\w*|frozen|froze|demo|launch|cutover|go-live|rollout|kick-?off"
    r"|offsite|interview|migration|maintenance window|holiday|vacation|on leave|scheduled"
    r"|planned|plans? to|decided|postponed|moved to|delayed|it is(?=[.!]?$)"
    r"|(?:am|is|are|be|we're|i'm|they're|you're|he's|she's|it's|team's)\s+"
    r"(?:(?:not|all|now|only|\w+ly)\s+)*\w{2,}ing"
    r"|(?:a|the|our|next|this) release)\b|\w'll\b"
    "|冻结|封版|截止|上线|下线|停服|即将|计划|准备|切换|迁移|验收|演示|休假|安排|推迟|改到|定在|决定"
    "|将|会(?!议)|明天|今天",
    re.IGNORECASE,
)
REPEATED = re.compile(
    r"\b(?:always|usually|normally|typically|generally|regularly|weekly|never|every|each)\b"
    "|每|总是|一般|通常|固定|例行|定期",
    re.IGNORECASE,
)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_ONLY_DAYS = re.compile(
    rf"(?:{_WEEKDAY}|\b(?:on|the|and|or|of)\b|(?:周|星期|礼拜)[一二三四五六日天]|[\W\d_])*",
    re.IGNORECASE,
)


class Habits:
    """Tells which weekdays of a text stand for a habit; each sentence is judged once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_habit_by_sentence: dict[int, bool] = {}  # by the sentence's number

    def is_habit(self, start: int, end: int) -> bool:
        """Return whether the bare weekday at ``start`` to ``end`` means every such day."""
        before = self._text[max(0, start - _CHARACTERS_BEFORE) : start]
        if _BOUND_BEHIND.match(self._text, end):
            return False
        if _BOUND_BEFORE.search(before) and not _BEHIND_RANGE.match(self._text, end):
            return False
        number = bisect_right(self._starts, start) - 1  # the last sentence that begins before
        if number not in self._is_habit_by_sentence:
            self._is_habit_by_sentence[number] = self._describes_habit(number)
        return self._is_habit_by_sentence[number]

    @cached_property
    def _starts(self) -> list[int]:
        """The offsets at which the sentences of the text begin."""
        return [0, *(match.end() for match in _END.finditer(self._text))]

    def _describes_habit(self, number: int) -> bool:
        """Return whether a sentence, by its number, speaks of a habit."""
        start, *later_starts = self._starts[number : number + 2]
        end = later_starts[0] if later_starts else len(self._text)
        sentence = RESOLVED.sub("", self._text[start:end]).strip()
        if REPEATED.search(sentence):
            return True
        return not (_SINGLE_EVENT.search(sentence) or _ONLY_DAYS.fullmatch(sentence))
