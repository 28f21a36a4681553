"""The words that command lines are made of."""

import pytest

from memd.cli.grammar import (
    Command,
    Operand,
    Option,
    moment,
    number,
    seconds,
    synopsis,
    version,
)


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", ""])
def test_a_count_is_at_least_one(text: str) -> None:
    """Anything but a whole number from 1 on is refused."""
    with pytest.raises(ValueError, match=r"^$|invalid literal"):
        number(text)
    assert number("12") == 12


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "x", "999999999"])
def test_a_time_to_wait_is_bounded(text: str) -> None:
    """Only times above nothing and up to a week can be waited for."""
    with pytest.raises(ValueError, match=r"^$|could not convert"):
        seconds(text)
    assert seconds("0.5") == 0.5


def test_a_version_is_a_change_or_a_time() -> None:
    """Times are as a person says them; what looks like a change is one."""
    assert version("c12") == "c12"
    assert version("1970-01-02 00:00Z") == moment("86400") == 86400.0
    for text in ("", "c", "soon"):
        with pytest.raises(ValueError, match=r"^$"):
            version(text)


def test_a_synopsis_shows_how_to_call() -> None:
    """Switches, values, choices, repetition, optional and several operands are told apart."""
    command = Command(
        ("do", "it"),
        "",
        "",
        "",
        operands=(Operand("ONE", ""), Operand("MORE", "", optional=True, many=True)),
        options=(
            Option("--value", "", "X"),
            Option("--flag", ""),
            Option("--each", "", choices=("a", "b"), repeat=True),
        ),
    )
    line = "memctl do it [--value X] [--flag] [--each a|b]... ONE [MORE...]"
    assert synopsis(command) == line
    assert synopsis(command, 40).splitlines() == [
        "memctl do it [--value X] [--flag]",
        "             [--each a|b]... ONE",
        "             [MORE...]",
    ]
    assert Option("--dry-run", "").attribute == "dry_run"
    assert Option("--from", "").attribute == "from_"
