"""Characters that show nothing: the table, and what every reader of it does with them."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.values import Pointer
from memd.cli import output
from memd.dream import report_page
from memd.store import index, secret
from memd.text import invisible
from memd.text.quoting import neutralise

TABLE = re.compile(f"[{invisible.DIRECTIONS}{invisible.JOINERS}{invisible.HIDDEN}]")
# Drawn around or before the digits and letters behind them: they show.
DRAWN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
KEY = "gh" + "p_" + "a7Kx92LmQw84ErTy61UiOp30AsDf57GhJk2Z"


def test_the_table_holds_all_format_characters() -> None:
    """What Unicode calls a format character is in the table, unless it is drawn."""
    missing = [
        f"U+{code:04X}"
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) == "Cf"
        and code not in DRAWN
        and not TABLE.search(chr(code))
    ]
    assert missing == []


@pytest.mark.parametrize(
    "letters", ["aZ0", "é中文", "\u05d0\u0627", "🙂", "\n\t ", "\u0300", "\ue000"]
)
def test_what_shows_is_not_in_the_table(letters: str) -> None:
    """Letters, marks on them, emoji and white space stay whatever is done."""
    assert invisible.removed(letters) == letters
    assert invisible.spelled_out(letters) == letters


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\u200b", "\u202e", "\u3164", "\U000e0041"])
def test_hidden_characters_are_named(character: str) -> None:
    """A character that no reader sees is found and spelled out."""
    name = f"U+{ord(character):04X}"
    assert invisible.find(f"a{character}b") == name
    assert invisible.spelled_out(f"a{character}b") == f"a<{name}>b"


@pytest.mark.parametrize("text", ["plain\n\ttext\r\n", "👩‍💻 ❤️", "نمی‌خواهم", "中文", ""])
def test_honest_text_passes(text: str) -> None:
    """Line ends, emoji with joiners and scripts that need them are left alone."""
    assert invisible.find(text) == ""
    assert invisible.spelled_out(text) == text


def test_marks_of_direction_are_taken_out() -> None:
    """They go; all else, joiners of emoji and scripts too, stays."""
    kept = "a\u200cb\u200d \u05d0\u0627 é"
    for mark in map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x61C)):
        assert invisible.without_directions(f"{mark}{kept}{mark}") == kept


@given(st.from_regex(TABLE, fullmatch=True), st.integers(1, len(KEY) - 1))
def test_no_reader_of_the_table_lets_one_through(character: str, at: int) -> None:
    """Memories, index, terminal and report tell none, and none hides a credential."""
    text = f"deploy{character}rule"
    assert character not in neutralise(text)
    assert character not in report_page.span(text)
    assert secret.find(f"token = {KEY[:at]}{character}{KEY[at:]}")
    if not re.search(f"[{invisible.JOINERS}]", character):
        assert character not in output.escape(text)
        assert character not in index.pointer_line("a.md", Pointer(text, text))
