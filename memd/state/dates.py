"""Dates in running text: spelled the same way wherever they stand, and those that a prompt means.

Pure: today's date comes in as a value.

Rules of this file
- A full date reads year, month, day, so that a memory that says "8 May 2023" and a prompt that
  says "May 8th, 2023" or "2023-05-08" agree.
- A month without a year is the last one that has begun; without today's date only its name counts.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MAY = "mayMonth"  # told from the verb until stop words are gone

_WORDS = tuple(MAY if name == "may" else name for name in MONTHS)

Mention = tuple[str, ...]  # a date as neighbouring words: year, month, day, or the first of them

_NAMES = "|".join((*MONTHS, *(name[:3] for name in MONTHS), "sept"))
_YEAR = r"(?:19|20)\d\d"
_FULL = re.compile(
    rf"(?<!\d)(?P<y1>{_YEAR})[-/.](?P<m1>0?[1-9]|1[0-2])[-/.](?P<d1>0?[1-9]|[12]\d|3[01])(?!\d)"
    rf"|(?<!\d)(?P<y2>{_YEAR})\s?年\s?(?P<m2>1[0-2]|0?[1-9])\s?月\s?(?P<d2>[12]\d|3[01]|0?[1-9])\s?[日号]"
    rf"|\b(?P<m3>{_NAMES})\.?\s+(?P<d3>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?,?\s+(?P<y3>{_YEAR})\b"
    rf"|\b(?P<d4>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m4>{_NAMES})\.?,?\s+(?P<y4>{_YEAR})\b",
    re.IGNORECASE,
)
# A month's name that is also a modal verb: capitalised and not opening a sentence.
_MAY = re.compile(r"(?<=[a-z0-9,] )May\b")
_NAMED = re.compile(
    rf"\b(?P<last>last\s+|this\s+|in\s+|since\s+|of\s+)?(?P<month>{'|'.join(MONTHS)})\b"
    rf"(?:,?\s+(?P<year>{_YEAR})\b)?(?:\s+(?P<day>[12]\d|3[01]|[1-9])(?:st|nd|rd|th)?\b(?!:))?",
    re.IGNORECASE,
)
_SPELLED = re.compile(rf"\b({_YEAR}) ({'|'.join(_WORDS)}) (\d{{1,2}})\b")
_DAYS_AGO = {
    "today": (0, 0),
    "yesterday": (1, 1),
    "day before yesterday": (2, 2),
    "this week": (0, 6),
    "last week": (1, 13),
    "last few days": (0, 4),
    "the other day": (1, 7),
    "今天": (0, 0),
    "昨天": (1, 1),
    "前天": (2, 2),
    "这周": (0, 6),
    "本周": (0, 6),
    "上周": (1, 13),
}
_RELATIVE = re.compile("|".join(sorted(_DAYS_AGO, key=len, reverse=True)), re.IGNORECASE)
_AGO = re.compile(r"\b(\d{1,3}) (day|week|month)s? ago\b|(\d{1,3}) ?(天|周|个月)前", re.IGNORECASE)
_LAST_MONTH = re.compile(r"\blast month\b|上个?月", re.IGNORECASE)
_LAST_YEAR = re.compile(r"\blast year\b|去年", re.IGNORECASE)
_DAYS = {"day": 1, "天": 1, "week": 7, "周": 7}


def spell(text: str) -> str:
    """Return a text whose full dates read year, month in words, day."""
    return _FULL.sub(_spelled, _MAY.sub(MAY, text))


def mentioned(text: str, today: date | None) -> tuple[Mention, ...]:
    """Return the dates that a prompt means, each as a memory would spell it.

    Without ``today`` only dates that need none.
    """
    found: dict[Mention, None] = dict.fromkeys(_SPELLED.findall(spell(text)))
    if today is not None:
        found |= dict.fromkeys(_relative(text, today))
    return tuple(found)


def _relative(text: str, today: date) -> Iterator[Mention]:
    for match in _RELATIVE.finditer(text):
        first, last = _DAYS_AGO[match.group().lower()]
        yield from (_day(today - timedelta(back)) for back in range(first, last + 1))
    for number, unit, count, kind in _AGO.findall(text):
        length, back = _DAYS.get(unit.lower() or kind, 0), int(number or count)
        if length:
            slack = length // 2
            middle = back * length
            for days in range(max(middle - slack, 0), middle + slack + 1):
                yield _day(today - timedelta(days))
        else:
            yield _month(today.year * 12 + today.month - 1 - back)
    if _LAST_MONTH.search(text):
        yield _month(today.year * 12 + today.month - 2)
    if _LAST_YEAR.search(text):
        yield (str(today.year - 1),)
    for match in _NAMED.finditer(spell(text).replace(MAY, "may")):
        month = MONTHS.index(match["month"].lower()) + 1
        if match["year"] or (month == 5 and not match["last"] and not match["day"]):  # noqa: PLR2004 - May
            continue
        year = today.year if month <= today.month else today.year - 1
        mention = (str(year), _WORDS[month - 1])
        yield (*mention, match["day"]) if match["day"] else mention


def _day(day: date) -> Mention:
    return (str(day.year), _WORDS[day.month - 1], str(day.day))


def _month(number: int) -> Mention:
    return (str(number // 12), _WORDS[number % 12])


def _spelled(match: re.Match[str]) -> str:
    parts = {name[0]: value for name, value in match.groupdict().items() if value is not None}
    written = parts["m"].lower()
    month = int(written) - 1 if written.isdigit() else _number(written)
    return f"{parts['y']} {_WORDS[month]} {int(parts['d'])}"


def _number(name: str) -> int:
    return next(at for at, month in enumerate(MONTHS) if month.startswith(name[:3]))
