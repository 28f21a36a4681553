"""The root of every failure."""

from memd.core.errors import MemdError


def test_a_failure_carries_its_sentence_and_its_facts() -> None:
    """A person gets the sentence, a program the facts."""
    error = MemdError("the store is full", path="a.md", size=3)
    assert (str(error), error.sentence) == ("the store is full", "the store is full")
    assert error.facts == {"path": "a.md", "size": 3}
    assert (error.code, error.kind, error.retryable, error.exit_status) == (
        1000,
        "failed",
        False,
        1,
    )
