"""Unified diffs."""

from memd.text import unified


def test_only_a_line_feed_ends_a_line() -> None:
    """CR, form feeds and the like are a part of a person's line."""
    assert unified.lines("a\r\nb\x0cc\u2028d") == ["a\r\n", "b\x0cc\u2028d"]
    assert unified.lines("") == []


def test_versions_are_named_and_last_lines_marked() -> None:
    """A file that comes or goes has no name on that side; a line without its end says so."""
    assert unified.names("a.md", None, b"") == ("/dev/null", "b/a.md")
    assert "".join(unified.diff("a.md", ["x\n"], None)) == (
        "--- a/a.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )
    ended = list(unified.diff("a.md", ["x\n"], ["y"]))
    assert ended[-1] == "+y\n\\ No newline at end of file\n"


def test_equal_texts_have_no_diff() -> None:
    """Where nothing differs there is nothing to show."""
    assert list(unified.diff("a.md", ["x"], ["x"])) == []
    assert list(unified.diff("a.md", None, [])) == []
