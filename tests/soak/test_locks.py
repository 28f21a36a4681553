"""G7: 200 rounds of eight starters for the consolidation lock and for the right to serve.

Reused PIDs, hostile bodies and times of locks are tables in tests/store/test_lock.py and
tests/daemon/test_instance.py.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon import test_instance as instances
from tests.soak.figures import FIGURE
from tests.store import lock_race

pytestmark = pytest.mark.soak
Record = Callable[[str, object], None]
ROUNDS = 200


@pytest.mark.parametrize("foreign", [0, 1, 2, 4])
def test_nobody_shares_the_consolidation_lock(
    foreign: int, tmp_path: Path, record_property: Record
) -> None:
    """In no round do two daemons hold the lock, whatever foreign programs want it too."""
    rounds = lock_race.race(tmp_path, ROUNDS, foreign)
    double = sum(results.daemons > 1 for results in rounds)
    met = sum(results.met for results in rounds)
    both = sum(results.both for results in rounds)
    held = sum(results.daemons for results in rounds)
    record_property(
        FIGURE,
        f"G7 consolidation lock: {ROUNDS} rounds x {lock_race.STARTERS} starters, {foreign} of them"
        f" foreign: {double} double holders, a daemon held it {held} times, {met} times beside a"
        f" foreign program, {both} times still before its commit",
    )
    assert double == 0
    assert foreign or held == ROUNDS


def test_nobody_shares_the_right_to_serve(tmp_path: Path, record_property: Record) -> None:
    """In each round one of eight starters serves and the others leave with status 0."""
    served = [instances.race(tmp_path) for _ in range(ROUNDS)]
    wrong = sum(count != 1 for count in served)
    record_property(FIGURE, f"G7 instance lock: {ROUNDS} rounds x 8 starters, {wrong} not with one")
    assert served == [1] * ROUNDS
