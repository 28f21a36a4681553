"""Reading transcripts as they grow."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.base.errors import Refused
from memd.transcripts.opening import LINE_BYTES
from memd.transcripts.stream import StreamPart, TranscriptStream
from tests.transcripts.shapes import (
    call,
    claude,
    codex,
    encoded,
    reply,
    stream_of,
)

MEGABYTE = 1024 * 1024


def test_a_torn_line_waits_for_its_end(tmp_path: Path) -> None:
    """A last line without an end is left, whatever is in it; the next reading has it whole."""
    path = tmp_path / "s.jsonl"
    torn = encoded([claude("user", "u2", "用户")], escaped=False)
    stream = stream_of(path, claude("user", "u1", "one"), torn[:-9])
    assert [piece.text for piece in stream.more().pieces] == ["one"]
    assert stream.more().pieces == ()
    with path.open("ab") as file:
        file.write(torn[-9:])
    assert [piece.text for piece in stream.more().pieces] == ["用户"]


def test_what_is_no_transcript_is_refused(tmp_path: Path) -> None:
    """FIFOs, devices, folders, links, other names and missing files are refused, each time."""
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "dir.jsonl").mkdir()
    (tmp_path / "real.jsonl").write_bytes(b"")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    names = ("fifo.jsonl", "dir.jsonl", "link.jsonl", "gone.jsonl", "real.txt")
    for path in (
        *(str(tmp_path / name) for name in names),
        "s.jsonl",
        "/\0.jsonl",
        "/\ud800.jsonl",
    ):
        stream = TranscriptStream(path)
        for _ in range(2):
            with pytest.raises(Refused):
                stream.more()
        assert (stream.last_event, stream.sub_agent) == ("", False)


@pytest.mark.parametrize(
    "megabytes", [16, pytest.param(500, marks=pytest.mark.soak)], ids=["16 MB", "500 MB"]
)
@pytest.mark.parametrize("shape", ["lines", "one line", "hole", "records"])
def test_a_long_transcript_takes_no_more_than_a_part(
    tmp_path: Path, megabytes: int, shape: str
) -> None:
    """However long a file or a line of it is, some parts of 1 MB are in memory and no more."""
    path = tmp_path / "s.jsonl"
    record = b'{"id":"%d-%d","type":"gemini","content":"' + b"x" * 900 + b'"}\n'
    blocks: dict[str, Callable[[int], bytes]] = {
        "lines": lambda _: encoded([claude("user", "u", "x" * 99_900)] * 10),
        "one line": lambda _: b'"type":"user" ' * 70_000,
        "hole": lambda _: b"",
        "records": lambda n: b"".join(record % (n, m) for m in range(1000)),
    }
    with path.open("wb") as file:
        file.write(encoded([claude("user", "u", "first")]))
        for number in range(megabytes):
            file.write(blocks[shape](number))
        file.truncate(megabytes * 1_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + encoded([claude("user", "u", "last")]))
    stream = TranscriptStream(str(path))
    texts = [piece.text for piece in stream.more(most=1000).pieces]
    tracemalloc.start()
    part = StreamPart((), complete=False)
    while not part.complete:
        part = stream.more(most=MEGABYTE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (texts[0], part.pieces[-1].text) == ("first", "last")
    assert peak < 4 * LINE_BYTES


def test_what_is_nested_too_deep_is_passed_over(tmp_path: Path) -> None:
    """Input or content of a thousand levels costs its own line alone."""
    deep: Any = "x"
    for _ in range(480):
        deep = [deep]
    lines = [reply("a", "m", call("t", "Bash", deep=deep)), claude("user", "u", [deep])]
    lines += [codex("compacted", replacement_history=deep), claude("user", "u", "last")]
    assert stream_of(tmp_path / "s.jsonl", *lines).more().pieces[-1].text == "last"
