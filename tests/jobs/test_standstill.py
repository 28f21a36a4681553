"""What holds background work up now."""

from memd.core import limits
from memd.jobs.standstill import Standstill
from memd.state.jobs import JobTable
from tests.jobs.bench import Bench


def test_it_is_the_same_after_a_restart(bench: Bench) -> None:
    """A pause and the breakers are in memory and in the state file alike."""
    rows = JobTable(bench.database).pauses
    first, second = Standstill(rows), Standstill(rows)
    assert first.pause(10.0) == 10.0
    assert first.pause(20.0) == 10.0
    for _ in range(limits.BREAKER_AFTER):
        first.model_failed("/m", "down", 10.0)
    first.model_failed("/n", "down", 10.0)
    second.load()
    for standstill in (first, second):
        standing = standstill.standing(11.0, 2)
        assert standing.paused_since == 10.0
        assert [row.directory for row in standing.breakers] == ["/m"]
        assert not standstill.model_allowed("/m", 11.0)
        assert standstill.model_allowed("/n", 11.0)
        assert standstill.model_allowed("/m", 10.0 + limits.BREAKER_SECONDS)
    first.resume()
    first.model_worked("/m")
    first.model_worked("/never")
    second.load()
    assert second.standing(11.0, 0).breakers == ()
    assert second.paused_since is None
