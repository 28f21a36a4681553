"""Relative dates in longer phrases: the right date or none."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text.dates import resolve

AT = datetime(2026, 11, 27, 12, tzinfo=UTC).timestamp()  # a Friday

CERTAIN = (
    ("The retro is the day after tomorrow.", "2026-11-29"),
    ("It broke the day before yesterday.", "2026-11-25"),
    ("The demo begins next Thursday.", "2026-12-03"),
    ("We're freezing by Monday.", "2026-11-30"),
    ("The demo is this coming Friday.", "2026-12-04"),
    ("I leave in 3 days.", "2026-11-30"),
    ("It broke three days ago.", "2026-11-24"),
    ("Back a week from now.", "2026-12-04"),
    ("The freeze has to be fixed by Monday.", "2026-11-30"),
    ("The demo is scheduled on Monday.", "2026-11-30"),
    ("大前天坏了", "2026-11-24"),
    ("The office moves on December 14.", "2026-12-14"),
)
UNCERTAIN = (
    "The freeze begins and ends two weeks later.",
    "The rollback window closes 5 days later.",
    "The review is two weeks from Monday.",
    "The review is a week from tomorrow.",
    "The review is a couple of weeks after next Monday.",
    "The review is 3 days before next Monday.",
    "The review is the day after next Monday.",
    "The demo is Monday week.",
    "The demo is tomorrow week.",
    "The demo is the Monday after next.",
    "We are freezing on Friday of the first release.",
    "The demo is Tuesday in a fortnight.",
    "The demo is on the first Monday of the month.",
    "The demo will be on a Friday.",
    "We will meet the last Friday of the month.",
    "The build is failing since Friday.",
    "The build was failing on Wednesday.",
    "The team froze on Monday.",
    "It is failing since June 9th.",
    "The demo will be this Monday.",
    "It broke about a week ago.",
    "It broke two or three weeks ago.",
    "It broke 1.5 weeks ago.",
    "It is done in two weeks' time.",
    "Tokens expire in 30 days.",
    "The build was done in two days.",
    "We always answer in two days.",
    "I leave in two weeks from Monday.",
    "It grew over the last month.",
    "It happens in the last week of November.",
    "We will ship over the next year.",
    "The ticket is due in 10 business days.",
    "Invoices always go out at the end of the month.",
    "Black Friday and Easter Monday are holidays.",
    "We're ready by Friday the 13th.",
    "下下周四开会",
    "下下个月上线",
    "一周四次部署",
    "二十三天后截止",
    "两三周后上线",
    "周五上线了",
    "We're shipping on the Friday after the release.",
)
VERBATIM = (
    "The backup script runs `date -d yesterday` each night.",
    "The notes are at https://wiki.corp/today and nowhere else.",
    "The file is docs/plans/tomorrow and notes/next week.md or today.md.",
    'He said "see you tomorrow" and left.',
    "He said “see you tomorrow” and left.",
    "It prints 'back tomorrow' then.",
    "Yesterday's build is red.",
    "Today’s build is red.",
    "Next week's plan is out.",
    "```\ndate -d tomorrow\n```\n",
    "> see you tomorrow",
    "Call date.today() or today() there.",
    "Write to today@example.org.",
)


@pytest.mark.parametrize(("text", "expected"), CERTAIN)
def test_a_certain_day_gets_its_date(text: str, expected: str) -> None:
    """The one date that is added is the one that the whole phrase means."""
    resolved = resolve(text, AT)
    assert f"({expected})" in resolved
    assert resolved.count("(") == 1


@pytest.mark.parametrize("text", UNCERTAIN)
def test_an_uncertain_day_gets_no_date(text: str) -> None:
    """A phrase that counts from another day, is inexact or is past gets none of today's dates."""
    assert resolve(text, AT) == text


@pytest.mark.parametrize("text", VERBATIM)
def test_code_addresses_and_quotations_stay_as_they_are(text: str) -> None:
    """What is copied word for word is not annotated, and no word is divided by a date."""
    assert resolve(text, AT) == text


def test_only_the_certain_part_of_a_sentence_is_dated() -> None:
    """A date that stands there counts for nothing that is counted from it."""
    text = "The freeze begins next Thursday and ends two weeks later."
    dated = "The freeze begins next Thursday (2026-12-03) and ends two weeks later."
    assert resolve(text, AT) == resolve(dated, AT) == dated
    assert resolve("`today` is today.", AT) == "`today` is today (2026-11-27)."


_PARTS = st.sampled_from([*UNCERTAIN, *VERBATIM, *(text for text, _ in CERTAIN)])


@given(st.lists(_PARTS, max_size=4).map("\n\n".join), st.floats(0, 4e9))
def test_dating_twice_is_dating_once(text: str, at: float) -> None:
    """A dated text stays as it is, whenever it was said."""
    once = resolve(text, at)
    assert resolve(once, at) == once


@pytest.mark.parametrize("part", ["`", '"', "a-", "x", "a.", "/", "`a ", "'a "])
def test_a_long_line_takes_no_longer_than_other_text(part: str) -> None:
    """Marks that are never closed are met once each, and change nothing."""
    assert resolve(part * 300_000, AT) == part * 300_000
