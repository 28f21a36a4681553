"""How large a conversation is, and how much of its window that leaves."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from memd.context import sizing
from memd.context.facts import checked_facts
from memd.conversation import history
from tests.context.conversations import Conversation, Message, assistant, call, lines, result, user
from tests.conversation.histories import HistoryMaker

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 100_000, "output_tokens": 90}


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({"window": 64_000, "model": "claude-sonnet-5-5[1m]"}, 64_000),
        ({"model": "claude-sonnet-5-5[1m]", "usual_window": 1}, 1_000_000),
        ({"betas": ["context-1m-2025-08-07"], "usual_window": 1}, 1_000_000),
        ({"usual_window": 32_000}, 32_000),
        ({}, 200_000),
    ],
)
def test_the_nearest_word_on_the_window_counts(given: dict[str, Any], window: int) -> None:
    """The client's figure stands above the model's name, a beta, the environment, the usual one."""
    settled = Conversation().sent(user("go"), **given)
    assert settled.thresholds == sizing.thresholds(window)


def test_levels_are_named_by_their_threshold() -> None:
    """A size has the level of the highest threshold that it reaches."""
    limits = sizing.thresholds(200_000)
    assert (limits.warn, limits.urgent, limits.auto, limits.block) == (
        147_000,
        162_000,
        167_000,
        177_000,
    )
    for below, name in pairwise(("ok", "warn", "urgent", "auto", "block")):
        assert sizing.level(getattr(limits, name) - 1, limits) == below
        assert sizing.level(getattr(limits, name), limits) == name


def test_the_last_reply_s_usage_is_the_request_s() -> None:
    """The usage that comes with a request counts for the last reply, what follows is estimated."""
    talk = Conversation()
    settled = talk.sent(user("go"), assistant("done"), user(lines(4_000)), usage=USAGE)
    assert (settled.count.tokens, settled.count.source) == (101_100, "usage")
    assert talk.sent(user("x" * 40)).count.tokens == 101_110


def test_results_between_parallel_calls_count() -> None:
    """Counting begins behind the first record of the reply that was counted."""
    talk = Conversation()
    reply = {"id": "msg_1", "usage": USAGE}
    settled = talk.sent(
        user("go"),
        assistant(call("a"), **reply),
        user(result("a", "x" * 400)),
        assistant(call("b"), **reply),
        user(result("b", "x" * 40)),
    )
    assert settled.count.tokens == 100_210


def test_the_size_is_the_same_however_much_is_new() -> None:
    """Counting from the last counted reply on comes to what counting everything does."""
    for seed in range(60):
        made = HistoryMaker(Random(seed)).make().messages  # noqa: S311
        messages = [m for m in made if _says_something(m) and not history.floor([m])]
        assert sizing.count(checked_facts(messages, 0, ())).tokens == (
            history.count(messages).tokens
        )


def _says_something(message: Message) -> bool:
    content = message["content"]
    if isinstance(content, str):
        return bool(content)
    texts = [block.get("text") for block in content or ()]
    return "output_config" in message or any(text is None or text.strip() for text in texts)
