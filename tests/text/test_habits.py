"""Weekdays of a habit and weekdays of a date."""

import re

import pytest

from memd.text.habits import Habits

_DAY = re.compile("Monday|Tuesday|Thursday|Friday|周[一二四五]")


def habitual(text: str) -> list[bool]:
    """Ask about every weekday in a text."""
    habits = Habits(text)
    return [habits.is_habit(*match.span()) for match in _DAY.finditer(text)]


@pytest.mark.parametrize(
    "text",
    [
        "deploys to Europe go out on Tuesday",
        "We deploy on Tuesday after the weekly review.",
        "standup is on Tuesday",
        "never deploy on Friday",
        "We are always freezing merges on Thursday",
        "work hours are from Monday to Friday",
        "记住我们的部署在周二进行",
        "我们从周一到周五值守电话",
        "会议在周二",
        "我们通常会在周五开会",
    ],
)
def test_a_habit_is_no_date(text: str) -> None:
    """What is true every week stands for no single day."""
    assert set(habitual(text)) == {True}


@pytest.mark.parametrize(
    "text",
    [
        "Thursday",
        "on Tuesday (2026-03-03) and Friday",
        "We're freezing merges after Thursday because the mobile team releases.",
        "the report is due Friday",
        "The freeze starts Thursday",
        "We will ship on Tuesday",
        "the demo is on Friday",
        "the mobile team is cutting a branch on Thursday",
        "Thursday it is.",
        "we always deploy, but not until Friday",
        "周四之后冻结合并",
        "我们周五上线",
        "报告到周五为止",
    ],
)
def test_one_day_is_a_date(text: str) -> None:
    """A bound, a plan or nothing but the day means one day."""
    assert set(habitual(text)) == {False}


def test_each_sentence_speaks_for_itself() -> None:
    """A plan in one sentence makes no date of the habit in the next."""
    text = "We will ship on Tuesday. Deploys go out on Tuesday and on Thursday.\n\nFriday"
    assert habitual(text) == [False, True, True, False]
