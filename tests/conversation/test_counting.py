"""Counting of tokens: what the server said, and an estimate for the rest."""

from memd.conversation.history import count, counted, estimate, estimate_text, thresholds

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 900, "output_tokens": 90}


def test_thresholds() -> None:
    """The margins of a window of 200,000 hold above it, and shrink with a smaller one."""
    whole, half = thresholds(), thresholds(100_000)
    assert (whole.warn, whole.urgent, whole.auto, whole.block) == (
        147_000,
        162_000,
        167_000,
        177_000,
    )
    assert (half.effective, half.auto) == (90_000, 83_500)
    assert thresholds(1_000_000).auto == 967_000


def test_estimates() -> None:
    """Text counts by its bytes, JSON twice as dear, Chinese by its characters."""
    assert estimate_text("abcd" * 10) == 10
    assert estimate_text("记忆" * 10) == 20
    assert (
        estimate({"type": "tool_use", "input": {"a": "b" * 11}}) == len('{"a": "bbbbbbbbbbb"}') // 2
    )
    assert estimate([{"type": "image"}, {"type": "text", "text": "abcd"}]) == 2_001


def test_counted() -> None:
    """Of several iterations the last message counts, and no compaction."""
    inner = [{"type": "message", "input_tokens": 5}, {"type": "compaction", "input_tokens": 70}]
    assert counted(USAGE) == 1_000
    assert counted({**USAGE, "iterations": inner}) == 5
    assert counted({"input_tokens": True, "output_tokens": -3}) == 0
    assert counted({"input_tokens": 10**400, "output_tokens": 5}) == 5


def test_results_between_parallel_calls_count() -> None:
    """Records of one reply share its count, and what came between them is added to it."""
    reply = {"role": "assistant", "id": "m1", "usage": USAGE, "content": "x" * 400}
    result = {"role": "user", "content": "y" * 40}
    assert count([result, reply, result, reply, result]).tokens == 1_000 + 10 + 10
    assert count([result, result]).tokens == 20 * 4 // 3
    assert count([result]).source == "estimate"
