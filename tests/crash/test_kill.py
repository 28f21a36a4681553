"""Kill -9 at every system call that changes something, in every kind of commit and in recovery.

Single deaths are tried with strace, the ground truth. Double ones are tried at the calls that the
core counts, by forks that cost a twentieth of that; one test holds that both see the same
operations on files.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from tests.crash import forks, kill
from tests.crash.cases import Case, decision, make_case, restore
from tests.crash.conftest import FIGURE
from tests.crash.operation import OPERATIONS

strace = pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works")


@pytest.fixture(params=OPERATIONS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    """Prepare an operation and learn what its before and after are."""
    return make_case(request.param, tmp_path)


@strace
@pytest.mark.crash
def test_a_kill_at_any_call_leaves_before_or_after(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    """After a kill anywhere in a commit the directory is whole, and a retry completes it once."""
    restore(case.template, case.root)
    every = kill.points(case.root, case.name, "run")
    bad = []
    for point in every:
        restore(case.template, case.root)
        said = kill.killed(case.root, case.name, "run", point)
        wrong = decision(case, acknowledged="acknowledged" in said)
        if wrong:
            bad.append((point, wrong))
    record_property(FIGURE, f"G1 {case.name}: {len(every)} points, {len(bad)} bad")
    assert len(every) > 20
    assert bad == []


@pytest.mark.crash
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_kill_in_recovery_changes_nothing(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """After a kill in a commit and another in its recovery, the next recovery still succeeds."""
    done = subprocess.run(
        [sys.executable, "-B", forks.__file__, str(tmp_path), name],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    double, bad = results["double"], results["bad"]
    record_property(
        FIGURE, f"G1 {name}: {results['points']} x recovery = {double} double kills, {len(bad)} bad"
    )
    assert bad == []
    assert double > 2 * results["points"]


@strace
def test_both_ways_of_killing_see_the_same_operations(tmp_path: Path) -> None:
    """What the core counts in a commit is what the kernel sees done to the directory."""
    case = make_case("dream", tmp_path)
    restore(case.template, case.root)
    seen = kill.file_operations(case.root, case.name)
    restore(case.template, case.root)
    calls = forks.in_child(case.root, OPERATIONS[case.name], 0)
    assert calls is not None
    ours = [call for call in calls if call not in {"begin", "transaction", "committed", "close"}]
    assert [word for word, group in groupby(ours) for _ in list(group)[: _retained(word)]] == seen
    assert len(seen) > 10


def _retained(word: str) -> int | None:
    return 1 if word == "write" else None
