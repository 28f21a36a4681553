"""Dreams that die or are refused a call, at every system call: lock and memories move together.

After the next start either the memories and the lock's time are what they were, to the nanosecond,
and the job waits; or all of the change is there, the lock has the dream's time and the job is
completed with its result.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crash import dreaming, kill
from tests.crash.conftest import FIGURE

pytestmark = pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works")
Record = Callable[[str, object], None]


def _sweep(folder: Path, how: str, prior: str, stride: int) -> Any:
    done = subprocess.run(
        [sys.executable, "-B", dreaming.__file__, str(folder), how, prior, str(stride)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_killed_dream_leaves_before_or_after(tmp_path: Path) -> None:
    """So it is at a part of the calls."""
    results = _sweep(tmp_path, "kill", "yes", 11)
    assert results["bad"] == []
    assert results["before"] > 0
    assert results["after"] > 0


@pytest.mark.crash
@pytest.mark.parametrize("prior", ["yes", "no"])
@pytest.mark.parametrize("how", ["kill", "EIO", "ENOSPC"])
def test_every_call_of_a_dream_may_be_its_last(
    how: str, prior: str, tmp_path: Path, record_property: Record
) -> None:
    """So it is at every call, where there was a lock file before and where there was none."""
    results = _sweep(tmp_path, how, prior, 1)
    words = f"G7 dream, {how}, {'with' if prior == 'yes' else 'without'} a lock file before:"
    ends = f"{results['before']} as before, {results['after']} done, {len(results['bad'])} bad"
    record_property(FIGURE, f"{words} {results['tried']} points, {ends}")
    assert results["bad"] == []
    assert results["before"] > 40
    assert results["after"] > 40


@pytest.mark.crash
@pytest.mark.parametrize("prior", ["yes", "no"])
def test_a_kill_in_the_start_that_follows_changes_nothing(
    prior: str, tmp_path: Path, record_property: Record
) -> None:
    """After a kill in a dream and one in the next start, the start after that puts all right."""
    results = _sweep(tmp_path, "double", prior, 23 if prior == "no" else 17)
    record_property(
        FIGURE,
        f"G7 dream: {results['tried']} points x the start that follows = {results['double']} "
        f"double kills, {len(results['bad'])} bad",
    )
    assert results["bad"] == []
    assert results["double"] > 150
