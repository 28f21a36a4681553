"""Reading transcripts by offset."""

import itertools
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.store.transcripts import LINE_BYTES, TranscriptRefusedError, read

_NUMBERS = itertools.count()


def line(text: str) -> bytes:
    """Return a user's line with an id of its own."""
    value = {
        "type": "user",
        "uuid": f"u{next(_NUMBERS)}",
        "message": {"role": "user", "content": text},
    }
    return json.dumps(value).encode() + b"\n"


def texts(path: Path, offset: int = 0, marker: str = "") -> list[str]:
    """Return what a reading finds."""
    return [message.text for message in read(str(path), offset, marker).messages]


def test_reading_goes_on_where_it_ended(tmp_path: Path) -> None:
    """A second reading finds exactly what was added."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(line("one"))
    first = read(str(path))
    assert first.offset == path.stat().st_size
    with path.open("ab") as file:
        file.write(line("two"))
    second = read(str(path), first.offset, first.marker)
    assert [m.text for m in second.messages] == ["two"]
    assert not second.restarted
    assert read(str(path), second.offset, second.marker).messages == ()


def test_a_torn_last_line_waits(tmp_path: Path) -> None:
    """What has no line end yet is left for the next reading."""
    path = tmp_path / "s.jsonl"
    one, two = line("one"), line("two")
    path.write_bytes(one + two[:-1])
    part = read(str(path))
    assert ([m.text for m in part.messages], part.offset) == (["one"], len(one))
    path.write_bytes(one + two)
    assert texts(path, part.offset, part.marker) == ["two"]


@pytest.mark.parametrize("now", [b"", b"x\n", line("other") + line("other") + line("other")])
def test_another_file_is_read_from_its_start(tmp_path: Path, now: bytes) -> None:
    """A cut, emptied or replaced file starts over."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(line("one") + line("two"))
    part = read(str(path))
    path.write_bytes(now)
    again = read(str(path), part.offset, part.marker)
    assert again.restarted
    assert len(again.messages) == now.count(b"other")


def test_noise_passes_without_harm(tmp_path: Path) -> None:
    """Junk, foreign bytes, unknown kinds and deep nesting change nothing."""
    path = tmp_path / "s.jsonl"
    foreign = line("caf\x00").replace(b"\\u0000", b"\xe9")
    noise = b'{"type":"user"\n\xff\xfe\n\n"user"\n' + b"[" * 100_000 + b'"user"\n'
    path.write_bytes(noise + line("one") + b'{"type":"last-prompt"}\n' + foreign)
    assert texts(path) == ["one", "caf\ufffd"]


def test_a_huge_line_is_passed_over(tmp_path: Path) -> None:
    """A line above the limit costs no memory and no other line."""
    path = tmp_path / "s.jsonl"
    with path.open("wb") as file:
        file.write(line("one"))
        for _ in range(5 * LINE_BYTES // (1 << 20)):
            file.write(b'"user"  ' * (1 << 17))
        file.write(b"\n" + line("two"))
    tracemalloc.start()
    part = read(str(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [m.text for m in part.messages] == ["one", "two"]
    assert peak < 3 * LINE_BYTES
    with path.open("ab") as file:
        file.write(b"x" * (LINE_BYTES + 5))
    assert read(str(path), part.offset, part.marker).offset == part.offset


def test_a_long_file_is_read_in_parts(tmp_path: Path) -> None:
    """A part ends at a line; the next one goes on, and nothing is lost or doubled."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(line(str(number)) for number in range(100)))
    found: list[str] = []
    offset, marker, parts, complete = 0, "", 0, False
    while not complete:
        part = read(str(path), offset, marker, most=1000)
        found += [m.text for m in part.messages]
        offset, marker, complete, parts = part.offset, part.marker, part.complete, parts + 1
    assert found == [str(number) for number in range(100)]
    assert parts > 5


def test_a_format_that_yields_nothing_is_reported(tmp_path: Path) -> None:
    """A file in which no line is known says so; an empty one is fine."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"kind":"turn","text":"user"}\n' * 3)
    assert "none of 3 lines" in read(str(path)).problem
    path.write_bytes(b"")
    assert read(str(path)).problem == ""


def test_only_proper_files_are_read(tmp_path: Path) -> None:
    """Relative names, other endings, folders, FIFOs and missing files are refused at once."""
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "dir.jsonl").mkdir()
    bad = ["s.jsonl", "/etc/passwd", "/a\0.jsonl", "/\ud800.jsonl"]
    bad += [str(tmp_path / name) for name in ("fifo.jsonl", "dir.jsonl", "missing.jsonl")]
    for path in bad:
        with pytest.raises(TranscriptRefusedError):
            read(path)


@given(st.lists(st.text(max_size=20), max_size=8), st.integers(0, 400))
def test_two_readings_make_one(words: list[str], cut: int) -> None:
    """Wherever the writer stood at the first reading, both together find each line once."""
    content = b"".join(line("t" + word) for word in words)
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"memd-test-{os.getpid()}.jsonl"
    try:
        path.write_bytes(content[:cut])
        first = read(str(path))
        path.write_bytes(content)
        second = read(str(path), first.offset, first.marker)
        whole = read(str(path))
    finally:
        path.unlink()
    assert [m.text for m in first.messages + second.messages] == [m.text for m in whole.messages]
