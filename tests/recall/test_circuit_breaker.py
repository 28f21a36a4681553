"""How long a model that fails prompts is left alone."""

from memd.recall.circuit_breaker import FAILURES, LONGEST_PAUSE_SECONDS, SECONDS, CircuitBreaker


def test_a_model_is_left_alone_after_failures_in_a_row() -> None:
    """Three failures open the pause, it grows up to the longest, and one success ends it all."""
    known = CircuitBreaker()
    for number in range(FAILURES):
        assert known.allows("m", 0.0), number
        known = known.after_prompt("m", 0.0, worked=False)
    assert not known.allows("m", SECONDS - 1)
    assert known.allows("m", SECONDS)
    again = known.after_prompt("m", SECONDS, worked=False)
    assert not again.allows("m", 3 * SECONDS - 1)
    assert again.allows("m", 3 * SECONDS)
    for _ in range(2000):
        again = again.after_prompt("m", 0.0, worked=False)
    assert again.until == LONGEST_PAUSE_SECONDS
    assert again.after_prompt("m", 0.0, worked=True) == CircuitBreaker("m")


def test_another_model_begins_anew() -> None:
    """What one model did is not held against the one that the settings name instead."""
    known = CircuitBreaker()
    for _ in range(FAILURES):
        known = known.after_prompt("m", 0.0, worked=False)
    assert known.allows("other", 0.0)
    assert known.after_prompt("other", 0.0, worked=False).failures == 1
