"""Tools of a conversation."""

import pytest

from memd.transcripts.tools import (
    SHORT_CHARACTERS,
    absolute,
    is_own,
    origin,
    patched,
    short,
    writes,
)


@pytest.mark.parametrize(
    ("name", "whose", "own"),
    [
        ("WebFetch", "web", False),
        ("web_search", "web", False),
        ("mcp__hub__get", "mcp", False),
        ("mcp__memd__memory_read", "tool", True),
        ("memory", "tool", True),
        ("Read", "tool", False),
        ("", "tool", False),
    ],
)
def test_tools_are_known_by_name(name: str, whose: str, own: bool) -> None:  # noqa: FBT001 - a table's column
    """Web and servers are outside, memd is itself, the rest is the machine's."""
    assert (origin(name), is_own(name)) == (whose, own)


def test_calls_are_short() -> None:
    """A line has the tool, what says most of its input, and a bound."""
    assert short("Read", {"limit": 3, "file_path": "/a"}) == "Read /a"
    assert short("Bash", {"command": ["ls", "-l"]}) == 'Bash ["ls", "-l"]'
    assert short("Odd", {"x": 1}) == "Odd"
    assert len(short("Bash", {"command": "x" * 999})) == SHORT_CHARACTERS


def test_writes_are_absolute() -> None:
    """Each writing tool names its path; a memory tool's lies below its root."""
    assert list(writes("Edit", {"file_path": "a"}, "/p")) == ["/p/a"]
    assert list(writes("memory", {"command": "delete", "path": "a"}, "")) == ["/memories/a"]
    assert list(writes("mcp__memd__memory_delete", {"path": "/a"}, "")) == ["/memories/a"]
    assert list(writes("mcp__memd__memory_read", {"path": "/a"}, "")) == []
    assert list(writes("Write", {"file_path": 7}, "")) == []
    assert absolute("a/../b", "") == "/b"


def test_a_patch_names_its_files() -> None:
    """Added, changed, removed and moved files are written; other text names none."""
    patch = (
        "*** Begin Patch\n*** Add File: a.md\n+x\n*** Update File: b\n*** Move to: /c\n"
        "*** Delete File: d\n*** Add File: e\0\n*** End Patch\n"
    )
    assert list(patched(f"apply_patch <<E\n{patch}E", "/p")) == ["/p/a.md", "/p/b", "/c", "/p/d"]
    assert list(patched("*** Add File: a.md", "/p")) == []
