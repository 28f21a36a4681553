"""The demo."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import client, daemon_process, throw_away_home
from tools.demo_stage import Demo


def test_the_demo_succeeds() -> None:
    """Every check of the demo holds, and it says how many there were."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.demo"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed." in done.stdout


def test_a_check_that_fails_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """A check that does not hold is shown as such."""
    with throw_away_home() as home, daemon_process(home), client(home) as connection:
        demo = Demo(connection, home)
        demo.check("pigs fly", holds=False)
        demo.show("\n".join(["x" * 200] * 20))
    out = capsys.readouterr().out
    assert "NO  pigs fly" in out
    assert "8 more lines" in out
    assert demo.checks == [("pigs fly", False)]
