"""Transcripts of three assistants, read at once and as they grow."""

from collections.abc import Iterator
from contextlib import contextmanager

from memd.base.values import Message
from memd.conversation.dialogue import NewPieces
from memd.conversation.history import ContextMeter
from memd.conversation.pieces import TranscriptPiece
from memd.notes import facts, local
from memd.transcripts import reading
from memd.transcripts.stream import TranscriptStream
from tests.fuzz.target import Target, Use, scratch
from tests.transcripts.shapes import (
    call,
    claude,
    codex,
    compacted,
    encoded,
    gemini,
    reply,
    result,
    words,
)

_MOST = 300  # bytes of one part
_ROLES = ("user", "assistant")


@contextmanager
def transcript() -> Iterator[Use]:
    """Open a transcript: one reading and many find the same, in words that can be stored."""
    with scratch() as folder:
        path = folder / "s.jsonl"

        def use(content: bytes) -> None:
            path.write_bytes(content)
            once = _whole(TranscriptStream(str(path)), 1 << 20)
            half = content[: len(content) // 2]
            path.write_bytes(half)
            growing = TranscriptStream(str(path))
            found = _whole(growing, _MOST)
            path.write_bytes(content)
            assert found + _whole(growing, _MOST) == once
            _folded(once)
            _messages(reading.read(str(path)).messages)
            reading.recent_calls(str(path))

        yield use


def _whole(stream: TranscriptStream, most: int) -> tuple[TranscriptPiece, ...]:
    pieces: tuple[TranscriptPiece, ...] = ()
    while True:
        part = stream.more(most=most)
        assert not part.restarted
        pieces += part.pieces
        if part.complete:
            return pieces


def _folded(pieces: tuple[TranscriptPiece, ...]) -> None:
    """Fold over the pieces as all do who need a conversation."""
    meter, new = ContextMeter(), NewPieces()
    known = facts.SessionFacts(lambda _said, _before: ((), ()))
    for piece in pieces:
        meter.add(piece)
        new.add(piece)
        known.add(piece)
    assert meter.tokens >= 0
    for lines in local.lines(known).values():
        assert not any("\n" in line for line in lines)
    _messages(new.messages)


def _messages(messages: tuple[Message, ...]) -> None:
    for message in messages:
        assert message.role in _ROLES
        message.text.encode()


_CALL = call("c1", "Edit", file_path="/p/a.py", old_string="a", new_string="b")
CLAUDE = encoded(
    [
        claude("user", "u1", "fix it"),
        reply("a1", "m1", words("I will."), _CALL, tokens=40),
        claude("user", "u2", [result("c1", [words("done")])]),
        {"type": "custom-title", "customTitle": "t"},
        claude("user", "u3", "<memd-context>x", isSidechain=True),
        *compacted("what was said"),
    ],
    escaped=False,
)
CODEX = encoded(
    [
        codex("session_meta", cwd="/r", source="cli"),
        codex("event_msg", type="user_message", message="fix it"),
        codex(
            "response_item", type="message", role="assistant", id="a", content=[words("I will.")]
        ),
        codex(
            "response_item", type="function_call", call_id="c", name="exec", arguments='{"cmd":1}'
        ),
        codex("response_item", type="function_call_output", call_id="c", output="ok"),
        codex("event_msg", type="token_count", info={"last_token_usage": {"total_tokens": 9}}),
        codex("compacted", message="what was said"),
    ],
    escaped=False,
)
_TOOL = {"id": "c", "name": "read_file", "args": {"path": "a"}, "status": "success", "result": []}
GEMINI = encoded(
    [
        {"sessionId": "s", "projectHash": "h", "kind": "main"},
        gemini("user", "u1", "fix it", displayContent="fix it"),
        gemini("gemini", "g1", "I will.", tokens={"total": 9}, toolCalls=[_TOOL]),
        gemini("gemini", "g1", "I will.", toolCalls=[_TOOL]),
        {"$set": {"x": 1}},
    ],
    escaped=False,
)
_TOKENS = (
    b'"type":"user"', b'"type":"assistant"', b'"type":"gemini"', b'"isSidechain":true',
    b'"compact_boundary"', b'"session_meta"', b'"projectHash"', b'"uuid":', b'"parentUuid":',
    b'"message":', b'"content":', b'"tool_use"', b'"tool_result"', b'"usage":', b"\n", b"null",
    b"<memd-context>", b"</memd-context>", b"\xff", b"\\ud800", b'"timestamp":', b'"payload":',
)  # fmt: skip
TARGETS = {
    name: Target(transcript, (seed,), _TOKENS, json=True, longest=8192)
    for name, seed in (("claude code", CLAUDE), ("codex", CODEX), ("gemini", GEMINI))
}
