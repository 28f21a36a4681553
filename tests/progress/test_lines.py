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
