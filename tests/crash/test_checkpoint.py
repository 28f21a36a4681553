"""Kill -9 while the state file's log is copied into it in the background."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.state.database import COMMITS, open_database
from tests.crash import checkpointing
from tests.crash.conftest import FIGURE


@pytest.mark.parametrize(
    "kills", [pytest.param(6, id="sample"), pytest.param(200, id="all", marks=pytest.mark.crash)]
)
def test_a_kill_during_a_checkpoint_loses_no_commit(
    kills: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """What was acknowledged is there in its order, and the file is as a whole one should be."""
    path, acknowledged = tmp_path / "state.db", 0
    for kill in range(kills):
        command = [sys.executable, "-B", checkpointing.__file__, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            # A checkpoint begins with the last of these commits and runs beside the next ones.
            for _ in range(COMMITS + kill % 4):
                acknowledged = int(process.stdout.readline())
            process.kill()
            rest = process.stdout.read().split()
            acknowledged = int(rest[-1]) if rest else acknowledged
        database = open_database(str(path), [checkpointing.SCHEMA])
        rows = [row["number"] for row in database.read("SELECT number FROM things ORDER BY number")]
        whole = database.read("PRAGMA integrity_check")[0][0]
        database.close()
        assert rows == list(range(1, len(rows) + 1))
        assert (len(rows) in (acknowledged, acknowledged + 1), whole) == (True, "ok")
    record_property(FIGURE, f"{kills} kills beside a checkpoint, {acknowledged:,} commits, 0 lost")
