"""Reading stored results in parts."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.client.stored import LEAST_BYTES, MOST_BYTES, read_stored

_HEAD = re.compile(r"\[bytes (\d+) to (\d+) of (\d+), (?:go on with offset (\d+)|its end)\]\n")


def stored(folder: Path, content: bytes) -> str:
    """Return the path of a new stored result."""
    path = folder / "key" / "session" / "tool-results" / "toolu_1.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return str(path)


@given(st.text(st.sampled_from("a\n\r好😀é"), max_size=3_000), st.integers(-5, 2_000))
@settings(max_examples=100, deadline=None)
def test_the_parts_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, limit: int
) -> None:
    """Any text is read back whole, part by part, whatever the size of a part."""
    path, offset, parts = stored(tmp_path_factory.mktemp("r"), text.encode()), "0", []
    while offset:
        shown = read_stored(path, int(offset), limit)
        part, match = shown.partition("\n")[2], _HEAD.match(shown)
        assert match is not None
        assert int(match[2]) - int(match[1]) == len(part.encode()) <= max(limit, LEAST_BYTES)
        parts.append(part)
        offset = match[4]
    assert "".join(parts) == text


def test_any_offset_and_limit_are_answered(tmp_path: Path) -> None:
    """An offset within a character or past the end, and a limit of any size, are no errors."""
    path = stored(tmp_path, ("好" * 50_000).encode())
    assert read_stored(path, 1, 1_000).split("\n", 1)[1].startswith("\N{REPLACEMENT CHARACTER}")
    assert read_stored(path, 10**12).startswith("[bytes 1000000000000 to 1000000000000 of 150000,")
    assert read_stored(path, -5).startswith("[bytes 0 to 19998 of 150000,")
    assert len(read_stored(path, 0, 10**12).encode()) <= MOST_BYTES + 100


def test_bytes_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    """A file with other bytes than UTF-8 is read to its end."""
    path = stored(tmp_path, b"\x80" * 5_000)
    assert read_stored(path, 0, 1_000).startswith("[bytes 0 to 500 of 5000,")
    assert read_stored(path, 4_600, 1_000).endswith("\N{REPLACEMENT CHARACTER}" * 400)


def test_a_folder_is_no_result(tmp_path: Path) -> None:
    """What is no file, and what is not there, are errors of the system."""
    path = stored(tmp_path, b"x")
    for other in (str(Path(path).parent), f"{path}/x", f"{path}x", "no-such"):
        with pytest.raises((OSError, ValueError)):
            read_stored(other)
