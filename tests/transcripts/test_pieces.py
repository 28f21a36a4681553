"""Pieces of a conversation."""

import pytest

from memd.core.tags import CLOSE, OPEN
from memd.transcripts.pieces import (
    TEXT_CHARACTERS,
    joined,
    members,
    other_words,
    own_words,
    parse_time,
    string,
)


def test_texts_are_made_safe() -> None:
    """Half characters are replaced, anything else than a text is none, a paste is cut."""
    assert (string("a\ud83d"), string(7), string(None)) == ("a?", "", "")
    assert len(own_words("x" * (TEXT_CHARACTERS + 1))) == TEXT_CHARACTERS
    assert (members([]), members({"a": 1})) == ({}, {"a": 1})


def test_insertions_go_by_whose_words_they_are_in() -> None:
    """Reminders are cut out of the user's words alone, memd's insertions out of all."""
    text = f"<system-reminder>r</system-reminder> a {OPEN}m{CLOSE}"
    assert own_words(text) == "a"
    assert other_words(text) == "<system-reminder>r</system-reminder> a"


def test_outputs_are_put_together() -> None:
    """A text or a list of texts is an output; other shapes say nothing."""
    assert joined("a") == "a"
    assert joined([{"text": "a"}, "b", {"text": "c"}]) == "a\nc"
    assert joined({"text": "a"}) == ""


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1970-01-01T00:00:01Z", 1.0),
        ("1970-01-01T00:00:01", 1.0),
        ("1970-01-01T01:00:01+01:00", 1.0),
        ("0001-01-01T00:00:00Z", None),
        ("yesterday", None),
        (17, None),
    ],
)
def test_times_are_read(value: object, seconds: float | None) -> None:
    """ISO times become seconds, everything else nothing."""
    assert parse_time(value) == seconds
