"""The intent of a prompt."""

import time

import pytest

from memd.search.intent import QueryIntent, begins_work, intent


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what did we say about the release", QueryIntent.RECALL),
        ("What was decided about the quorum?", QueryIntent.RECALL),
        ("remind me how the lease is renewed", QueryIntent.RECALL),
        ("what was it about the lease", QueryIntent.RECALL),
        ("还记得发布的事吗", QueryIntent.RECALL),
        ("之前的方案", QueryIntent.RECALL),
        ("When can I merge my pull request?", QueryIntent.NEW_WORK),
        ("explain how our lease works", QueryIntent.NEW_WORK),
        ("write a test for the broker", QueryIntent.NEW_WORK),
        ("怎么部署", QueryIntent.NEW_WORK),
        ("the broker drops every third lease under load", QueryIntent.STATEMENT),
        ("仓库查询很慢", QueryIntent.STATEMENT),
        ("explain generators", QueryIntent.FOLLOW_UP),
        ("what\u2019s the difference between a map and a set?", QueryIntent.FOLLOW_UP),
        ("how do closures work in JavaScript", QueryIntent.FOLLOW_UP),
        ("what does the yield keyword do?", QueryIntent.FOLLOW_UP),
        ("run the tests again", QueryIntent.FOLLOW_UP),
        ("looks good, commit it", QueryIntent.FOLLOW_UP),
        ("ok, now sort them by size", QueryIntent.FOLLOW_UP),
        ("good, move on to the next", QueryIntent.FOLLOW_UP),
        ("thanks", QueryIntent.FOLLOW_UP),
        ("", QueryIntent.STATEMENT),
        ("再试一次", QueryIntent.FOLLOW_UP),
        ("把这个删掉", QueryIntent.FOLLOW_UP),
        ("这个是什么意思", QueryIntent.FOLLOW_UP),
    ],
)
def test_intent(text: str, expected: QueryIntent) -> None:
    """What was said, new work, and what is at hand are told from each other."""
    assert intent(text) is expected


@pytest.mark.parametrize("piece", ["a", "a ", "it, ", "ok ", "what does ", "继续把", " \n"])
def test_a_long_prompt_costs_no_more(piece: str) -> None:
    """No prompt makes the patterns try endlessly."""
    began = time.process_time()
    intent(piece * (20_000 // len(piece)))
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How do we deploy", True),
        ("please write a test", True),
        ("is it done?", True),
        ("run the tests again", False),
        ("thanks, looks good", False),
        ("wrap this: if err != nil { return err }", True),
        ("total = f(x)", True),
        ("x := y", True),
        ("怎么部署", True),
        ("再跑一遍测试", False),
    ],
)
def test_begins_work(text: str, expected: bool) -> None:  # noqa: FBT001 - a table's column
    """Questions and new work are told from prompts that carry on."""
    assert begins_work(text) is expected
