"""What a daemon holds stays level under mixed load."""

from concurrent.futures import wait

from tests.support import mixed_load as level
from tests.support.daemon import Home, daemon_process, throw_away_home

MEMORIES = 60
REQUESTS = 150
DEADLINE = 120.0


def requested(home: Home, pid: int) -> level.Sample:
    """Ask for a while, and return how big the daemon is then."""
    with level.load(home, MEMORIES, clients=2, most=REQUESTS) as mixed:
        wait(mixed.asking, DEADLINE)
    return level.sample(pid, 0.0, mixed.requests)


def test_mixed_load_leaves_nothing_behind() -> None:
    """After writes, undos, prompts, jobs and cut connections a daemon holds about what it held."""
    with throw_away_home() as home:
        level.prepare(home, MEMORIES)
        with daemon_process(home) as process:
            first, last = requested(home, process.pid), requested(home, process.pid)
    assert last.requests >= REQUESTS
    assert last.threads <= first.threads + 8
    assert last.resident < first.resident + 30


def test_the_slope_is_that_of_the_samples() -> None:
    """Growth is told per 10,000 requests, whatever the distance of the samples."""
    samples = [
        level.Sample(0.0, number, 50 + number / 5_000, 1, 1) for number in (0, 10, 400, 9_000)
    ]
    assert abs(level.slope(samples) - 2.0) < 1e-9
