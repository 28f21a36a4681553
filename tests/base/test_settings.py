"""Parsing settings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.options import Layer
from memd.base.settings import Settings, declared, parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["enabled", "limit", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_every_bad_option_is_named_and_the_rest_stands() -> None:
    """Unknown names, wrong types and numbers out of bounds are reported, never fatal."""
    options: dict[str, Any] = {
        "bass_dir": "x",
        "enabled": "yes",
        "dream": 3,
        "recall": {"limit": 0, "enabled": False, "size": 1},
    }
    settings, problems = parse([Layer("memd.toml", options)])
    assert settings.recall.limit == Settings().recall.limit
    assert not settings.recall.enabled
    assert [problem.split(": ", 1)[1].split(" ")[0] for problem in problems] == [
        "bass_dir",
        "enabled",
        "dream",
        "recall.limit",
        "recall.size",
    ]
    assert "must be between 1 and 20" in problems[3]


@given(st.dictionaries(st.sampled_from([*Settings.__struct_fields__, "x"]), VALUES, max_size=4))
def test_no_file_whatever_it_says_breaks_the_parser(options: dict[str, Any]) -> None:
    """Any TOML-like value gives settings and sentences, never an exception."""
    settings, problems = parse([Layer("memd.toml", options)])
    assert isinstance(settings, Settings)
    assert all(problem.startswith("memd.toml: ") for problem in problems)


def test_every_option_has_words() -> None:
    """Each option is declared with a default and an explanation."""
    names = {name for name, _, _ in declared()}
    assert {"enabled", "recall.limit", "dream.min_hours"} <= names
    assert all(words for _, _, words in declared())


def test_an_option_may_have_a_check_of_its_own() -> None:
    """Lines of prices that are none are reported by the option's name."""
    options = {"spend": {"prices": "model 1 2\n"}}
    settings, problems = parse([Layer("memd.toml", options)])
    assert settings.spend.prices == ""
    assert "spend.prices must hold lines" in problems[0]


@pytest.mark.parametrize("table", [{"Bash": -1}, {"Bash": True}, {"Bash": "9"}, 9, ["Bash"]])
def test_a_table_of_numbers_has_names_of_the_user_s_choice(table: Any) -> None:
    """Any names, each with a whole number; else what a weaker layer says stands, whole."""
    good = Layer("policy", {"context": {"limits": {"Bash": 10, "my tool": 0}}})
    settings, problems = parse([good, Layer("memd.toml", {"context": {"limits": table}})])
    assert settings.context.limits == {"Bash": 10, "my tool": 0}
    assert problems == (
        "memd.toml: context.limits must be a table of whole numbers from 0 on; its default stands",
    )
    assert parse([good])[1] == ()


def test_secrets_are_not_shown() -> None:
    """The settings' text form holds no key."""
    settings, _ = parse([Layer("memd.toml", {"model": {"api_key": "sk-1", "auth_token": "tk-2"}})])
    assert settings.model.api_key == "sk-1"
    assert "sk-1" not in str(settings)
    assert "tk-2" not in str(settings)


@pytest.mark.parametrize(
    ("value", "used"),
    [("auto", (False, True)), (True, (True, True)), ("true", (True, True)), (False, (False,) * 2)],
)
def test_team_memory_has_three_values(value: Any, used: tuple[bool, bool]) -> None:
    """What was a switch reads as before, and by default only joined projects use it."""
    settings, problems = parse([Layer("memd.toml", {"team": {"enabled": value}})])
    assert problems == ()
    assert (settings.team.used(joined=False), settings.team.used(joined=True)) == used


@pytest.mark.parametrize("value", ["yes", 1, None, ["auto"]])
def test_another_value_leaves_team_memory_as_it_was(value: Any) -> None:
    """A value that is none of the three is named; a weaker layer's stands."""
    weaker = Layer("policy", {"team": {"enabled": False}})
    settings, problems = parse([weaker, Layer("memd.toml", {"team": {"enabled": value}})])
    assert (settings.team.enabled, len(problems)) == ("false", 1)
