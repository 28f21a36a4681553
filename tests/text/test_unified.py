"""Unified diffs."""

from hypothesis import given
from hypothesis import strategies as st

from memd.text import unified
from memd.text.unified import bounded


def test_versions_are_named_and_last_lines_marked() -> None:
    """A file that comes or goes has no name on that side; a line without its end says so."""
    assert unified.names("a.md", None, b"") == ("/dev/null", "b/a.md")
    assert "".join(unified.diff("a.md", ["x\n"], None)) == (
        "--- a/a.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )
    ended = list(unified.diff("a.md", ["x\n"], ["y"]))
    assert ended[-1] == "+y\n\\ No newline at end of file\n"


def test_a_change_is_a_unified_diff() -> None:
    """Old and new lines stand below both names, and a last line without its end is marked."""
    assert bounded("a.md", b"one\ntwo\n", b"one\n2") == (
        "--- a/a.md\n+++ b/a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n"
    )


def test_files_that_come_and_go_are_shown_whole() -> None:
    """The side on which there is no file is named so; an empty file has no lines."""
    assert bounded("a.md", None, b"x\n").startswith("--- /dev/null\n+++ b/a.md\n@@")
    assert bounded("a.md", b"x\n", None).startswith("--- a/a.md\n+++ /dev/null\n@@")
    assert bounded("a.md", b"x\n", b"x\n") == ""
    assert bounded("a.md", None, b"") == ""


def test_ends_of_lines_and_foreign_bytes_are_shown() -> None:
    """CRLF is a part of its line; a byte that is no text is U+FFFD, and never hides a change."""
    assert "-x\r\n+x\n" in bounded("a.md", b"x\r\n", b"x\n")
    assert "+caf�\n" in bounded("a.md", b"", b"caf\xe9\n")
    assert "bytes that are no text" in bounded("a.md", b"\xe9", b"\xe8")
    assert "-a\x0bb\n" in bounded("a.md", b"a\x0bb\n", b"c\n")


def test_a_long_diff_is_cut() -> None:
    """Lines, characters and what is compared at all have a bound, and the cut is told."""
    many = b"".join(b"%d\n" % n for n in range(4000))
    cut = bounded("a.md", b"", many)
    assert cut.count("\n") == 2001
    assert cut.endswith("+1996\n… the diff is longer\n")
    short = bounded("a.md", b"", many, 100)
    assert len(short) < 130
    assert short.endswith("… the diff is longer\n")
    assert "too large to be compared: 0 bytes before, 300000 after" in bounded(
        "a.md", b"", b"x" * 300_000
    )
    assert "too large" in bounded("a.md", b"\n" * 5001, None)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_two_texts_that_differ_have_a_diff(before: bytes, after: bytes) -> None:
    """Whatever the bytes are, a diff can be sent, and is empty for equal texts alone."""
    diff = bounded("a.md", before, after)
    diff.encode()
    assert bool(diff) == (before != after)
