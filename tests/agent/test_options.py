"""Options of commands."""

import pytest

from memd.agent.options import Given, Syntax, number, read
from memd.agent.refusals import OptionRefusedError
from memd.agent.shell_words import Word

SYNTAX = Syntax("c", "abn", ("m", "include"), {"--all": "a", "--max": "m", "--inc": "include"}, "m")


def given(*words: str) -> Given:
    """Read some words."""
    return read(SYNTAX, tuple(map(Word, words)))


def test_options_and_operands_are_told_apart() -> None:
    """Clusters, values in every spelling, digits and ``--`` are read as getopt does."""
    found = given("x", "-abm5", "--all", "--max=6", "--max", "7", "-m", "8", "-9", "-", "--", "-z")
    assert found.flags == {"a", "b"}
    assert found.values == {"m": ("5", "6", "7", "8", "9")}
    assert [word.text for word in found.operands] == ["x", "-", "-z"]
    assert found.value("m") == "9"
    assert found.value("include") is None
    assert given("--inc=*.md").value("include") == "*.md"


@pytest.mark.parametrize("words", [("-z",), ("--al",), ("--all=x",), ("-m",), ("--max",), ("-az",)])
def test_unknown_options_are_refused(words: tuple[str, ...]) -> None:
    """An option that is not in the table, abbreviated, or with a wrong value, is refused."""
    with pytest.raises(OptionRefusedError):
        given(*words)


def test_numbers_are_small_and_plain() -> None:
    """A value is ASCII digits up to a million, perhaps with a plus."""
    assert (number("c", "-n", "12"), number("c", "-n", "+3")) == (12, 3)
    for bad in ("", "x", "-1", "1.5", "\u0661", "9999999", "1" * 30):
        with pytest.raises(OptionRefusedError):
            number("c", "-n", bad)
