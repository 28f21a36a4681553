"""Characters that show nothing."""

import pytest

from memd.agent import hidden
from memd.core.courtesy import polite


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\u200b", "\u202e", "\u2066", "\U000e0041"])
def test_hidden_characters_are_named(character: str) -> None:
    """A character that no reader sees is found and written out."""
    name = f"U+{ord(character):04X}"
    assert hidden.find(f"a{character}b") == name
    assert hidden.shown(f"a{character}b") == f"a<{name}>b"


@pytest.mark.parametrize("text", ["plain\n\ttext\r\n", "👩‍💻 ❤️", "نمی‌خواهم", "中文", ""])
def test_honest_text_passes(text: str) -> None:
    """Line ends, emoji with joiners and scripts that need them are left alone."""
    assert hidden.find(text) == ""
    assert hidden.shown(text) == text


def test_a_long_text_is_gone_through_in_parts() -> None:
    """Prompts may go first between them, and wherever a part ends nothing is lost."""
    asked: list[int] = []
    text = "ab\u200bc" * 40_000
    with polite(lambda: asked.append(1)):
        assert hidden.shown(text) == "ab<U+200B>c" * 40_000
    assert len(asked) > 1
