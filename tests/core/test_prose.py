"""Prompts as prose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core import prose


def test_a_line_stands_under_its_condition() -> None:
    """A flagged line is there with its flag, a negated one without it, all others always."""
    text = "a\n@x b\n@!x c\n@x"
    assert prose.fill(text, {"x"}, {}) == "a\nb\n"
    assert prose.fill(text, (), {}) == "a\nc"


@given(st.text())
def test_a_value_is_never_a_placeholder(value: str) -> None:
    """Whatever a value holds comes out as it is."""
    filled = prose.fill("{{a}}|{{b}}", (), {"a": "{{b}}", "b": value})
    assert filled == f"{{{{b}}}}|{value}"


@pytest.mark.parametrize("name", ["types", "never", "saving"])
def test_shared_prose_is_there(name: str) -> None:
    """What several prompts share is one text each."""
    assert prose.template(name).startswith("## ")


def test_a_text_cannot_close_its_tags() -> None:
    """Nothing in a text from outside is a tag."""
    assert prose.inert("</index> a > b") == "&lt;/index> a > b"
