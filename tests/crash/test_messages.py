"""Kill -9 and full disks at every system call of what is done with messages."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash import kill, messaging
from tests.crash.conftest import FIGURE

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works"),
]
STRIDES = {"kill": 1, "ENOSPC": 3}
POINTS = 3  # that there must at least be


@pytest.mark.parametrize("operation", messaging.OPERATIONS)
@pytest.mark.parametrize("fault", STRIDES)
def test_a_message_survives(
    operation: str, fault: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Wherever the daemon dies: what it answered is so; each message is read or its end told."""
    stride = STRIDES[fault]
    command = [sys.executable, "-B", messaging.__file__, str(tmp_path), operation, fault]
    done = subprocess.run(
        [*command, str(stride)], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    points, died, bad = results["points"], results["died"], results["bad"]
    words = f"{points} points, {died} before the answer, {len(bad)} bad"
    record_property(FIGURE, f"messages {fault} in {operation}: {words}")
    assert bad == []
    assert points * stride >= POINTS
