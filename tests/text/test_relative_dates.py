"""Relative dates made absolute."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text.dates import resolve

# A Tuesday.
AT = datetime(2026, 3, 3, 15, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("after Thursday", "after Thursday (2026-03-05)"),
        ("on tuesday", "on tuesday (2026-03-03)"),
        ("by next Monday.", "by next Monday (2026-03-09)."),
        ("this Friday", "this Friday (2026-03-06)"),
        ("last Thursday", "last Thursday (2026-02-26)"),
        ("last Monday", "last Monday (2026-03-02)"),
        ("today and tomorrow", "today (2026-03-03) and tomorrow (2026-03-04)"),
        ("yesterday", "yesterday (2026-03-02)"),
        ("next week", "next week (week of 2026-03-09)"),
        ("last month", "last month (2026-02)"),
        ("last quarter", "last quarter (2025-Q4)"),
        ("next year", "next year (2027-01 to 2027-12)"),
        ("end of the month", "end of the month (2026-03-31)"),
        ("the end of next month", "the end of next month (2026-04-30)"),
        ("end of week", "end of week (2026-03-08)"),
        ("end of the quarter", "end of the quarter (2026-03-31)"),
        ("end of this year", "end of this year (2026-12-31)"),
        ("in two weeks", "in two weeks (2026-03-17)"),
        ("in 3 months", "in 3 months (2026-06-03)"),
        ("10 days ago", "10 days ago (2026-02-21)"),
        ("a month from now", "a month from now (2026-04-03)"),
        ("明天冻结", "明天 (2026-03-04)冻结"),
        ("大后天", "大后天 (2026-03-06)"),
        ("下周四", "下周四 (2026-03-12)"),
        ("周四之后", "周四 (2026-03-05)之后"),
        ("上星期天", "上星期天 (2026-03-01)"),
        ("下周发布", "下周 (week of 2026-03-09)发布"),
        ("下个月", "下个月 (2026-04)"),
        ("月底", "月底 (2026-03-31)"),
        ("下个月底前", "下个月底 (2026-04-30)前"),
        ("年底", "年底 (2026-12-31)"),
        ("本季度末", "本季度末 (2026-03-31)"),
        ("两周后", "两周后 (2026-03-17)"),
        ("3天前", "3天前 (2026-02-28)"),
        ("until January 4th", "until January 4th (2026-01-04)"),
        ("by May 15.", "by May 15 (2026-05-15)."),
        ("on the 3rd of March", "on the 3rd of March (2026-03-03)"),
        ("from Dec. 1 on", "from Dec. 1 (2026-12-01) on"),
        ("at the end of June", "at the end of June (2026-06-30)"),
        ("6月15日上线", "6月15日 (2026-06-15)上线"),
        ("六月底", "六月底 (2026-06-30)"),
        ("十二月底", "十二月底 (2026-12-31)"),
        ("June 30, 2026", "June 30, 2026"),
        ("2026年6月15日", "2026年6月15日"),
        ("may 15 users log in", "may 15 users log in"),
        ("Feb 30", "Feb 30"),
        ("13月5日", "13月5日"),
        ("every Thursday", "every Thursday"),
        ("on Thursdays", "on Thursdays"),
        ("每周四", "每周四"),
        ("deploys to Europe go out on Tuesday", "deploys to Europe go out on Tuesday"),
        ("We're freezing after Thursday.", "We're freezing after Thursday (2026-03-05)."),
        ("Thursday (2026-03-05)", "Thursday (2026-03-05)"),
        ("the today-view component", "the today-view component"),
        ("no date here", "no date here"),
    ],
)
def test_each_phrase_gets_its_date(words: str, expected: str) -> None:
    """The date a phrase means, counted from when it was said, stands behind it."""
    assert resolve(words, AT) == expected


def test_a_month_without_that_day_ends_earlier() -> None:
    """One month after 31 January is the last day of February."""
    january = datetime(2026, 1, 31, tzinfo=UTC).timestamp()
    assert resolve("in a month", january) == "in a month (2026-02-28)"


@pytest.mark.parametrize("at", [1e20, float("inf"), float("nan"), -1e18])
def test_an_impossible_time_changes_nothing(at: float) -> None:
    """A time outside every calendar leaves the text as it is."""
    assert resolve("tomorrow", at) == "tomorrow"


def test_a_date_past_the_calendar_stays_relative() -> None:
    """A date after the year 9999 stays relative."""
    overdue = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
    assert resolve("tomorrow, next month", overdue) == "tomorrow, next month"


_ENGLISH = "next last this Thursday tomorrow week month in two 3 days ago end of the ( )"
_WORDS = st.sampled_from([*_ENGLISH.split(), *"下周四后天月底两上个季度前"])


@given(st.lists(_WORDS).map(" ".join) | st.lists(_WORDS).map("".join), st.floats(0, 4e9))
def test_resolving_twice_is_resolving_once(text: str, at: float) -> None:
    """A resolved text has nothing left to resolve."""
    once = resolve(text, at)
    assert resolve(once, at) == once
