"""When a place takes writes."""

import errno

from memd.core.health import Health, WriteDecision


def failing(*codes: int) -> Health:
    """Return the health after failures with these codes."""
    health = Health()
    for code in codes:
        health.failed(code, "cause")
    return health


def test_two_in_a_row_close_the_place() -> None:
    """A probe is allowed at once and then once a second, until something reached the medium."""
    health = failing(errno.EIO, errno.ENOSPC)
    assert health.cause == "cause"
    answers = [(at, health.decision(at)) for at in (10.0, 10.9, 11.0, 11.5, 12.5)]
    assert [at for at, decision in answers if decision is WriteDecision.PROBE] == [10.0, 11.0, 12.5]
    assert {decision for _, decision in answers} == {WriteDecision.PROBE, WriteDecision.REFUSE}
    health.succeeded()
    assert health.decision(12.6) is WriteDecision.GO
    assert not health.cause


def test_a_clock_that_was_set_back_keeps_nothing_closed() -> None:
    """A probe is allowed when the last one seems to lie in the future."""
    health = failing(errno.EIO, errno.EIO)
    assert health.decision(1000.0) is WriteDecision.PROBE
    assert health.decision(10.0) is WriteDecision.PROBE
