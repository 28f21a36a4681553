"""Kill -9 and full disks at every system call of a sync that changes something, on both sides."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash import kill, teaming
from tests.crash.conftest import FIGURE

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works"),
]
POINTS = {"memd": 20, "memd-team": 3}  # that there must at least be
STRIDES = {"kill": 1, "ENOSPC": 3}
Record = Callable[[str, object], None]


@pytest.mark.parametrize("operation", teaming.OPERATIONS)
@pytest.mark.parametrize("who", POINTS)
@pytest.mark.parametrize("fault", STRIDES)
def test_a_sync_survives(
    who: str, operation: str, fault: str, tmp_path: Path, record_property: Record
) -> None:
    """Wherever it dies: nothing acknowledged is lost, and both are equal without being mended."""
    stride = STRIDES[fault]
    command = [sys.executable, "-B", teaming.__file__, str(tmp_path), who, operation, fault]
    done = subprocess.run(
        [*command, str(stride)], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    points, died, bad = results["points"], results["died"], results["bad"]
    words = f"{points} points, {died} before the answer, {len(bad)} bad"
    record_property(FIGURE, f"team {fault} of {who} in {operation}: {words}")
    assert bad == []
    if (who, operation) != ("memd-team", "pull"):  # a pull changes nothing there
        assert points * stride >= POINTS[who]
