"""What is noted of messages, and which are refused."""

from typing import Any

import pytest

from memd.context.errors import MessagesRefusedError
from memd.context.facts import MOST_MESSAGES, checked_facts, exchange_start, running_hashes
from tests.context.conversations import (
    Message,
    assistant,
    call,
    exchange,
    lines,
    result,
    thinking,
    user,
)


def test_a_result_s_tool_is_known() -> None:
    """A result has its call's tool, its length and a hash, also where its call came before."""
    first = checked_facts([user("go"), assistant(call("t1", "Grep"))], 0, ())
    (second,) = checked_facts([user(result("t1", lines(4_000)))], 2, first)
    (noted,) = second.results
    assert (noted.tool, noted.characters, noted.plain, len(noted.content_hash)) == (
        "Grep",
        4_000,
        True,
        64,
    )


@pytest.mark.parametrize(
    "content",
    [
        lines(3_999),
        None,
        [{"type": "text", "text": lines(9_000)}, {"type": "image", "source": {}}],
        [{"type": "text", "text": lines(9_000), "citations": [{"type": "char_location"}]}],
    ],
)
def test_what_is_never_replaced_has_no_hash(content: Any) -> None:
    """A short result, and one that is more than text, is none that anything is decided about."""
    facts = checked_facts([user("go"), *exchange("t1", content)], 0, ())
    assert facts[-1].results[0].content_hash == ""


def test_records_of_one_reply_are_one() -> None:
    """Results may come between the calls of one reply, and neighbours of one role are one."""
    messages = [
        user("go"),
        assistant(thinking(), id="msg_1"),
        assistant(call("a"), id="msg_1"),
        user(result("a", "one")),
        {"role": "system", "content": "mind the time"},
        assistant(call("b"), id="msg_1"),
        user("and another thing"),
        user(result("b", "two")),
        assistant("done", id="msg_2"),
    ]
    facts = checked_facts(messages, 0, ())
    assert [n for n, fact in enumerate(facts) if fact.begins] == [1, 8]
    assert exchange_start(facts) == 8
    for cut in range(len(messages)):
        before = checked_facts(messages[:cut], 0, ())
        assert (*before, *checked_facts(messages[cut:], cut, before)) == facts


def test_other_members_of_a_block_are_the_server_s() -> None:
    """A result may have an id, and a call a result's, of whatever type."""
    checked_facts([user("go"), assistant({**call("a"), "tool_use_id": 5})], 0, ())
    first = checked_facts([user("go"), assistant(call("a"))], 0, ())
    checked_facts([user(result("a", "x", id=5))], 2, first)


def test_calls_of_the_newest_reply_may_be_open() -> None:
    """A conversation may end with calls that are still running, some of them answered."""
    checked_facts([user("go"), assistant(call("a"), call("b")), user(result("a", "x"))], 0, ())


def test_a_conversation_may_begin_with_a_compaction() -> None:
    """The API's compaction stands first, and what it cost is not its size."""
    block = {"type": "compaction", "content": "so far", "signature": "c2ln"}
    usage = {"input_tokens": 150_000, "output_tokens": 10}
    facts = checked_facts([assistant(block, usage=usage), user("on")], 0, ())
    assert facts[0].boundary
    assert facts[0].context == 0


def test_a_boundary_closes_all_calls() -> None:
    """What stands before a summary in the list needs no results any more."""
    summary = {"role": "user", "content": "so far", "isCompactSummary": True}
    checked_facts([user("go"), assistant(call("a")), summary, assistant("on")], 0, ())


OPEN = [user("go"), assistant(call("a"))]
REFUSED: dict[str, tuple[list[Any], str]] = {
    "no object": ([5], "messages.0.role"),
    "another role": ([{"role": "tool", "content": "x"}], "messages.0.role"),
    "the assistant first": ([assistant("hello")], "messages.0.role"),
    "nothing said": ([user("go"), assistant()], "messages.1.content"),
    "an empty text": ([user({"type": "text", "text": " \n"})], "messages.0.content.0"),
    "no list": ([{"role": "user", "content": 7}], "messages.0.content"),
    "no block": ([user("go"), assistant({})], "messages.1.content.0"),
    "no text": ([user({"type": "text"})], "messages.0.content.0.text"),
    "a call of the user": ([user(call("a"))], "messages.0.content.0"),
    "a result of the assistant": ([*OPEN, assistant(result("a", "x"))], "messages.2.content.0"),
    "a result without a call": ([user("go"), user(result("a", "x"))], "messages.1.content.0"),
    "a call without a result": ([*OPEN, user("x"), assistant("y")], "messages.1"),
    "a result twice": ([*OPEN, user(result("a", "x"), result("a", "x"))], "messages.2.content.1"),
    "a result late": (
        [*OPEN, user({"type": "text", "text": "x"}, result("a", "x"))],
        "messages.2.content.1",
    ),
    "a call's id again": (
        [*OPEN, user(result("a", "x")), assistant(call("a"))],
        "messages.3",
    ),
    "an id with a slash": ([user("go"), assistant(call("../a"))], "messages.1.content.0.id"),
    "an endless id": ([user("go"), assistant(call("a" * 257))], "messages.1.content.0.id"),
    "thinking of the user": ([user(thinking())], "messages.0.content.0"),
    "thinking without a signature": (
        [user("go"), assistant({"type": "thinking", "thinking": "hm"})],
        "messages.1.content.0.signature",
    ),
    "a call without input": (
        [user("go"), assistant({"type": "tool_use", "id": "a", "name": "Bash"})],
        "messages.1.content.0.input",
    ),
    "a misshapen result": ([*OPEN, user(result("a", ["x"]))], "messages.2.content.0.content.0"),
}


@pytest.mark.parametrize(("messages", "place"), REFUSED.values(), ids=REFUSED)
def test_messages_are_refused(messages: list[Any], place: str) -> None:
    """What the API would refuse is refused with its place, and the rule that it breaks."""
    with pytest.raises(MessagesRefusedError) as refused:
        checked_facts(messages, 0, ())
    assert refused.value.facts["place"] == place
    assert refused.value.facts["rule"]


def test_places_count_from_the_conversation_s_start() -> None:
    """A message that is refused has the place that it has in the whole conversation."""
    before = checked_facts(OPEN, 0, ())
    with pytest.raises(MessagesRefusedError, match=r"^messages\.2\.content\.0: "):
        checked_facts([user(result("b", "x"))], 2, before)


def test_a_conversation_has_a_most() -> None:
    """Behind 100,000 messages there is no other."""
    with pytest.raises(MessagesRefusedError):
        running_hashes([user("go")], [bytes(32)] * MOST_MESSAGES)


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "message",
    [
        user("\ud800"),
        user({"type": "x", "x": float("nan")}),
        user({"type": "x", "x": _nested(9**5)}),
    ],
    ids=["surrogate", "nan", "nested"],
)
def test_what_is_no_json_is_refused(message: Message) -> None:
    """A message that has no bytes has no place in a conversation."""
    with pytest.raises(MessagesRefusedError, match=r"^messages\.1: "):
        running_hashes([message], [bytes(32)])
