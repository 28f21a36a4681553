"""Reading transcripts by offset."""

import itertools
import json
import os
import tempfile
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.core.values import Message
from memd.transcripts.opening import LINE_BYTES
from memd.transcripts.reading import TranscriptRefusedError, check, read

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
    results: list[str] = []
    offset, marker, parts, complete = 0, "", 0, False
    while not complete:
        part = read(str(path), offset, marker, most=1000)
        results += [m.text for m in part.messages]
        offset, marker, complete, parts = part.offset, part.marker, part.complete, parts + 1
    assert results == [str(number) for number in range(100)]
    assert parts > 5


def test_only_proper_files_are_read(tmp_path: Path) -> None:
    """Relative names, other endings, folders, FIFOs and missing files are refused at once."""
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "dir.jsonl").mkdir()
    bad = ["s.jsonl", "/etc/passwd", "/a\0.jsonl", "/\ud800.jsonl"]
    bad += [str(tmp_path / name) for name in ("fifo.jsonl", "dir.jsonl", "missing.jsonl")]
    for path in bad:
        for reader in (read, check):
            with pytest.raises(TranscriptRefusedError):
                reader(path)


def flat(messages: Iterable[Message]) -> list[tuple[str, str, str]]:
    """Return whose words came in which order; blocks of one message may be apart."""
    results = []
    for message in messages:
        for words in (*message.text.split("\n\n"), *message.calls):
            results += [(message.origin, message.tool, words)] if words else []
    return results


def assistant(*blocks: dict[str, Any], number: str = "") -> bytes:
    """Return an assistant's line, a message of its own where none is named."""
    number = number or f"a{next(_NUMBERS)}"
    value = {"type": "assistant", "uuid": number, "message": {"id": number, "content": blocks}}
    return json.dumps(value).encode() + b"\n"


def result(call: str, text: str) -> bytes:
    """Return the line of a tool's output."""
    block = {"type": "tool_result", "tool_use_id": call, "content": text}
    value = {"type": "user", "uuid": "r", "message": {"content": [block]}}
    return json.dumps(value).encode() + b"\n"


def rollout(kind: str, **payload: Any) -> bytes:
    """Return a line of Codex's rollout file."""
    return json.dumps({"timestamp": "", "type": kind, "payload": payload}).encode() + b"\n"


def said(text: str) -> bytes:
    """Return a user's words in a rollout file."""
    return rollout("event_msg", type="user_message", message=text)


def test_the_end_of_a_long_file_is_enough(tmp_path: Path) -> None:
    """A first reading may begin at a turn near the end; the cursor stands behind everything."""
    path = tmp_path / "s.jsonl"
    before = line("one") + assistant({"type": "text", "text": "x" * 500})
    rest = assistant({"type": "text", "text": "late"}) + line("two") + line("three")
    path.write_bytes(before + rest)
    part = read(str(path), tail=len(rest) + 20)
    assert [m.text for m in part.messages] == ["two", "three"]
    assert (part.offset, part.complete) == (path.stat().st_size, True)
    with path.open("ab") as file:
        file.write(line("four") + line("five"))
    after = read(str(path), part.offset, part.marker, tail=10)
    assert [m.text for m in after.messages] == ["four", "five"]


def test_a_known_format_that_yields_nothing_is_reported(tmp_path: Path) -> None:
    """Messages of a known kind with words in an unknown place are told, and noise is not."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(rollout("event_msg", type="user_message", words="x"))
    assert "none of 1 messages" in read(str(path)).problem
    path.write_bytes(rollout("session_meta", cwd="/p"))
    assert read(str(path)).problem == ""


_TURNS = st.lists(
    st.one_of(
        st.builds(line, st.text(max_size=5)),
        st.builds(lambda t: assistant({"type": "text", "text": t}), st.text(max_size=5)),
        st.builds(
            lambda n, name: (
                assistant({"type": "tool_use", "id": n, "name": name, "input": {"path": "a"}})
                + result(n, "out")
            ),
            st.uuids().map(str),
            st.sampled_from(["WebFetch", "Read", "mcp__hub__get"]),
        ),
        st.builds(
            lambda a, b, n: (
                assistant({"type": "text", "text": a}, number=n)
                + assistant({"type": "text", "text": b}, number=n)
            ),
            st.text(max_size=5),
            st.text(max_size=5),
            st.uuids().map(str),
        ),
        st.builds(said, st.text(max_size=5)),
        st.sampled_from([b"{}\n", b"junk\n", b"\n", b'{"type":"user"}\n']),
    ),
    max_size=10,
)


@settings(max_examples=60, deadline=None)
@given(_TURNS, st.lists(st.integers(0, 2000), max_size=5))
def test_any_pieces_make_the_same_messages(turns: list[bytes], cuts: list[int]) -> None:
    """However a file grows between readings, they find together what one reading finds."""
    content = b"".join(turns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        results: list[Message] = []
        offset, marker = 0, ""
        for cut in (*sorted(cuts), len(content)):
            path.write_bytes(content[:cut])
            part = read(str(path), offset, marker)
            results += part.messages
            offset, marker = part.offset, part.marker
            assert not part.restarted
        assert flat(results) == flat(read(str(path)).messages)


@settings(max_examples=60, deadline=None)
@given(_TURNS, st.integers(1, 3000))
def test_a_tail_is_the_end_of_the_whole(turns: list[bytes], tail: int) -> None:
    """What a tail finds are the last messages, and it begins where the user speaks."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        path.write_bytes(b"".join(turns))
        whole, part = read(str(path)), read(str(path), tail=tail)
        end = flat(part.messages)
        assert end == flat(whole.messages)[len(flat(whole.messages)) - len(end) :]
        spoken = [m.origin == "user" for m in part.messages]
        assert len(part.messages) == len(whole.messages) or not any(spoken) or spoken[0]
        assert part.offset in (0, whole.offset)
