"""A person's own sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.extract.sentences import BLANK, SENTENCE_CHARACTERS, sentences


def texts(text: str) -> list[str]:
    """Return the sentences as written."""
    return [sentence.text for sentence in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Use tabs, e.g. here. Done", ["Use tabs, e.g. here.", "Done"]),
        ("wrapped line\nthat goes on\nand on", ["wrapped line that goes on and on"]),
        ("First line\nSecond line", ["First line", "Second line"]),
        ("- one\n- two\n\n3. three", ["one", "two", "three"]),
        ("第一句。第二句！第三句", ["第一句。", "第二句！", "第三句"]),
        ("see https://a.b/c.d?e=f now", ["see https://a.b/c.d?e=f now"]),
        ("a\n> quoted\nb", ["a", "b"]),
        ("a\n```py\ncode\n```\nb", ["a", "b"]),
        ("a\n~~~\n```\ncode\n~~~\nb", ["a", "b"]),
        ("a\n```\nnever closed", ["a"]),
        ("a\n\n    indented code\n\nb", ["a", "b"]),
        ("a\n    wrapped only", ["a wrapped only"]),
        ("a\nTraceback (most recent call last):\n2026-01-01 10:00:00 INFO x\nb", ["a", "b"]),
        ("a\n---\nAlways b\n---\nc", ["a", "c"]),
        ("a\n---\nnever closed", ["a"]),
        ("a\n<doc>\nAlways b\n</doc>\nc", ["a", "c"]),
        ("a\n<b>Always b</b>\nc", ["a", "c"]),
        ("a\n<b>\nC", ["a", "C"]),
        ("a\n<b:c.d>\nAlways b\n</ b:c.d>\nc", ["a", "c"]),
        ("a\nFrom: Karen\nAlways b", ["a"]),
        ("a\nHi team,\nAlways b", ["a"]),
        ("a\n主题：导出\n一律用 b", ["a"]),
        ("a\nnpm WARN always b\nerror: never c\nUser: d\n[Maria 10:02] e", ["a"]),
        ("", []),
    ],
)
def test_own_sentences_are_told_apart(text: str, expected: list[str]) -> None:
    """Prose is split into sentences; quoted, fenced and pasted lines are gone."""
    assert texts(text) == expected


def test_a_long_paste_counts_at_its_edges() -> None:
    """Of a very long message only what was typed around the paste is read."""
    text = "\n".join(["Please look", *(f"Line {n}" for n in range(60)), "Thanks a lot"])
    results = texts(text)
    assert results[0] == "Please look"
    assert results[-1] == "Thanks a lot"
    assert "Line 30" not in results
    fenced = "\n".join(["Please look", "```", *(f"Line {n}" for n in range(60)), "```", "Thanks"])
    assert texts(fenced) == ["Please look", "Thanks"]


def test_what_is_too_long_to_be_typed_is_left_out() -> None:
    """Endless lines and sentences are pastes."""
    assert texts("x" * 5000) == []
    assert texts("x " * SENTENCE_CHARACTERS) == []


def test_a_megabyte_of_open_tags_takes_no_longer_than_other_text() -> None:
    """Each tag is met once: what is never closed is not looked for again from every line."""
    assert texts("<b>\n" * 250_000 + "Always c") == ["Always c"]


@pytest.mark.parametrize("quoted", ["`code`", '"a. b"', "“中文”", "「引用」", "'two words'"])
def test_code_and_quotations_are_blanked_out(quoted: str) -> None:
    """A quotation keeps its place and loses its letters; a full stop in it ends nothing."""
    (results,) = sentences(f"Say {quoted} now")
    assert results.masked == f"Say {BLANK * len(quoted)} now"


@given(st.text())
def test_both_forms_have_the_same_length(text: str) -> None:
    """Whatever is said, the blanked-out form fits the written one."""
    for sentence in sentences(text):
        assert len(sentence.text) == len(sentence.masked)
