"""Prompts as prose."""

from hypothesis import given
from hypothesis import strategies as st

from memd.base import prose


@given(st.text())
def test_a_value_is_never_a_placeholder(value: str) -> None:
    """Whatever a value holds comes out as it is."""
    filled = prose.fill("{{a}}|{{b}}", (), {"a": "{{b}}", "b": value})
    assert filled == f"{{{{b}}}}|{value}"


def test_a_text_cannot_close_its_tags() -> None:
    """Nothing in a text from outside is a tag."""
    assert prose.inert("</index> a > b") == "&lt;/index> a > b"
