"""Dates in running text."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.state.dates import MAY, MONTHS, mentioned, spell

TODAY = date(2026, 4, 15)  # a Wednesday


@pytest.mark.parametrize(
    "text",
    [
        *("2026-04-02", "2026/4/2", "2026.04.02", "April 2, 2026", "Apr 2 2026", "2 April 2026"),
        *("the 2nd of April 2026", "April 2nd, 2026", "2026年4月2日", "2026年04月02号"),
    ],
)
def test_a_full_date_reads_one_way(text: str) -> None:
    """Whatever way a full date is written, it is spelled year, month, day."""
    assert spell(text).replace("the ", "") == "2026 april 2"
    assert mentioned(f"due {text}", None) == (("2026", "april", "2"),)


@pytest.mark.parametrize(
    "text", ["2026-13-02", "12026-04-02", "4.2.2026.1", "version 1.26.4", "may"]
)
def test_what_is_no_date_stays(text: str) -> None:
    """Numbers that only look like a date are left alone."""
    assert spell(text) == text
    assert mentioned(text, TODAY) == ()


def test_may_is_told_from_the_verb() -> None:
    """The month counts, the verb does not."""
    assert spell("in May") == f"in {MAY}"
    assert mentioned("we may merge", TODAY) == ()
    assert mentioned("what was last May", TODAY) == (("2025", MAY),)


@pytest.mark.parametrize(
    ("text", "first", "last", "count"),
    [
        ("today", ("2026", "april", "15"), ("2026", "april", "15"), 1),
        ("what did I do yesterday?", ("2026", "april", "14"), ("2026", "april", "14"), 1),
        ("昨天", ("2026", "april", "14"), ("2026", "april", "14"), 1),
        ("last week", ("2026", "april", "14"), ("2026", "april", "2"), 13),
        ("3 days ago", ("2026", "april", "12"), ("2026", "april", "12"), 1),
        ("2 weeks ago", ("2026", "april", "4"), ("2026", "march", "29"), 7),
        ("3天前", ("2026", "april", "12"), ("2026", "april", "12"), 1),
        ("2 months ago", ("2026", "february"), ("2026", "february"), 1),
        ("5个月前", ("2025", "november"), ("2025", "november"), 1),
        ("last month", ("2026", "march"), ("2026", "march"), 1),
        ("last year", ("2025",), ("2025",), 1),
        ("去年", ("2025",), ("2025",), 1),
        ("in June", ("2025", "june"), ("2025", "june"), 1),
        ("on March 6th", ("2026", "march", "6"), ("2026", "march", "6"), 1),
    ],
)
def test_what_is_told_from_today(
    text: str, first: tuple[str, ...], last: tuple[str, ...], count: int
) -> None:
    """Relative dates become the days or the month that they mean; without today they are none."""
    found = mentioned(text, TODAY)
    assert (found[0], found[-1], len(found)) == (first, last, count)
    assert mentioned(text, None) == ()


def test_a_month_with_its_year_is_told_by_its_words() -> None:
    """A month and year already stand side by side; nothing is to be told from today."""
    assert mentioned("in May 2023", TODAY) == ()


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_every_day_is_found_as_it_is_spelled(day: date) -> None:
    """A date that a prompt means is spelled as a memory spells it."""
    ((year, month, number),) = mentioned(day.isoformat(), None)
    assert spell(day.isoformat()) == f"{year} {month} {number}"
    assert (int(year), int(number)) == (day.year, day.day)
    assert month in (MONTHS[day.month - 1], MAY)
