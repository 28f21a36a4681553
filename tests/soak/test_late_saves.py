"""Saves that come while, or long after, memd replaces the file that a program has open."""

import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from memd.client.launch import connect
from tests.soak.figures import FIGURE
from tests.soak.late_writers import WAYS, Result, Round, killed_after_the_answer, run
from tests.support.daemon import Home, throw_away_home

SIDE_BY_SIDE = 10


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize(
    ("rounds", "longest"), [(1, 0.3), pytest.param(200, 3.0, marks=pytest.mark.soak)]
)
def test_no_save_is_lost(
    way: str, rounds: int, longest: float, record_property: Callable[[str, object], None]
) -> None:
    """Whatever a program and memd write at once is in the tree or in the history."""
    work = WAYS[way]
    # A daemon that is killed is a round's own; otherwise one daemon serves all rounds.
    alone = work is killed_after_the_answer
    with ThreadPoolExecutor(min(rounds, SIDE_BY_SIDE)) as pool:
        if alone:
            results = list(pool.map(lambda n: in_a_home(n, work, longest), range(rounds)))
        else:
            with throw_away_home() as home:
                results = list(pool.map(lambda n: one_round(home, n, work, longest), range(rounds)))
                end(home)
    lost, empty, left = (
        sum(getattr(result, name) for result in results) for name in Result.__slots__
    )
    record_property(
        FIGURE,
        f"late saves, {way}: {rounds} rounds, pauses to {longest} s: {lost} texts lost,"
        f" {empty} empty files, {left} files left over",
    )
    assert (lost, empty, left) == (0, 0, 0)


def in_a_home(number: int, work: Callable[[Round], None], longest: float) -> Result:
    """Run a round against a daemon of its own."""
    with throw_away_home() as home:
        try:
            return one_round(home, number, work, longest)
        finally:
            end(home)


def one_round(home: Home, number: int, work: Callable[[Round], None], longest: float) -> Result:
    """Run a round in a project of its own."""
    cwd = home.project(f"project{number}")
    chance = random.Random(number)  # noqa: S311 - it spreads saves over time
    return run(Round(home, cwd, number, chance, longest), work)


def end(home: Home) -> None:
    """Stop the daemon that a client has started."""
    with connect(home.places, home.environ, name="end", deadline=60) as client:
        pid = client.call("status", {})["pid"]
        client.call("shutdown", {})
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
