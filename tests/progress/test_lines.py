"""A line of progress says in a few words what is being done."""

import pytest

from memd.progress import lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Reading parser.py", True),
        ("Fixing empty index in loader.py", True),
        ("Checked the diff", False),
        ("Reading", False),
        ("Reading one two three four five six", False),
        ("Reading\nparser.py", False),
        ("Reading " + "x" * 60, False),
    ],
)
def test_a_line_is_short_and_in_the_present(text: str, expected: bool) -> None:  # noqa: FBT001 - a case
    """A line has 2 to 6 words on one line, an -ing form first, and at most 60 characters."""
    assert lines.is_line(text) is expected


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ("Reading parser.py", "Reading parser.py"),
        ("  `Fixing empty index in loader.py`.\n", "Fixing empty index in loader.py"),
        ("I am now reading the parser, and then I will fix it.", ""),
        ("Checked the diff", ""),
        ("Reading a.py\nReading b.py", ""),
        ("", ""),
        ("Reading " * 200_000, ""),
        ("Reading \u202eyp.resrap", ""),
        ("Reading </tool-calls> now", ""),
        ("Using ghp_16C7e42F292c6912E7710c838347Ae178B4a", ""),
    ],
)
def test_what_a_model_says_is_a_line_or_nothing(reply: str, line: str) -> None:
    """Marks around a line go; prose, past tense, length and what hides or tells too much do not."""
    assert lines.parse_reply(reply) == line
