"""The answers of the memory tool in their documented form."""

import pytest

from memd.memories import tool_text


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1K"),
        (1536, "1.5K"),
        (1 << 20, "1M"),
        (5 << 30, "5G"),
        (3000 << 30, "3000G"),
    ],
)
def test_sizes_are_short(count: int, words: str) -> None:
    """A size is a number and one letter."""
    assert tool_text.size(count) == words


def test_lines_are_numbered_in_six_places() -> None:
    """A file is shown with a number of six places and a tab before each line."""
    shown = tool_text.content("/memories/a.md", "a\nb\n", None)
    assert shown == (
        "Here's the content of /memories/a.md with line numbers:\n     1\ta\n     2\tb\n     3\t"
    )
    assert tool_text.content("/m", "a\nb\nc", (2, -1)).endswith("\n     2\tb\n     3\tc")


def test_a_listing_goes_two_levels_down() -> None:
    """Folders stand before what lies in them, deeper files count in their folder's size only."""
    files = {"b/c/d.md": 1024, "b/x.md": 512, "a.md": 1}
    assert tool_text.listing("/memories/", files).splitlines()[1:] == [
        "1.5K\t/memories",
        "1B\t/memories/a.md",
        "1.5K\t/memories/b/",
        "1K\t/memories/b/c/",
        "512B\t/memories/b/x.md",
    ]
