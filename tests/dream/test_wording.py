"""Words and their short form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.dream.wording import AT_ONCE, short, words


def test_words_are_folded_and_characters_count() -> None:
    """Case and width are folded, inner marks stay, and a CJK character is a word."""
    assert words("Don’t use V1.2 of ＡＢＣ-x!") == ("don't", "use", "v1.2", "of", "abc-x")
    assert words("用Postgres测试") == ("用", "postgres", "测", "试")
    assert words("?! —") == ()


@given(st.lists(st.sampled_from(["Don\u2019t", "v1.2", "\u7528", "x/y-z", "?"]), max_size=9))
def test_a_long_text_has_the_words_of_its_lines(lines: list[str]) -> None:
    """What is read line by line, so that others go first, has the same words."""
    text = "\n".join(lines)
    assert words(text + "\n" * AT_ONCE) == words(text)


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("policies", "policy"),
        ("team's", "team"),
        ("agreed", "agr"),
        ("agree", "agr"),
        ("tests", "test"),
        ("testing", "test"),
        ("pass", "pass"),
        ("tree", "tree"),
        ("bus", "bus"),
        ("v1.2s", "v1.2s"),
        ("\u00e9t\u00e9s", "\u00e9t\u00e9s"),
        ("x" * 41 + "s", "x" * 41 + "s"),
    ],
)
def test_number_and_tense_do_not_count(word: str, form: str) -> None:
    """English endings go; short words, names and words of other scripts stay as they are."""
    assert short(word) == form
