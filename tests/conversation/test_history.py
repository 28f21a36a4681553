"""The end of a conversation that stays, over histories that are generated."""

import time
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from memd.conversation.history import Tail, floor, rounds, tail
from tests.conversation.histories import HistoryMaker, MadeHistory, damage
from tests.support.messages_checks import refused

SUMMARY = {"role": "user", "content": "What was before."}


def made(seed: int) -> tuple[MadeHistory, int]:
    """Return a history and a place in it, from which on everything has to stay."""
    chance = Random(seed)  # noqa: S311 - a story, not a secret
    history = HistoryMaker(chance).make()
    length = len(history.messages)
    start = chance.choice((length, length, length - 1, chance.randrange(length)))
    return history, start


def blocks(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the blocks of messages, without thinking and empty texts."""
    result = []
    for message in messages:
        content = message["content"] or []
        listed = [{"type": "text", "text": content}] if isinstance(content, str) else content
        result += [b for b in listed if "thinking" not in b["type"] and b.get("text", "x").strip()]
    return result


def check(history: MadeHistory, start: int, result: Tail | None) -> None:
    """Check one result against how the history was made."""
    turns = history.turns
    if history.open:
        assert result is None
        return
    wanted = next((n for n, t in enumerate(turns) if t.last >= start), len(turns))
    if result is None:
        needed = max(n for n in range(wanted + 1) if n < len(turns) and history.may_begin(n))
        edges = [n for n in range(needed + 1, len(turns)) if history.may_begin(n)]
        assert sum(t.tokens for t in turns[min(edges, default=len(turns)) :]) > 40_000
        return
    answer = refused({"model": "m", "max_tokens": 9, "messages": [SUMMARY, *result.messages]})
    assert answer is None, answer
    at = max(n for n in range(len(turns)) if history.first(n) == result.first)
    assert history.may_begin(at)
    assert at <= wanted
    assert result.first >= history.floor
    assert [m["role"] for m in result.messages] == [t.role for t in turns[at:]]
    assert [blocks([m]) for m in result.messages] == [t.blocks for t in turns[at:]]
    assert not any("usage" in message for message in result.messages)
    check_size(history, at, wanted)


def check_size(history: MadeHistory, at: int, wanted: int) -> None:
    """Check that what stays is enough, and no more than that."""
    turns = history.turns
    tokens, texts = sum(t.tokens for t in turns[at:]), sum(t.speaks for t in turns[at:])
    if at:
        assert (tokens >= 10_000 and texts >= 5) or tokens + turns[at - 1].tokens > 40_000
    edges = [n for n in range(at + 1, len(turns)) if history.may_begin(n)]
    second = min(edges, default=len(turns))
    less, fewer = sum(t.tokens for t in turns[second:]), sum(t.speaks for t in turns[second:])
    assert less <= 40_000
    assert less < 10_000 or fewer < 5 or second > wanted


@pytest.mark.parametrize("part", range(4))
def test_what_stays_is_whole_and_enough(part: int) -> None:
    """The API takes what stays; pairs and replies are whole, no thinking, within the bounds."""
    for seed in range(part * 75, part * 75 + 75):
        history, start = made(seed)
        check(history, start, tail(history.messages, start))


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_the_same_for_ten_thousand(part: int) -> None:
    """Ten thousand histories hold as well."""
    for seed in range(1_000 + part * 2_500, 1_000 + part * 2_500 + 2_500):
        history, start = made(seed)
        check(history, start, tail(history.messages, start))


def test_rounds_begin_with_a_new_reply() -> None:
    """Each place at which a reply begins that nothing before it is tied to, and no other."""
    for seed in range(100):
        history = made(seed)[0]
        begins = [
            history.first(n)
            for n, turn in enumerate(history.turns)
            if turn.role == "assistant" and history.may_begin(n)
        ]
        assert list(rounds(history.messages)) == begins


def test_what_is_damaged_is_left_alone_or_whole() -> None:
    """Wrong shapes, missing and repeated ids never raise, and what stays is what the API takes."""
    stays = 0
    for seed in range(400):
        history, start = made(seed)
        chance = Random(seed)  # noqa: S311 - a story, not a secret
        for _ in range(chance.choice((1, 2, 5))):
            damage(history.messages, chance)
        rounds(history.messages)
        result = tail(history.messages, start)
        if result is not None:
            messages = [SUMMARY, *result.messages]
            assert refused({"model": "m", "max_tokens": 9, "messages": messages}) is None
            stays += 1
    assert 50 < stays < 350


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
