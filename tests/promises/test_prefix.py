"""A prefix once sent stays: what the cache gives back of a long run, with memd and without.

A request *rereads* what the cache gives back of the prompt before it. Without memd that is all of
it, but after pauses in which the cache dies. Thinking is bound on the model of these runs, so that
a changed prefix would also be refused.
"""

from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest

from benchmarks.context_runs import ClearByAge, Played, Way, play
from benchmarks.context_sessions import Session, long_run
from benchmarks.context_ways import Kept, able, prepared
from tests.support.daemon import Home

TOLERANCE = 0.01


@pytest.fixture(scope="module", params=[80, pytest.param(300, marks=pytest.mark.soak)], name="run")
def _run(request: pytest.FixtureRequest) -> Session:
    """Return a recorded run of so many requests; some results are large."""
    return long_run(request.param)


@pytest.fixture(scope="module", name="plain")
def _plain(run: Session) -> Played:
    """Return what the run comes to without memd."""
    return play(run, Way())


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Return the home of a running daemon; the SDK has no profile."""
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    with prepared() as (home, _):
        yield home


def misses(played: Played) -> list[int]:
    """Return the requests that reread less of the prompt before them than all but a hundredth."""
    return [number for number, share in enumerate(played.reread) if share < 1 - TOLERANCE]


def test_storing_results_costs_no_cache(home: Home, run: Session, plain: Played) -> None:
    """Large results go, no request is refused, and the cache gives back what it did without."""
    played = play(run, Kept(home, "run"))
    assert played.refused == 0
    assert played.largest < 0.8 * plain.largest
    assert misses(played) == misses(plain)
    assert abs(mean(played.reread) - mean(plain.reread)) <= TOLERANCE
    assert played.answers["lost"] == 0


def test_clearing_by_the_api_breaks_the_cache_where_it_clears(
    home: Home, run: Session, plain: Played
) -> None:
    """What the API clears for memd breaks the prefix then, and at no request between."""
    played = play(run, Kept(home, "run", model=able(window=60_000)))
    assert played.refused == 0
    assert 0 < played.edits < len(run.exchanges) / 10
    assert len(set(misses(played)) - set(misses(plain))) <= played.edits


@pytest.mark.parametrize("strategy", ["local", "model"])
def test_a_compaction_breaks_the_cache_once(
    strategy: str, home: Home, run: Session, plain: Played
) -> None:
    """A summary breaks the prefix when it is put in, and no thinking behind it is refused."""
    way = Kept(home, "run", strategy=strategy, compact_at=60_000)
    played = play(run, way)
    assert (played.refused, bool(way.compactions)) == (0, True)
    assert len(set(misses(played)) - set(misses(plain))) <= way.compactions


def test_clearing_by_age_loses_cache_and_thinking(run: Session, plain: Played) -> None:
    """The way that knows nothing of prefixes misses nearly each time and is refused."""
    played = play(run, ClearByAge())
    assert played.refused > len(run.exchanges) / 2
    assert mean(played.reread) < 0.5 < mean(plain.reread)
    assert played.dollars > plain.dollars
