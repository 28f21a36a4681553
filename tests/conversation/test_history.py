"""The end of a conversation that stays, over histories that are generated."""

import time
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from memd.conversation.history import (
    LEAST_TEXTS,
    LEAST_TOKENS,
    MOST_TOKENS,
    estimate,
    floor,
    rounds,
    tail,
)
from tests.context.histories import ConversationMaker, Message, open_calls
from tests.support.api_rules import blocks as blocks_in
from tests.support.api_rules import broken

SUMMARY = {"role": "user", "content": "What was before."}
ODD: tuple[Any, ...] = (None, 5, "x", [], {}, True, ["a"], {"a": 1}, "", "\ud800", [[]])


def made(seed: int) -> list[Message]:
    """Return a conversation of up to thirty exchanges."""
    chance = Random(seed)  # noqa: S311 - a story, not a secret
    maker = ConversationMaker(chance, large=False)
    messages: list[Message] = []
    for _ in range(chance.randrange(1, 30)):
        calls = open_calls(messages)
        messages += maker.answer(calls) if calls else maker.person()
        messages += maker.reply()
    return messages


def blocks(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the blocks of messages, without thinking and empty texts."""
    listed = [block for message in messages for block in blocks_in(message["content"])]
    return [b for b in listed if "thinking" not in b["type"] and b.get("text", "x").strip()]


def size(messages: Sequence[Message]) -> int:
    """Return the tokens of messages without thinking."""
    return estimate(blocks(messages))


@pytest.mark.parametrize("seeds", [range(120), pytest.param(range(4_000), marks=pytest.mark.soak)])
def test_what_stays_is_whole_and_enough(seeds: range) -> None:
    """The API takes what stays; pairs and replies are whole, no thinking, within the bounds."""
    for seed in seeds:
        messages = made(seed)
        result = tail(messages, len(messages))
        if open_calls(messages):
            assert result is None
            continue
        edges = rounds(messages)
        if result is None:
            assert size(messages[edges[-1] :]) > MOST_TOKENS
            continue
        assert not broken({"messages": [SUMMARY, *result.messages]})
        stays = messages[result.first :]
        assert blocks(result.messages) == blocks(stays)
        assert not any("usage" in message for message in result.messages)
        before = [edge for edge in edges if edge < result.first]
        if before:
            texts = sum(any(b["type"] == "text" for b in blocks([m])) for m in result.messages)
            enough = size(stays) >= LEAST_TOKENS and texts >= LEAST_TEXTS
            assert enough or size(messages[before[-1] :]) > MOST_TOKENS
        behind = [edge for edge in edges if edge > result.first]
        assert not behind or size(messages[behind[0] :]) <= MOST_TOKENS


def test_what_is_damaged_is_left_alone_or_whole() -> None:
    """Wrong shapes, missing and repeated ids never raise, and what stays is what the API takes."""
    stays = 0
    for seed in range(200):
        messages: list[Any] = made(seed)
        chance = Random(seed)  # noqa: S311 - a story, not a secret
        place = chance.randrange(len(messages))
        match chance.randrange(4):
            case 0:
                messages[place] = chance.choice(ODD)
            case 1:
                messages.insert(chance.randrange(len(messages)), messages.pop(place))
            case 2:
                messages.insert(chance.randrange(len(messages)), messages[place])
            case _:
                member = chance.choice(("role", "content", "id"))
                messages[place] = {**messages[place], member: chance.choice((*ODD, "msg_9"))}
        rounds(messages)
        result = tail(messages, len(messages))
        if result is not None:
            assert not broken({"messages": [SUMMARY, *result.messages]})
            stays += 1
    assert 20 < stays < 180


def test_a_boundary_is_known_in_each_shape() -> None:
    """A client's summary, a client's mark, the API's block and memd's own message; none failed."""
    said = {"role": "user", "content": "hi"}
    tag = '<memd-context covers="m1">\nnotes\n</memd-context>'
    shapes: list[dict[str, Any]] = [
        {"role": "user", "isCompactSummary": True, "content": "s"},
        {"role": "system", "subtype": "compact_boundary", "content": "s"},
        {"role": "assistant", "content": [{"type": "compaction", "content": "s"}]},
        {"role": "user", "content": tag},
        {"role": "user", "content": [{"type": "text", "text": tag}]},
    ]
    assert [floor([said, shape, said]) for shape in shapes] == [2] * 5
    others: list[dict[str, Any]] = [
        {"role": "assistant", "content": [{"type": "compaction", "content": None}]},
        {"role": "assistant", "content": tag},
        {"role": "user", "content": "<memd-context>\nmemories\n</memd-context>"},
        {"role": "user", "content": f"see {tag}"},
    ]
    assert [floor([said, shape, said]) for shape in others] == [0] * 4


def test_a_message_that_nobody_changed_stays_as_it_is() -> None:
    """A text stays a text and other members stay; only the count of the old context goes."""
    users = {"role": "user", "id": "u", "content": "hi", "note": 1}
    reply = {"role": "assistant", "content": "ho", "usage": {"input_tokens": 9}}
    result = tail([users, reply], 2)
    assert result is not None
    assert result.messages == (users, {"role": "assistant", "content": "ho"})


def test_a_call_may_run_while_something_is_typed() -> None:
    """Nothing is cut behind an open call of the newest reply, however much came after it."""
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    talk: list[dict[str, Any]] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call]},
    ]
    typed = {"role": "user", "content": "word" * 45_000}
    assert tail([*talk, typed], 3) is None
    over = [*talk, typed, {"role": "assistant", "content": "ho"}, {"role": "user", "content": "x"}]
    result = tail(over, 5)
    assert result is not None
    assert result.first == 3


@pytest.mark.parametrize("kind", ["mcp_tool_use", "mcp_tool_result", "tool_use", "tool_result"])
def test_half_a_pair_stays_nowhere(kind: str) -> None:
    """A call that still runs, a server's too, and a result without its call, are left alone."""
    half = {"type": kind, "id": "t", "tool_use_id": "t", "content": "y"}
    person = {"role": "user", "content": "hi"}
    assert tail([person, {"role": "assistant", "content": [half]}], 2) is None
    assert tail([person, {"role": "assistant", "content": "ho"}], 2) is not None


@pytest.mark.parametrize("ids", [["t", "t"], [""], [None]])
def test_calls_that_cannot_be_told_apart_stay_nowhere(ids: list[str | None]) -> None:
    """Calls of one reply with one id, or without any, have no results that are surely theirs."""
    calls: list[Any] = [{"type": "tool_use", "id": n, "name": "x", "input": {}} for n in ids]
    results: list[Any] = [
        {"type": "tool_result", "tool_use_id": name, "content": "y"} for name in ids
    ]
    talk = [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    assert tail(talk, 2) is None


def test_an_id_that_comes_again_is_another_message() -> None:
    """What was said behind a person's words stays behind them, and one id is never cut apart."""
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t", "content": "y"}
    talk: list[dict[str, Any]] = [
        {"role": "assistant", "id": "m", "content": [call]},
        {"role": "user", "content": [answer]},
        {"role": "user", "content": "and now"},
        {"role": "assistant", "id": "m", "content": "done"},
    ]
    assert rounds(talk) == (0,)
    result = tail(talk, 4)
    assert result is not None
    assert [blocks([m]) for m in result.messages] == [
        [call],
        [answer, {"type": "text", "text": "and now"}],
        [{"type": "text", "text": "done"}],
    ]


def test_many_records_take_no_longer_than_their_number() -> None:
    """Twenty thousand results of one reply, or messages of one role, are one turn at once."""
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "x", "input": {}} for n in range(20_000)]
    records = [
        record
        for call in calls
        for record in (
            {"role": "assistant", "id": "m", "content": [call]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "y"}],
            },
        )
    ]
    begun = time.process_time()
    assert len(rounds(records)) == 1
    assert rounds([{"role": "user", "content": "x"}] * 40_000) == ()
    assert time.process_time() - begun < 10
