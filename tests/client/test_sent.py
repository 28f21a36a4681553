"""What a client knows of a conversation: any growth, any decisions, any cut."""

import copy
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.client.sent import ObservedReply, SentConversation, apply_compaction, outlines, results
from memd.core.canonical import START, chained, content_hash

Message = dict[str, Any]
TEXTS = st.sampled_from(["", "short", "好" * 4_000, "a line\n" * 900, "x" * 300_000])
MARKS = st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}])


@st.composite
def blocks(draw: st.DrawFn) -> Message:
    """Draw a block of any sort; a result as a text or as parts."""
    text = draw(TEXTS)
    kind = draw(st.sampled_from(["text", "thinking", "image", "tool_result", "tool_result"]))
    if kind != "tool_result":
        return {"type": kind, "text": text}
    parts: Any = [{"type": "text", "text": text, **draw(MARKS)}]
    call = draw(st.sampled_from(["a", "b", "c"]))
    content = draw(st.sampled_from([text, parts]))
    return {"type": kind, "tool_use_id": call, "content": content, **draw(MARKS)}


MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant"]),
        "content": st.one_of(TEXTS, st.lists(blocks(), max_size=3)),
    }
)
CONVERSATIONS = st.lists(MESSAGES, max_size=6)


def decision(name: Sequence[str], action: str) -> dict[str, Any]:
    """Return a decision about a block."""
    call, hashed = name
    content = "" if action == "keep" else f"[{action}]"
    named = {"tool_use_id": call, "content_hash": hashed, "action": action}
    return {**named, "content": content, "path": "", "size": 0}


@given(st.lists(CONVERSATIONS, min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_memd_has_what_both_agree_on(lists: list[list[Message]]) -> None:
    """Whatever list comes next, hashes are the conversation's, and what is agreed begins both."""
    sent, before = SentConversation(), [START]
    for messages in lists:
        assert sent.follow(messages, lambda: True)
        hashes = [START]
        for message in outlines(messages):
            hashes.append(chained(hashes[-1], message))
        assert [sent.hash_at(n) for n in range(len(hashes))] == [each.hex() for each in hashes]
        assert sent.agreed_count < len(before)
        assert hashes[: sent.agreed_count + 1] == before[: sent.agreed_count + 1]
        longer = len(hashes) > sent.agreed_count + 1 and len(before) > sent.agreed_count + 1
        assert not longer or hashes[sent.agreed_count + 1] != before[sent.agreed_count + 1]
        sent.agreed_count, before = len(messages), hashes


@given(CONVERSATIONS, CONVERSATIONS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_what_was_sent_once_is_sent_again(
    first: list[Message], more: list[Message], chance: Any
) -> None:
    """A longer list begins with what was sent, whatever is decided later; it is not changed."""
    sent, whole = SentConversation(), [*first, *more]
    original = copy.deepcopy(whole)
    names = [name for name, _ in results(whole)]
    sent.add_decisions(decision(name, chance.choice(["keep", "spill"])) for name in names[::2])
    sent.freeze(first)
    once = copy.deepcopy(sent.with_replacements(first))
    sent.add_decisions(decision(name, chance.choice(["keep", "spill"])) for name in names)
    assert sent.with_replacements(whole)[: len(first)] == once
    assert whole == original


@given(CONVERSATIONS)
@settings(max_examples=100, deadline=None)
def test_only_replaced_results_differ(messages: list[Message]) -> None:
    """All but the content of stored results is sent as it is, with the marks of the cache."""
    sent = SentConversation()
    sent.add_decisions(decision(name, "spill") for name, _ in results(messages))
    for old, new in zip(messages, sent.with_replacements(messages), strict=True):
        stored = {id(block) for _, block in results([old])}
        assert (new is old) == (not stored)
        pairs = [] if new is old else zip(old["content"], new["content"], strict=True)
        for before, after in pairs:
            if id(before) not in stored:
                assert after is before
            else:
                assert after["content"] == "[spill]"
                assert ("cache_control" in after) == ("cache_control" in str(before))


def test_without_time_a_list_is_followed_later() -> None:
    """A list that there is no time to hash is known up to there, and wholly the next time."""
    messages = [{"role": "user", "content": str(number)} for number in range(10)]
    sent, times = SentConversation(), iter([True] * 4 + [False])
    assert not sent.follow(messages, lambda: next(times))
    assert len(sent.messages) == 4
    assert sent.follow(messages, lambda: True)


def test_a_stream_tells_what_its_events_say() -> None:
    """Usage, calls and diagnosis are read from events in any pieces; nonsense is passed over."""
    lines = [
        b'data: {"type":"message_start","message":{"usage":{"input_tokens":5,"a":null}}}',
        b'data: {"content_block":{"type":"tool_use","id":"c","name":"report"}}',
        b'data: {"usage": nonsense "tool_use"',
        b'data: {"message": 5, "usage": 5}',
        b'data: {"usage": 5, "content": 5}',
        b'data: {"type":"message_delta","usage":{"output_tokens":7},"diagnostics":{"x":1}}',
    ]
    stream, reply = b"\n\n".join([*lines, b""]), ObservedReply(1)
    for start in range(0, len(stream), 7):
        reply.feed(stream[start : start + 7])
    assert reply.usage == {"input_tokens": 5, "output_tokens": 7}
    assert (reply.calls, reply.diagnostics) == ({"c": "report"}, {"x": 1})


def test_a_compaction_leaves_what_memd_says() -> None:
    """The beginning that stays, the summary, and the end without thinking and emptied messages."""
    texts: list[Message] = [{"role": "user", "content": [{"type": "text"}] * 2} for _ in range(6)]
    edits = [{"message": 3, "block": 0}, {"message": 4, "block": 0}, {"message": 4, "block": 1}]
    answer = {"keep_to": 1, "keep_from": 3, "messages": ["summary"], "edits": edits}
    left = apply_compaction(texts, answer)
    assert left == [texts[0], "summary", {**texts[3], "content": [{"type": "text"}]}, texts[5]]


def test_nonsense_is_no_decision() -> None:
    """Only what has the shape of a decision is taken over."""
    sent = SentConversation()
    good = decision(("a", content_hash("x" * 5_000)), "spill")
    incomplete = [{**good, "size": "5"}, {**good, "action": "burn"}, {**good, "path": None}]
    sent.add_decisions([5, {}, *incomplete])  # type: ignore[list-item]
    assert sent.decisions == {}
    sent.add_decisions([good])
    assert [*sent.decisions.values()] == [good]


def test_what_memd_changed_unheard_stays_as_it_was_sent() -> None:
    """A clearing whose answer was missed is not taken over, and memd is told what was sent."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "好" * 4_000}
    talk = [{"role": "user", "content": [result]}, {"role": "assistant", "content": [thought]}]
    cleared = ("a", content_hash(result["content"]))
    dropped = ("", content_hash([thought]))
    changes = [decision(cleared, "clear"), decision(dropped, "drop")]
    sent = SentConversation()
    sent.freeze(talk)
    sent.unreported.clear()
    sent.answer_is_missing = True
    sent.add_decisions(changes)
    assert sent.with_replacements(talk) == talk
    assert sent.unreported == {cleared, dropped}
    assert {each["action"] for each in sent.decisions.values()} == {"keep"}
    sent.answer_is_missing = False
    sent.add_decisions(changes)
    assert sent.with_replacements(talk) != talk
