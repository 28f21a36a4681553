"""Put an ISO date behind each relative date, so that a memory says the same next month.

The words stay and the date that they mean goes behind them: ``Thursday (2026-03-05)``. A phrase
that already has its date is left alone, so a second call changes nothing. A bare weekday is the
next one, today included; ``every Thursday``, ``Thursdays`` and the day of a habit (``habits.py``)
are no date. A day of a month without a year (``June 9th``, ``6月底``) is the next one, or one that
passed at most 60 days ago. Where the words around make the day uncertain (``date_contexts.py``),
nothing is added.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from memd.text.date_contexts import DateContexts
from memd.text.habits import Habits

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# By how many weeks, months or years a word goes forward or back.
_SHIFTS = {"last": -1, "past": -1, "this": 0, "coming": 0, "the": 0, "next": 1, "": 0}
_NUMBERS = {
    word: number
    for number, words in enumerate(
        ("", "a an one 一", "two 两 二", "three 三", "four 四", "five 五", "six 六")
    )
    for word in words.split()
}
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "January Jan 一",
            "February Feb 二",
            "March Mar 三",
            "April Apr 四",
            "May 五",
            "June Jun 六",
            "July Jul 七",
            "August Aug 八",
            "September Sept Sep 九",
            "October Oct 十",
            "November Nov 十一",
            "December Dec 十二",
        ),
        1,
    )
    for name in names.split()
}
_DAYS = {
    "today": 0,
    "tonight": 0,
    "tomorrow": 1,
    "yesterday": -1,
    "day after tomorrow": 2,
    "day before yesterday": -2,
}
_DAYS_ZH = {
    "今天": 0,
    "今晚": 0,
    "明天": 1,
    "明晚": 1,
    "后天": 2,
    "大后天": 3,
    "昨天": -1,
    "前天": -2,
    "大前天": -3,
}
_SHIFTS_ZH = {"上": -1, "本": 0, "这": 0, "下": 1, "": 0}
_WEEKDAYS_ZH = "一二三四五六日"
_COUNT = r"(\d{1,3}|an?|one|two|three|four|five|six)"
_COUNT_ZH = r"(\d{1,3}|[一二两三四五六])"
# A phrase is left alone if its date stands behind it already.
_NOT_DATED = r"(?!\s?[(\uff08](?:week of |\d{4}-))"
_DAYS_A_WEEK = 7
_JUST_PASSED = timedelta(days=60)  # a day without a year that passed so recently is meant itself


def resolve(text: str, at: float) -> str:
    """Return a text with an ISO date behind each relative one.

    ``at`` is the time of the text in seconds since 1970; its day is the one of UTC. A date that no
    calendar holds stays relative.
    """
    try:
        day = datetime.fromtimestamp(at, UTC).date()
    except (OverflowError, ValueError, OSError):
        return text
    habits, contexts = Habits(text), DateContexts(text)

    def dated(match: re.Match[str]) -> str:
        """Return the matched phrase with its date behind it, or as it is if that is uncertain."""
        words = match.group()
        if contexts.is_verbatim(match.start()):
            return words
        if _BARE_WEEKDAY.fullmatch(words) and habits.is_habit(*match.span()):
            return words
        return _with_date(match, day, contexts)

    return _ANY.sub(dated, text)


def _with_date(phrase: re.Match[str], day: date, contexts: DateContexts) -> str:
    """Return a phrase with the date that it means on ``day`` behind it, if that is certain."""
    words = phrase.group()
    # The phrase was matched by the joint pattern, so one of the single patterns matches it.
    matches = ((pattern.fullmatch(words), meaning) for pattern, meaning in _MEANINGS)
    match, meaning = next((match, meaning) for match, meaning in matches if match is not None)
    try:
        result = meaning(match, day)
    except (OverflowError, ValueError):  # no calendar has that date
        return words
    if _is_uncertain(phrase, meaning, result, day, contexts):
        return words
    return f"{words} ({result})"


def _is_uncertain(
    phrase: re.Match[str], meaning: "_Meaning", result: str, day: date, contexts: DateContexts
) -> bool:
    """Return whether the words around a phrase, or in it, leave open which day it means."""
    words, place = phrase.group().lower(), phrase.span()
    if meaning in (_weekday, _weekday_zh):
        bare = _BARE_WEEKDAY.fullmatch(words) is not None
        # "this Monday", said on a Friday, may be the one that is over.
        is_over = words.startswith("this ") and result < day.isoformat()
        return is_over or contexts.weekday_is_uncertain(*place, bare=bare)
    if meaning in (_date_ahead, _date_ago):
        repeated = meaning is _date_ahead and contexts.is_repeated(*place)
        return repeated or contexts.distance_is_uncertain(*place)
    if meaning is _end_of_period:
        is_named = any(word in words for word in ("this", "next", "last"))
        return not is_named and contexts.is_repeated(*place)
    if meaning in (_month_first, _day_first, _end_of_named):
        is_past = result > day.isoformat() and contexts.is_past(*place)
        return is_past or contexts.is_repeated(*place)
    is_part: dict[_Meaning, Callable[[int, int], bool]] = {
        _named_day: contexts.named_day_is_uncertain,
        _period: contexts.period_is_uncertain,
    }
    return meaning in is_part and is_part[meaning](*place)


def _named_day(match: re.Match[str], day: date) -> str:
    """Return the date of "today", "tomorrow" and the like."""
    return _iso_after(day, days=_DAYS[" ".join(match.group(1).lower().split())])


def _named_day_zh(match: re.Match[str], day: date) -> str:
    """Return the date of a Chinese "today", "tomorrow" and the like."""
    return _iso_after(day, _DAYS_ZH[match.group(1)])


def _weekday(match: re.Match[str], day: date) -> str:
    """Return the date of a weekday with or without "last", "this" or "next" before it."""
    determiner = (match.group(1) or "").strip().lower()
    weekday = _WEEKDAYS.index(match.group(2).lower())
    upcoming = determiner in {"", "coming", "the"}
    if determiner == "coming" and weekday == day.weekday():  # not today
        return _iso_after(day, days=_DAYS_A_WEEK)
    return _date_of_weekday(day, weekday, None if upcoming else _SHIFTS[determiner])


def _weekday_zh(match: re.Match[str], day: date) -> str:
    """Return the date of a Chinese weekday, as ``_weekday`` does."""
    determiner = match.group(1) or ""
    weekday = _WEEKDAYS_ZH.index(match.group(2).replace("天", "日"))
    return _date_of_weekday(day, weekday, _SHIFTS_ZH[determiner] if determiner else None)


def _date_of_weekday(day: date, weekday: int, weeks: int | None) -> str:
    """Return the date of a weekday, where Monday is 0, in the week that is ``weeks`` from this one.

    ``None`` stands for the next one, today included.
    """
    if weeks is None:
        return _iso_after(day, days=(weekday - day.weekday()) % _DAYS_A_WEEK)
    days = weekday - day.weekday() + _DAYS_A_WEEK * weeks
    if weeks < 0 and days < -_DAYS_A_WEEK:
        # "last Thursday" is the latest one that is over, whichever week it lies in.
        days += _DAYS_A_WEEK
    return _iso_after(day, days=days)


def _period(match: re.Match[str], day: date) -> str:
    """Return the week, month, quarter or year that "next month" and the like mean."""
    return _name_period(match.group(2).lower(), day, _SHIFTS[match.group(1).lower()])


def _period_zh(match: re.Match[str], day: date) -> str:
    """Return the period that a Chinese phrase means, as ``_period`` does."""
    units = {"周": "week", "星期": "week", "月": "month", "季度": "quarter"}
    return _name_period(units[match.group(2)], day, _SHIFTS_ZH[match.group(1)])


def _name_period(unit: str, day: date, shift: int) -> str:
    """Return the period of a unit that is ``shift`` units from the one with ``day`` in it."""
    if unit == "week":
        return f"week of {_iso_after(day, days=7 * shift - day.weekday())}"
    if unit == "month":
        return f"{_first_of_month(day, shift):%Y-%m}"
    if unit == "quarter":
        first = _first_of_month(day, 3 * shift)
        return f"{first.year}-Q{(first.month + 2) // 3}"
    return f"{day.year + shift:04}-01 to {day.year + shift:04}-12"


def _end_of_period(match: re.Match[str], day: date) -> str:
    """Return the last day that "end of next month" and the like mean."""
    return _last_day(match.group(2).lower(), day, _SHIFTS[(match.group(1) or "the").lower()])


def _end_of_period_zh(match: re.Match[str], day: date) -> str:
    """Return the last day that a Chinese phrase means, as ``_end_of_period`` does."""
    units = {"月": "month", "年": "year", "季度": "quarter"}
    return _last_day(units[match.group(2)], day, _SHIFTS_ZH[match.group(1) or ""])


def _last_day(unit: str, day: date, shift: int) -> str:
    """Return the last day of the period that is ``shift`` units from the one with ``day`` in it."""
    if unit == "week":
        return _iso_after(day, days=7 * shift + 6 - day.weekday())
    if unit == "year":
        return date(day.year + shift, 12, 31).isoformat()
    months = shift
    if unit == "quarter":
        months_to_its_end = 2 - (day.month - 1) % 3
        months = 3 * shift + months_to_its_end
    first = _first_of_month(day, months)
    return first.replace(day=monthrange(first.year, first.month)[1]).isoformat()


def _month_first(match: re.Match[str], day: date) -> str:
    """Return the date of "June 9th"."""
    return _nearest_date(_MONTHS[match.group(1)], int(match.group(2)), day)


def _day_first(match: re.Match[str], day: date) -> str:
    """Return the date of "9th of June"."""
    return _nearest_date(_MONTHS[match.group(2)], int(match.group(1)), day)


def _end_of_named(match: re.Match[str], day: date) -> str:
    """Return the date of "end of June"."""
    return _nearest_date(_month_of(match.group(1)), 0, day)


def _day_zh(match: re.Match[str], day: date) -> str:
    """Return the date of a Chinese month and day."""
    return _nearest_date(_month_of(match.group(1)), int(match.group(2)), day)


def _month_of(name: str) -> int:
    """Return the number of a month that is written in digits or as a name."""
    return int(name) if name.isdecimal() else _MONTHS[name]


def _nearest_date(month: int, number: int, day: date) -> str:
    """Return the date of a day of a month that is ahead or passed at most 60 days ago.

    The ``number`` 0 is the month's last day. Raises ValueError if there is no such date.
    """
    for year in (day.year - 1, day.year, day.year + 1):
        if year == 0:  # no date has it
            continue
        last_day = monthrange(year, month)[1]
        if number <= last_day:
            result = date(year, month, number or last_day)
            if result >= day - _JUST_PASSED:
                return result.isoformat()
    raise ValueError


def _date_ahead(match: re.Match[str], day: date) -> str:
    """Return the date of "in three weeks"."""
    return _date_at_distance(match.group(1), match.group(2), day, 1)


def _date_ago(match: re.Match[str], day: date) -> str:
    """Return the date of "three weeks ago"."""
    return _date_at_distance(match.group(1), match.group(2), day, -1)


def _distance_zh(match: re.Match[str], day: date) -> str:
    """Return the date of a Chinese "in three weeks" or "three weeks ago"."""
    units = {"天": "day", "周": "week", "星期": "week", "月": "month"}
    sign = -1 if match.group(3) == "前" else 1
    return _date_at_distance(match.group(1), units[match.group(2)], day, sign)


def _date_at_distance(count: str, unit: str, day: date, sign: int) -> str:
    """Return the date that is ``count`` units after ``day``, before it with ``sign`` -1.

    A month that has no such day gives its last day.
    """
    number = int(count) if count.isdecimal() else _NUMBERS[count.lower()]
    unit = unit.lower()
    if unit == "month":
        first = _first_of_month(day, sign * number)
        last_day = monthrange(first.year, first.month)[1]
        return first.replace(day=min(day.day, last_day)).isoformat()
    days = number * _DAYS_A_WEEK if unit == "week" else number
    return _iso_after(day, days=sign * days)


def _iso_after(day: date, days: int) -> str:
    """Return the ISO date so many days after ``day``."""
    return (day + timedelta(days=days)).isoformat()


def _first_of_month(day: date, shift: int) -> date:
    """Return the first day of the month that is ``shift`` months after that of ``day``."""
    months = day.year * 12 + day.month - 1 + shift
    return date(months // 12, months % 12 + 1, 1)


_Meaning = Callable[[re.Match[str], date], str]
_WEEKDAY_NAMES = "|".join(_WEEKDAYS)
_BARE_WEEKDAY = re.compile(
    rf"(?:{_WEEKDAY_NAMES})|(?:周|星期|礼拜)[一二三四五六日天]", re.IGNORECASE
)
_MONTH_NAMES = "|".join(name for name in _MONTHS if name.isascii())
# "may 15 users" is no date: a month has its capital.
_MONTH = rf"(?-i:({_MONTH_NAMES}))\.?"
_ORDINAL = r"(\d{1,2})(?:st|nd|rd|th)?"
_NOT_BEFORE_YEAR = r"(?!,? ?\d)"
_MONTH_ZH = r"(?<![\d年十])(\d{1,2}|十[一二]|[一二三四五六七八九十])月"
# The longer phrase stands before the shorter one that it holds.
_PHRASES: tuple[tuple[str, _Meaning], ...] = (
    (rf"in {_COUNT} (day|week|month)s?", _date_ahead),
    (rf"{_COUNT} (day|week|month)s? from now", _date_ahead),
    (rf"{_COUNT} (day|week|month)s? ago", _date_ago),
    (rf"end of {_MONTH}(?! \d)", _end_of_named),
    (rf"{_MONTH} {_ORDINAL}{_NOT_BEFORE_YEAR}", _month_first),
    (rf"{_ORDINAL}(?: of)? {_MONTH}{_NOT_BEFORE_YEAR}", _day_first),
    (r"end of (?:(the|this|next|last) )?(week|month|quarter|year)", _end_of_period),
    (r"(next|last|this) (week|month|quarter|year)", _period),
    (rf"((?:this|next|last|coming|past) )?({_WEEKDAY_NAMES})", _weekday),
    (r"(day after tomorrow|day before yesterday)", _named_day),
    (r"(today|tonight|tomorrow|yesterday)", _named_day),
)
_PHRASES_ZH: tuple[tuple[str, _Meaning], ...] = (
    (rf"{_MONTH_ZH}(?:份)?[底末]", _end_of_named),
    (rf"{_MONTH_ZH}(\d{{1,2}})[日号]", _day_zh),
    (rf"{_COUNT_ZH}个?(天|周|星期|月)(后|前)(?!天)", _distance_zh),
    (r"([本这下上])?个?(?:周|星期|礼拜)([一二三四五六日天])", _weekday_zh),
    (r"([本这下上])?个?(月|年|季度)[底末]", _end_of_period_zh),
    (r"([本这下上])个?(周|星期|月|季度)(?![一二三四五六日天末底])", _period_zh),
    (rf"({'|'.join(sorted(_DAYS_ZH, key=len, reverse=True))})", _named_day_zh),
)
_MEANINGS = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning) for pattern, meaning in (*_PHRASES, *_PHRASES_ZH)
)


def _without_groups(pattern: str) -> str:
    """Return a pattern whose groups are not numbered, so that it can be part of a longer one."""
    return re.sub(r"\((?!\?)", "(?:", pattern)


_ANY = re.compile(
    # "every Thursday" and "each week" repeat; they are no date.
    # Before a possessive a date would stand in the middle of a word.
    rf"(?<!every )(?<!each )(?<![\w@#$=\u2013-])"
    rf"(?:{'|'.join(_without_groups(p) for p, _ in _PHRASES)})(?![\w@=-]|['\u2019]|\(\))"
    rf"{_NOT_DATED}"
    # "下下周", "一周四次", "二十三天后", "约三天后": the phrase is a part of a longer one.
    r"|(?<![每下上大前以一二两三四五六七八九十几半约近\d])"
    rf"(?:{'|'.join(_without_groups(p) for p, _ in _PHRASES_ZH)}){_NOT_DATED}",
    re.IGNORECASE,
)
