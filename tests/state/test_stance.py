"""What a prompt is after."""

import time

import pytest

from memd.state.stance import Stance, stance


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what did we say about the release", Stance.RECALLS),
        ("What was decided about the quorum?", Stance.RECALLS),
        ("remind me how the lease is renewed", Stance.RECALLS),
        ("what was it about the lease", Stance.RECALLS),
        ("还记得发布的事吗", Stance.RECALLS),
        ("之前的方案", Stance.RECALLS),
        ("When can I merge my pull request?", Stance.OPENS),
        ("explain how our lease works", Stance.OPENS),
        ("write a test for the broker", Stance.OPENS),
        ("怎么部署", Stance.OPENS),
        ("the broker drops every third lease under load", Stance.TELLS),
        ("仓库查询很慢", Stance.TELLS),
        ("explain generators", Stance.CARRIES_ON),
        ("what\u2019s the difference between a map and a set?", Stance.CARRIES_ON),
        ("how do closures work in JavaScript", Stance.CARRIES_ON),
        ("what does the yield keyword do?", Stance.CARRIES_ON),
        ("run the tests again", Stance.CARRIES_ON),
        ("looks good, commit it", Stance.CARRIES_ON),
        ("ok, now sort them by size", Stance.CARRIES_ON),
        ("good, move on to the next", Stance.CARRIES_ON),
        ("thanks", Stance.CARRIES_ON),
        ("", Stance.TELLS),
        ("再试一次", Stance.CARRIES_ON),
        ("把这个删掉", Stance.CARRIES_ON),
        ("这个是什么意思", Stance.CARRIES_ON),
    ],
)
def test_stance(text: str, expected: Stance) -> None:
    """What was said, new work, and what is at hand are told from each other."""
    assert stance(text) is expected


@pytest.mark.parametrize("piece", ["a", "a ", "it, ", "ok ", "what does ", "继续把", " \n"])
def test_a_long_prompt_costs_no_more(piece: str) -> None:
    """No prompt makes the patterns try endlessly."""
    began = time.process_time()
    stance(piece * (20_000 // len(piece)))
    assert time.process_time() - began < 0.5
