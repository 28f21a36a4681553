"""Reading transcripts as they grow."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.conversation.pieces import GIVEN_CHARACTERS
from memd.transcripts.opening import LINE_BYTES
from memd.transcripts.stream import StreamPart, TranscriptRefusedError, TranscriptStream
from tests.transcripts.shapes import (
    Line,
    call,
    claude,
    codex,
    compacted,
    encoded,
    gemini,
    reply,
    stream_of,
    whole,
)

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("now", [b"", b"x\n", b'{"type":"user","message":{"content":"new"}}\n' * 9])
def test_another_file_is_read_from_its_start(tmp_path: Path, now: bytes) -> None:
    """A cut, emptied or replaced file starts over, and says so; what went before is forgotten."""
    path = tmp_path / "s.jsonl"
    stream = stream_of(
        path, claude("user", "u1", "old"), {"type": "ai-title", "aiTitle": "old"}, *compacted("")
    )
    assert not stream.more().restarted
    assert stream.last_event == "boundary"
    path.write_bytes(now)
    part = stream.more()
    assert (part.restarted, stream.last_event) == (True, "")
    assert [piece.text for piece in part.pieces] == ["new"] * now.count(b"new")
    assert not stream.more().restarted


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
            with pytest.raises(TranscriptRefusedError):
                stream.more()
        assert (stream.last_event, stream.sub_agent) == ("", False)


def test_a_transcript_may_go_and_come_back(tmp_path: Path) -> None:
    """A file that cannot be read for a while costs nothing of what was read."""
    path = tmp_path / "s.jsonl"
    stream = stream_of(path, claude("user", "u1", "one"))
    stream.more()
    path.rename(tmp_path / "away")
    with pytest.raises(TranscriptRefusedError):
        stream.more()
    (tmp_path / "away").rename(path)
    with path.open("ab") as file:
        file.write(encoded([claude("user", "u2", "two")]))
    part = stream.more()
    assert ([piece.text for piece in part.pieces], part.restarted) == (["two"], False)


def test_a_format_that_says_nothing_is_reported(tmp_path: Path) -> None:
    """Lines of unknown kinds and messages of an unknown shape are a problem, no lines are none."""
    path = tmp_path / "s.jsonl"
    assert "none of 3 lines" in stream_of(path, *[{"kind": "turn"}] * 3).more().problem
    assert "none of 1 messages" in stream_of(path, claude("user", "u", {"parts": 1})).more().problem
    assert stream_of(path).more().problem == ""


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


def test_a_calls_input_is_there(tmp_path: Path) -> None:
    """A call has its input as recorded, long texts cut and half characters made whole."""
    long = "x" * (GIVEN_CHARACTERS + 1)
    given = {"command": "ls", "edits": [{"new": long, "deep": {"n": 1, "half": "\ud83d"}}]}
    (piece,) = (
        stream_of(tmp_path / "s.jsonl", reply("a", "m", call("t", "Bash", **given))).more().pieces
    )
    assert piece.call is not None
    edits = [{"new": long[:-1], "deep": {"n": 1, "half": "?"}}]
    assert piece.call.given == {"command": "ls", "edits": edits}
    patch = "*** Begin Patch\n*** Add File: a.py\n"
    line = codex(
        "response_item", type="custom_tool_call", call_id="c", name="apply_patch", input=patch
    )
    (piece,) = stream_of(tmp_path / "s.jsonl", line).more().pieces
    assert piece.call is not None
    assert piece.call.given == {"input": patch}


def test_what_is_nested_too_deep_is_passed_over(tmp_path: Path) -> None:
    """Input or content of a thousand levels costs its own line alone."""
    deep: Any = "x"
    for _ in range(480):
        deep = [deep]
    lines = [reply("a", "m", call("t", "Bash", deep=deep)), claude("user", "u", [deep])]
    lines += [codex("compacted", replacement_history=deep), claude("user", "u", "last")]
    assert stream_of(tmp_path / "s.jsonl", *lines).more().pieces[-1].text == "last"


def test_titles_are_events(tmp_path: Path) -> None:
    """A client's title counts until the person gives one; what is said again is no news."""
    said = [("ai-title", "A"), ("ai-title", "A"), ("ai-title", "B"), ("custom-title", "B")]
    said += [("custom-title", "C"), ("ai-title", "D"), ("custom-title", ""), ("custom-title", "E")]
    names = {"ai-title": "aiTitle", "custom-title": "customTitle"}
    lines = [{"type": kind, names[kind]: title} for kind, title in said]
    pieces = stream_of(tmp_path / "s.jsonl", *lines).more().pieces
    assert [(piece.event, piece.text) for piece in pieces] == [("title", t) for t in "ABCE"]


@pytest.mark.parametrize(
    ("own", "session", "said"),
    [
        (
            claude("user", "u", "go", isSidechain=True),
            claude("user", "u", "go"),
            claude("user", "u", "x", isSidechain=True),
        ),
        (
            codex("session_meta", source={"subagent": "review"}),
            codex("session_meta", source="cli"),
            codex("event_msg", type="user_message", message="x"),
        ),
        (
            {"sessionId": "s", "projectHash": "h", "kind": "subagent"},
            {"sessionId": "s", "projectHash": "h", "kind": "main"},
            gemini("user", "u", "x"),
        ),
    ],
)
def test_a_sub_agents_file_is_known(tmp_path: Path, own: Line, session: Line, said: Line) -> None:
    """A file whose first line is a sub-agent's says nothing; in a session, what it says is none."""
    stream = stream_of(tmp_path / "s.jsonl", own, said)
    assert (whole(stream), stream.sub_agent) == ((), True)
    stream = stream_of(tmp_path / "s.jsonl", session, said)
    assert (whole(stream) == (), stream.sub_agent) == (False, False)
