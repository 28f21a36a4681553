"""How large a conversation is, from its transcript or its messages."""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.conversation.history import ContextMeter, count
from memd.transcripts.stream import message_pieces
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
    stream_of,
    whole,
    words,
)


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


def test_codex_counts_behind_each_reply(tmp_path: Path) -> None:
    """The outputs behind a reply count beside what the server counted, wherever that stands."""
    output = codex("response_item", type="function_call_output", call_id="c", output="x" * 400)
    event = codex("event_msg", type="token_count", info={"last_token_usage": {"total_tokens": 900}})
    record = codex("token_usage_record", usage={"total_tokens": 900})
    call_made = codex("response_item", type="function_call", call_id="c", name="exec")
    old = codex("event_msg", type="token_count", info=None)
    for lines, tokens in (
        ([record, output, event, event], 1000),
        ([event, output, event], 1000),
        ([call_made, output, event], 1000),
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
