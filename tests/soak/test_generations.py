"""G16: a daemon that serves generations of clients, learns, dreams and is restarted stays level."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.soak.figures import FIGURE
from tests.soak.generations import Life, answers, generation, leaving, leftovers
from tests.support import mixed_load as level
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import messages_server

MEMORIES = 200
_WARM_REQUESTS = 10_000
_FILLING = 1_000  # requests that fill the pool of threads
_SETTLING_SECONDS = 15.0  # a thread of the pool ends when it was idle for 10
_SLOPE = 1.0  # MiB per 10,000 requests
_RESIDENT = 160.0  # MiB in all; the goal of 120 is missed: docs/reliability.md
_OPTIONS = """[model]
base_url = "{url}"
[spend]
dollars_per_day = 10_000
requests_per_day = 1_000_000
[dream]
auto = false
"""


def configured(home: Home, url: str) -> None:
    """Name the model's server in the home's settings."""
    config = Path(home.places.config)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(_OPTIONS.format(url=url))
    config.chmod(0o600)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="sizes are read from /proc")
@pytest.mark.parametrize(
    ("lives", "requests", "cycles"),
    [((1,), 40, 1), pytest.param((10, 5, 5), 5_000, 100, marks=pytest.mark.soak)],
)
def test_generations_leave_nothing_behind(
    lives: tuple[int, ...],
    requests: int,
    cycles: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Memory is level and bounded; descriptors and threads are those of the start, files none."""
    with throw_away_home() as home, messages_server(answers) as server:
        configured(home, server.url)
        level.prepare(home, MEMORIES)
        told = []
        for generations in lives:
            with daemon_process(home) as process:
                life, sizes = Life(process.pid), list[level.Sample]()
                for _ in range(generations):
                    with leaving(home):
                        generation(home, life, memories=MEMORIES, most=requests, cycles=cycles)
                    server.requests.clear()
                    sizes.append(settled(home, life, sizes[0] if sizes else None))
                told.append((life, sizes[0], sizes[-1]))
                assert life.zombies == 0
            assert leftovers(home) == []
            size = Path(home.places.database).stat().st_size / 2**20  # its log is empty now
            asked = sum(life.requests for life, _, _ in told)
            record_property(FIGURE, f"G16 the state file: {size:.1f} MiB after {asked:,} requests")
    for life, before, after in told:
        record_property(FIGURE, figure(life, before, after))
        assert (life.learnt, life.dreams) == (life.generations * cycles,) * 2
        assert after.descriptors <= before.descriptors
        assert after.threads <= before.threads or requests < _FILLING
    if requests >= _WARM_REQUESTS / 2:
        assert_level([life for life, _, _ in told])


def settled(home: Home, life: Life, before: level.Sample | None) -> level.Sample:
    """Wait until idle threads have ended, and return how big the daemon is then."""
    until = time.monotonic() + _SETTLING_SECONDS
    pause = threading.Event()  # never set: it waits
    with client(home) as caller:
        while True:
            caller.call("status", {})
            after = life.look()
            over = before is None or (
                after.threads <= before.threads and after.descriptors <= before.descriptors
            )
            if over or time.monotonic() > until:
                return after
            pause.wait(0.2)


def figure(life: Life, before: level.Sample, after: level.Sample) -> str:
    """Return what one daemon's life was in one line."""
    warm = [one for one in life.samples if one.requests >= _WARM_REQUESTS]
    slope = f"{level.slope(warm):+.2f}" if warm else "-"
    return (
        f"G16 {life.requests:,} requests, {life.learnt} extractions, {life.dreams} dreams: RSS"
        f" {before.resident:.0f} MiB after one generation, {after.resident:.0f} at the end, at most"
        f" {max(one.resident for one in life.samples):.0f}, {slope} per 10,000 requests behind"
        f" the first 10,000; descriptors {before.descriptors} and {after.descriptors}, threads"
        f" {before.threads} and {after.threads}; 0 processes, 0 temporary files left"
    )


def assert_level(lives: list[Life]) -> None:
    """Check the bounds of a long run: growth, and size in all."""
    for life in lives:
        warm = [one for one in life.samples if one.requests >= _WARM_REQUESTS]
        assert level.slope(warm) <= _SLOPE
        assert max(one.resident for one in life.samples) <= _RESIDENT
