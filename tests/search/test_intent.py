"""The intent of a prompt."""

import time

import pytest

from memd.search.intent import Intent, begins_work, intent


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what did we say about the release", Intent.RECALL),
        ("What was decided about the quorum?", Intent.RECALL),
        ("remind me how the lease is renewed", Intent.RECALL),
        ("what was it about the lease", Intent.RECALL),
        ("还记得发布的事吗", Intent.RECALL),
        ("之前的方案", Intent.RECALL),
        ("When can I merge my pull request?", Intent.NEW_WORK),
        ("explain how our lease works", Intent.NEW_WORK),
        ("write a test for the broker", Intent.NEW_WORK),
        ("怎么部署", Intent.NEW_WORK),
        ("the broker drops every third lease under load", Intent.STATEMENT),
        ("仓库查询很慢", Intent.STATEMENT),
        ("explain generators", Intent.FOLLOW_UP),
        ("what\u2019s the difference between a map and a set?", Intent.FOLLOW_UP),
        ("how do closures work in JavaScript", Intent.FOLLOW_UP),
        ("what does the yield keyword do?", Intent.FOLLOW_UP),
        ("run the tests again", Intent.FOLLOW_UP),
        ("looks good, commit it", Intent.FOLLOW_UP),
        ("ok, now sort them by size", Intent.FOLLOW_UP),
        ("good, move on to the next", Intent.FOLLOW_UP),
        ("thanks", Intent.FOLLOW_UP),
        ("", Intent.STATEMENT),
        ("再试一次", Intent.FOLLOW_UP),
        ("把这个删掉", Intent.FOLLOW_UP),
        ("这个是什么意思", Intent.FOLLOW_UP),
    ],
)
def test_intent(text: str, expected: Intent) -> None:
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
