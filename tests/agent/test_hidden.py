"""Characters that show nothing."""

import pytest

from memd.agent import hidden


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
