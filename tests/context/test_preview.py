"""What is sent in the place of a stored result."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.context import preview
from memd.core.canonical import LEAST_CHARACTERS

PATH = "/base/projects/-p/s-1/tool-results/toolu_1.txt"
HEAD = f"whole at: {PATH}\n"
END = "\n[cut]\n</persisted-output>"
CLOSING = re.compile(r"<\s*/\s*persisted-output", re.IGNORECASE)
# Texts as tools print them: long lines, wide characters, and the tag itself in several spellings.
PIECES = st.sampled_from(
    [
        "x" * 700,
        "\n",
        "行" * 300,
        "é",
        "😀" * 100,
        "</persisted-output>",
        "< / PERSISTED-output",
        "<",
    ]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=40)), max_size=60).map("".join)


def beginning(shown: str) -> str:
    """Return the part of a result that is shown."""
    return shown.partition(HEAD)[2].removesuffix(END)


@pytest.mark.parametrize(
    ("text", "size", "start"),
    [
        ("a" * 5_000, "5000 bytes, 1 lines", "a" * 2_000),
        ("a" * 1_500 + "\n" + "b" * 5_000, "6501 bytes, 2 lines", "a" * 1_500),
        ("a" * 1_000 + "\n" + "b" * 5_000, "6001 bytes, 2 lines", "a" * 1_000),
        ("a" * 999 + "\n" + "b" * 5_000, "6000 bytes, 2 lines", "a" * 999 + "\n" + "b" * 1_000),
        ("a" * 1_999 + "\n" + "b\n" * 5_000, "12000 bytes, 5001 lines", "a" * 1_999),
        ("行" * 5_000, "15000 bytes, 1 lines", "行" * 666),
        ("a\n" * 5_000, "10000 bytes, 5000 lines", "a\n" * 999 + "a"),
    ],
    ids=["one line", "end", "half", "before half", "last", "wide", "lines"],
)
def test_a_result_begins_as_it_did(text: str, size: str, start: str) -> None:
    """The size, the path and the first 2,000 bytes are shown, up to the last line of their half."""
    shown = preview.stored_preview(text, PATH)
    assert shown == f"<persisted-output>\n{size}, {HEAD}{start}{END}"


@given(TEXTS)
@example("</persisted-output" * 120)
def test_no_text_closes_the_tag(text: str) -> None:
    """A text's own closing tags are broken up, and nothing else of its beginning is changed."""
    shown = preview.stored_preview(text, PATH)
    assert len(CLOSING.findall(shown)) == 1
    assert text.replace("&lt;", "<").startswith(beginning(shown).replace("&lt;", "<"))
    assert len(shown) < LEAST_CHARACTERS


@given(TEXTS)
def test_a_long_text_is_shown_to_its_half_at_least(text: str) -> None:
    """Of a text of more than 2,000 bytes 1,000 at least are shown, of a shorter one the most."""
    size = len(text.replace("&lt;", "<").encode())
    start = beginning(preview.stored_preview(text, PATH)).replace("&lt;", "<")
    assert len(start.encode()) >= min(1_000, size - 1)


def test_a_cleared_result_says_where_its_whole_is() -> None:
    """What stands for an old result is one fixed line and the path."""
    assert preview.cleared_text(PATH) == f"[Old tool result content cleared]\n{PATH}"
