"""What is stored of a conversation, and that it stays so."""

from memd.context.planning import CHANGED, Resync
from tests.context.conversations import (
    Conversation,
    assistant,
    call,
    edited,
    exchange,
    lines,
    result,
    settings,
    user,
)


def test_a_large_result_is_stored() -> None:
    """A result over its tool's limit is replaced by its beginning, in the answer and the count."""
    talk = Conversation()
    settled = talk.sent(user("go"), *exchange("t1", lines(30_001)))
    assert edited(settled) == ["t1"]
    assert talk.action("t1") == "spill"
    assert settled.count.tokens < 1_000


def test_a_result_at_its_limit_stays() -> None:
    """A result of as many characters as its tool may have is sent whole, for good."""
    talk = Conversation()
    assert edited(talk.sent(user("go"), *exchange("t1", lines(30_000)))) == []
    assert talk.action("t1") == "keep"
    talk.settings = settings(limits={"Bash": 5_000})
    talk.known = type(talk.known)(decisions=talk.known.decisions)
    assert edited(talk.sent(user("go"), *exchange("t1", lines(30_000)))) == []


def test_another_history_is_asked_for() -> None:
    """Where memd has other messages than the client, it wants them again."""
    talk = Conversation()
    talk.sent(user("go"))
    assert talk.plan(user("on"), hash="00" * 32) == Resync(CHANGED, 1)
    assert talk.plan(user("on"), place=2) == Resync(CHANGED, 1)


def test_results_of_one_message_have_a_budget() -> None:
    """Of results that are too many together, the largest are stored until the rest fits."""
    talk = Conversation(settings=settings(limits={"Bash": 100_000}))
    sizes = {"a": 60_000, "b": 70_000, "c": 80_000}
    calls = assistant(*map(call, sizes))
    answers = user(*(result(name, lines(size)) for name, size in sizes.items()))
    assert edited(talk.sent(user("go"), calls, answers)) == ["c"]
