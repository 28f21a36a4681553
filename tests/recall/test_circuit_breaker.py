"""How long a model that fails prompts is left alone."""

from memd.recall.circuit_breaker import FAILURES, SECONDS, SECONDS_MOST, CircuitBreaker


def test_a_model_is_left_alone_after_failures_in_a_row() -> None:
    """Three failures open the pause, it grows up to the longest, and one success ends it all."""
    known = CircuitBreaker()
    for number in range(FAILURES):
        assert known.asks("m", 0.0), number
        known = known.after("m", 0.0, worked=False)
    assert not known.asks("m", SECONDS - 1)
    assert known.asks("m", SECONDS)
    again = known.after("m", SECONDS, worked=False)
    assert not again.asks("m", 3 * SECONDS - 1)
    assert again.asks("m", 3 * SECONDS)
    for _ in range(2000):
        again = again.after("m", 0.0, worked=False)
    assert again.until == SECONDS_MOST
    assert again.after("m", 0.0, worked=True) == CircuitBreaker("m")


def test_another_model_begins_anew() -> None:
    """What one model did is not held against the one that the settings name instead."""
    known = CircuitBreaker()
    for _ in range(FAILURES):
        known = known.after("m", 0.0, worked=False)
    assert known.asks("other", 0.0)
    assert known.after("other", 0.0, worked=False).failures == 1
