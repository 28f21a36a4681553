"""A transcript that grows gives what it gives at once."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.conversation.pieces import TranscriptPiece
from memd.transcripts.stream import TranscriptStream
from tests.transcripts.shapes import (
    Line,
    call,
    claude,
    codex,
    compacted,
    encoded,
    gemini,
    reply,
    result,
    whole,
    words,
)

MEGABYTE = 1024 * 1024
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


@settings(max_examples=50, deadline=None)
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
