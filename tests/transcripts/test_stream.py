"""Reading transcripts as they grow."""

import json
import os
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.conversation.history import ContextMeter, count
from memd.conversation.pieces import GIVEN_CHARACTERS, TranscriptPiece
from memd.transcripts.reading import LINE_BYTES
from memd.transcripts.stream import (
    StreamPart,
    TranscriptRefusedError,
    TranscriptStream,
    message_pieces,
)

Line = dict[str, Any]
TIME = "2026-03-03T09:00:00.000Z"
MEGABYTE = 1024 * 1024


def claude(kind: str, number: str, content: Any = None, **more: Any) -> Line:
    """Return a line of Claude Code's transcript."""
    message = more.pop("message", {"role": kind, "content": content})
    common = {"type": kind, "uuid": number, "timestamp": TIME, "isSidechain": False}
    return {**common, "cwd": "/p", "message": message, **more}


def reply(number: str, key: str, *blocks: Any, tokens: int = 0) -> Line:
    """Return one line of a reply, which repeats the reply's id and usage."""
    usage = {"input_tokens": 1, "cache_read_input_tokens": tokens, "output_tokens": 1}
    message = {"id": key, "content": list(blocks), "usage": usage if tokens else None}
    return claude("assistant", number, message=message)


def words(text: str) -> Line:
    """Return a text block."""
    return {"type": "text", "text": text}


def call(number: str, name: str, **given: Any) -> Line:
    """Return a tool-use block."""
    return {"type": "tool_use", "id": number, "name": name, "input": given}


def result(number: str, text: Any) -> Line:
    """Return a tool's result."""
    return {"type": "tool_result", "tool_use_id": number, "content": text}


def codex(kind: str, /, **payload: Any) -> Line:
    """Return a line of Codex's rollout file."""
    return {"timestamp": TIME, "type": kind, "payload": payload}


def gemini(kind: str, number: str, content: Any, **more: Any) -> Line:
    """Return a line of Gemini CLI's chat record."""
    return {"id": number, "timestamp": TIME, "type": kind, "content": content, **more}


def compacted(summary: str) -> list[Line]:
    """Return what Claude Code writes when it has compacted a conversation."""
    shown = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
    name = "<command-name>/compact</command-name>"
    return [
        {"type": "system", "subtype": "compact_boundary", "uuid": "b", "compactMetadata": {}},
        claude("user", "s", summary, **shown),
        claude("user", "c", "<local-command-caveat>x</local-command-caveat>", isMeta=True),
        claude("user", "n", name),
        claude("user", "o", "<local-command-stdout>Compacted</local-command-stdout>"),
    ]


def encoded(lines: Iterable[Line | bytes], *, escaped: bool = True) -> bytes:
    """Return the bytes of a file with these lines."""
    dump = partial(json.dumps, ensure_ascii=escaped)
    return b"".join(
        line if isinstance(line, bytes) else dump(line).encode("utf-8", "replace") + b"\n"
        for line in lines
    )


def whole(stream: TranscriptStream, **limits: int) -> tuple[TranscriptPiece, ...]:
    """Return all that a stream has, however many parts it takes."""
    pieces: list[TranscriptPiece] = []
    part = StreamPart((), complete=False)
    while not part.complete:
        part = stream.more(**limits)
        pieces += part.pieces
    return tuple(pieces)


def stream_of(path: Path, *lines: Line | bytes) -> TranscriptStream:
    """Return the stream of a new file with these lines."""
    path.write_bytes(encoded(lines))
    return TranscriptStream(str(path))


_SAID = st.sampled_from(
    ["", "fix it", "用户说：请修复", "a\nb", "\ud83d", "<memd-context>x", "é" * 9]
)
_ID = st.sampled_from(["k1", "k2", "k3", "k4"])
_CALLS = st.sampled_from(["Bash", "Read", "WebFetch", "mcp__hub__get"])
_CLAUDE: list[st.SearchStrategy[Any]] = [
    st.builds(lambda n, t: claude("user", n, t), _ID, _SAID),
    st.builds(lambda n, t: claude("user", n, [words(t), {"type": "image"}]), _ID, _SAID),
    st.builds(lambda n, k, t: reply(n, k, words(t), tokens=len(t)), _ID, _ID, _SAID),
    st.builds(lambda n, k: reply(n, k, {"type": "thinking", "thinking": "hm"}), _ID, _ID),
    st.builds(
        lambda n, k, c, t: reply(n, k, call(n, c, command=t), tokens=9), _ID, _ID, _CALLS, _SAID
    ),
    st.builds(lambda n, t: claude("user", n, [result(n, t), result("k1", [words(t)])]), _ID, _SAID),
    st.builds(lambda t: {"type": "custom-title", "customTitle": t}, _SAID),
    st.builds(lambda t: {"type": "ai-title", "aiTitle": t}, _SAID),
    st.builds(lambda n, t: claude("user", n, t, isSidechain=True), _ID, _SAID),
]
_CODEX: list[st.SearchStrategy[Any]] = [
    st.builds(lambda t: codex("event_msg", type="user_message", message=t), _SAID),
    st.builds(lambda p: codex("turn_context", cwd=p), st.sampled_from(["/p", "/q"])),
    st.builds(
        lambda n, t: codex(
            "response_item", type="message", role="assistant", id=n, content=[words(t)]
        ),
        _ID,
        _SAID,
    ),
    st.builds(
        lambda n, t: codex(
            "response_item",
            type="function_call",
            call_id=n,
            name="exec",
            arguments=json.dumps({"cmd": t}),
        ),
        _ID,
        _SAID,
    ),
    st.builds(
        lambda n: codex(
            "response_item",
            type="custom_tool_call",
            call_id=n,
            name="apply_patch",
            input="*** Begin Patch\n*** Update File: a.py\n",
        ),
        _ID,
    ),
    st.builds(
        lambda n, t: codex("response_item", type="function_call_output", call_id=n, output=t),
        _ID,
        _SAID,
    ),
    st.builds(
        lambda n: codex(
            "event_msg", type="token_count", info={"last_token_usage": {"total_tokens": n}}
        ),
        st.integers(0, 3),
    ),
    st.builds(lambda n: codex("token_usage_record", usage={"total_tokens": n}), st.integers(0, 3)),
    st.builds(lambda t: codex("compacted", message=t), _SAID),
    st.just(codex("session_meta", cwd="/r", source="cli")),
]
_GEMINI: list[st.SearchStrategy[Any]] = [
    st.builds(lambda n, t: gemini("user", n, t), _ID, _SAID),
    st.builds(lambda n, t: gemini("gemini", n, t, tokens={"total": len(t)}), _ID, _SAID),
    st.builds(
        lambda n, c, t: gemini(
            "gemini",
            n,
            "",
            toolCalls=[{"id": n, "name": c, "args": {"path": t}, "status": "success"}],
        ),
        _ID,
        _CALLS,
        _SAID,
    ),
    st.just({"sessionId": "s", "projectHash": "h", "kind": "main"}),
]
_NOISE = st.sampled_from([b"\n", b"junk\n", b'{"type":"user"}\n', b'{"type":"user","x":"\xff"}\n'])
_FILES = st.one_of(
    *(
        st.lists(
            st.one_of(
                st.one_of(*kinds).map(lambda line: [line]),
                _NOISE.map(lambda line: [line]),
                st.builds(compacted, _SAID),
            ),
            max_size=25,
        )
        for kinds in (_CLAUDE, _CODEX, _GEMINI)
    )
).map(lambda groups: [line for group in groups for line in group])


@settings(max_examples=150, deadline=None)
@given(
    lines=_FILES,
    escaped=st.booleans(),
    cuts=st.lists(st.integers(0, 10_000), max_size=49),
    most=st.sampled_from([1, 300, MEGABYTE]),
)
def test_one_reading_or_fifty_find_the_same(
    lines: list[Line | bytes], *, escaped: bool, cuts: list[int], most: int
) -> None:
    """A file that grows by any bytes gives the pieces, size and state of one reading."""
    content = encoded(lines, escaped=escaped)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        path.write_bytes(b"")
        growing = TranscriptStream(str(path))
        found: tuple[TranscriptPiece, ...] = ()
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(content)], strict=True):
            with path.open("ab") as file:
                file.write(content[start:end])
            found += whole(growing, most=most)
        once = TranscriptStream(str(path))
        assert found == whole(once)
        assert growing.last_event == once.last_event
        assert growing.sub_agent == once.sub_agent


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


def test_a_compaction_is_an_event(tmp_path: Path) -> None:
    """A boundary resets the context to the summary's size, until something is said behind it."""
    path = tmp_path / "s.jsonl"
    stream = stream_of(
        path, claude("user", "u", "go"), reply("a", "m", words("ok"), tokens=150_000)
    )
    meter = ContextMeter()
    for piece in whole(stream):
        meter.add(piece)
    assert (meter.tokens, meter.compactions, stream.last_event) == (150_002, 0, "")
    with path.open("ab") as file:
        file.write(encoded([*compacted("x" * 4000)[:2], {"type": "ai-title", "aiTitle": "T"}]))
    for piece in whole(stream):
        meter.add(piece)
    assert (meter.tokens, meter.compactions, stream.last_event) == (1000, 1, "boundary")
    with path.open("ab") as file:
        file.write(encoded([*compacted("")[2:], claude("user", "u2", "x" * 400)]))
    pieces = whole(stream)
    for piece in pieces:
        meter.add(piece)
    assert (meter.tokens, stream.last_event) == (1000 + sum(p.tokens for p in pieces), "")
    assert [piece.text for piece in pieces if piece.text] == ["x" * 400]


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


def test_codex_counts_behind_each_reply(tmp_path: Path) -> None:
    """The record behind a reply counts; the event that repeats it behind the outputs does not."""
    output = codex("response_item", type="function_call_output", call_id="c", output="x" * 400)
    event = codex("event_msg", type="token_count", info={"last_token_usage": {"total_tokens": 900}})
    record = codex("token_usage_record", usage={"total_tokens": 900})
    old = codex("event_msg", type="token_count", info=None)
    for lines, tokens in (
        ([record, output, event, event], 1000),
        ([event, output, event], 1000),
        ([old, output], 133),
        ([record, output, codex("compacted", message="x" * 400)], 100),
        ([record, codex("compacted", message="", replacement_history=[words("x" * 80)])], 20),
    ):
        meter = ContextMeter()
        for piece in whole(stream_of(tmp_path / "s.jsonl", *lines)):
            meter.add(piece)
        assert meter.tokens == tokens


def test_gemini_counts_with_a_record(tmp_path: Path) -> None:
    """The tokens of a record count once, whether they come with it or when it comes again."""
    lines = [gemini("user", "u", "x" * 400), gemini("gemini", "m", "y" * 400)]
    lines.append(gemini("gemini", "m", "y" * 400, tokens={"total": 5000}))
    meter = ContextMeter()
    for piece in whole(stream_of(tmp_path / "s.jsonl", *lines)):
        meter.add(piece)
    assert meter.tokens == 5000


_TEXT = st.text(max_size=30)
_BLOCK = st.one_of(
    st.builds(words, _TEXT),
    st.builds(lambda t: {"type": "thinking", "thinking": t}, _TEXT),
    st.just({"type": "image", "source": {}}),
    st.builds(lambda t: call("t", "Bash", command=t), _TEXT),
    st.builds(lambda t: result("t", t), _TEXT),
    st.builds(lambda t: {"type": "new", "data": t}, _TEXT),
)
_CONTENT = _TEXT | st.lists(_BLOCK, max_size=3)
_REPLIES = st.lists(
    st.tuples(
        st.lists(st.tuples(_CONTENT, st.lists(_CONTENT, max_size=2)), min_size=1, max_size=3),
        st.integers(0, 1) | st.integers(1000, 200_000),
        st.lists(st.tuples(st.sampled_from(["user", "system"]), _CONTENT), max_size=2),
    ),
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(_REPLIES)
def test_a_meter_counts_as_a_list_is_counted(replies: list[Any]) -> None:
    """Fed with the pieces of a Messages-API list, a meter shows what ``count`` says of the list."""
    messages: list[Line] = []
    for number, (parts, tokens, after) in enumerate(replies):
        for content, results in parts:
            usage = {"input_tokens": tokens}
            part = {"role": "assistant", "id": f"m{number}", "content": content or "x"}
            messages.append({**part, "usage": usage})
            messages += [{"role": "user", "content": item} for item in results]
        messages += [{"role": role, "content": content} for role, content in after]
    meter = ContextMeter()
    for piece in message_pieces(messages):
        meter.add(piece)
    assert meter.tokens == count(messages).tokens


def test_a_messages_own_id_is_its_pieces_id() -> None:
    """Pieces are named after their message: its uuid, its id, or its place."""
    named = [{"uuid": "u", "id": "m"}, {"id": "m"}, {}]
    pieces = message_pieces([{"role": "assistant", "content": "x", **item} for item in named])
    assert [piece.id for piece in pieces] == ["u", "m", "message 2"]
