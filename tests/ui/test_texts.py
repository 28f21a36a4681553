"""Values as a page shows them: texts, Markdown and diffs."""

import difflib
import re
from datetime import UTC
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text.invisible import find
from memd.ui import texts
from memd.ui.views import body_of, is_editable

NOW = 1_772_539_200.0
TEXT = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\u202e\u200b<&"))
)


@given(TEXT)
def test_nothing_hidden_stays_hidden(text: str) -> None:
    """What a template prints has no character that shows nothing or turns the direction."""
    assert find(texts.visible(text)) == ""


@given(st.text("a\n\r\u2028", max_size=2000), st.booleans())
def test_a_cut_text_loses_nothing_unsaid(text: str, whole: bool) -> None:  # noqa: FBT001
    """What is shown and what is said to be left are the text together."""
    shown = texts.cut(text * 10, whole=whole)
    assert (text * 10).startswith(shown.text)
    assert len(shown.text) + shown.left == len(text) * 10
    assert not (whole and shown.left)


def test_a_line_without_end_is_cut() -> None:
    """A line of 64 KiB costs a page no more than its beginning."""
    assert texts.cut("x" * 65_536).left == 65_536 - texts.TEXT_CHARACTERS
    assert len(texts.line("x" * 65_536)) == texts.LINE_CHARACTERS


@given(st.dictionaries(st.text("abc", min_size=1), TEXT))
def test_an_address_carries_any_value(values: dict[str, str]) -> None:
    """What an address is made of comes out of it, and leads to no other server."""
    made = texts.url("page", values)
    parts = urlsplit(made)
    assert (parts.scheme, parts.netloc, parts.path) == ("", "", "page")
    given_ = {name: [value] for name, value in values.items() if value}
    assert parse_qs(parts.query, keep_blank_values=True) == given_
    assert made.isascii()


@pytest.mark.parametrize(
    ("value", "ago"),
    [
        (NOW, "less than a minute ago"),
        (NOW - 120, "2 minutes ago"),
        (NOW - 3 * 3600, "3 hours ago"),
        (NOW - 86_400, "1 day ago"),
        (NOW + 7200, "in 2 hours"),
        ("2026-03-03T11:00:00Z", "1 hour ago"),
    ],
)
def test_a_time_is_told_from_now(value: object, ago: str) -> None:
    """A time is a distance for people and an instant for machines."""
    made = texts.instant(value, NOW, UTC)
    assert made is not None
    assert made.ago == ago
    assert made.iso.endswith("+00:00")


def test_what_is_no_time_is_none() -> None:
    """Null, nonsense and times beyond the calendar are no times."""
    values: tuple[object, ...] = (None, "", "soon", -1, {}, 1e300)
    assert [texts.instant(value, NOW) for value in values] == [None] * 6


def test_numbers_have_plurals() -> None:
    """One of a thing is singular, any other number plural, and sizes have units."""
    assert [texts.counted(n, "memory", "memories") for n in (0, 1, 1200)] == [
        "0 memories", "1 memory", "1,200 memories",
    ]  # fmt: skip
    assert [texts.size(n) for n in (0, 1, 1023, 1024, 5 * 1024**2)] == [
        "0 bytes", "1 byte", "1,023 bytes", "1.0 KiB", "5.0 MiB",
    ]  # fmt: skip


LINES = st.lists(st.text("ab+-@ ", max_size=4), max_size=12)


@given(LINES, LINES)
def test_a_diff_tells_both_sides(old: list[str], new: list[str]) -> None:
    """The rows have each side's lines, whatever the lines begin with."""
    before, after = ([f"{line}\n" for line in lines] for lines in (old, new))
    text = "".join(difflib.unified_diff(before, after, "a/x", "b/x", n=100))
    rows = texts.diff_lines(text)
    if text:
        assert [line for kind, line in rows if kind in ("same", "removed")] == old
        assert [line for kind, line in rows if kind in ("same", "added")] == new


def test_notes_of_a_diff_are_notes() -> None:
    """What a diff says beside the lines is no line of the file."""
    text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n@@ -9 +9 @@\n c\n"
    assert texts.diff_lines(text) == [
        ("removed", "a"),
        ("note", "No newline at end of file"),
        ("added", "b"),
        ("note", "…"),
        ("same", "c"),
    ]
    assert texts.diff_lines("--- a/x\n+++ b/x\ntoo large\n") == [("note", "too large")]
    assert texts.diff_lines("") == []


def test_a_memory_is_its_head_and_its_text() -> None:
    """Frontmatter is told apart from text; what has none is all text."""
    assert body_of("---\nname: a\n---\n\ntext\n") == "text\n"
    assert body_of("---\r\nname: a\r\n---\r\ntext") == "text"
    assert body_of("text\n---\n") == "text\n---\n"
    assert body_of("---\nname: a\n") == "---\nname: a\n"
    assert body_of("") == ""


# What Markdown and HTML are made of, and what hides.
_PIECES = st.sampled_from([
    "a", "<script>", "</script>", "<img", "src=x", "onerror=y>", "<!--", "-->", "<a", "href='x'>",
    "http://e.example", "<http://e.example>", "[a](javascript:x)", "![a](http://e.example/x.png)",
    "[a]:", "[a]", "&lt;", "&#8238;", "&#x3c;", "`", "```", "~~~", "*", "**", "_", "#", "-", ">",
    "|", "\\", '"', "\n", " ", "\na|b\n:-|-:\n", "\u202e", "\u200b", "\x00",
])  # fmt: skip
_ELEMENTS = {
    "p", "h3", "ul", "ol", "li", "em", "strong", "code", "pre", "blockquote", "hr", "br", "table",
    "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_ATTRIBUTE = re.compile(r'class="language-[^"]*"|start="\d+"')


@given(st.lists(st.one_of(_PIECES, TEXT), max_size=30))
def test_no_markdown_acts(pieces: list[str]) -> None:
    """Markdown becomes elements that only show: no link, picture, script or HTML of its own."""
    html = texts.markdown("".join(pieces))
    for name, attributes in re.findall(r"</?(\w+)([^>]*)>", html):
        assert name in _ELEMENTS
        assert _ATTRIBUTE.sub("", attributes).strip(" /") == ""
    assert "<" not in re.sub(r"</?\w[^<>]*>", "", html)
    assert find(unescape(html)) == ""


def test_what_is_no_markdown_here_stays_as_it_is() -> None:
    """Links, pictures, HTML and entities are shown as they were written."""
    for text in ("[a](b.md)", "![a](b.png)", "<http://a.example>", "<b>x</b>", "&#8238;"):
        assert unescape(texts.markdown(text)) == f"<p>{text}</p>\n"


@pytest.mark.parametrize(
    ("content", "editable"),
    [
        ("a\nb\n", True),
        ("a\r\nb\r\n", True),
        ("emoji 👩‍👧\n", True),
        ("a\r\nb\n", False),
        ("a\rb", False),
        ("a\u202eb", False),
        ("a\u200bb", False),
        ("a\x00b", False),
    ],
)
def test_what_a_form_would_change_is_not_edited_in_one(content: str, editable: bool) -> None:  # noqa: FBT001
    """Only a text that comes back from a browser as it went is offered for editing."""
    assert is_editable(content) is editable
