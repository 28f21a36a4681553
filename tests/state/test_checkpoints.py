"""Background checkpoints of the state file's log."""

import os
import threading
from pathlib import Path

from memd.state.database import COMMITS, Database, open_database

SCHEMA = "CREATE TABLE IF NOT EXISTS things (name TEXT);"


def write(database: Database, times: int) -> None:
    """Make some commits."""
    for number in range(times):
        database.write("INSERT INTO things VALUES (?)", (f"thing {number}",), synced=False)


def test_the_log_is_copied_in_the_background(tmp_path: Path) -> None:
    """After enough commits the file itself has the rows, which stood in its log alone before."""
    path = tmp_path / "state.db"
    database = open_database(str(path), [SCHEMA])
    write(database, COMMITS - 1)
    database.file.wait_for_copy()
    assert b"thing 1" not in path.read_bytes()
    # The last one begins the copy. Beside it no more are made: a page that the newest commit
    # changed may stay in the log until the next copy.
    write(database, 1)
    database.file.wait_for_copy()
    assert b"thing 1" in path.read_bytes()
    database.close()


def test_a_closed_file_leaves_no_thread_and_no_log(tmp_path: Path) -> None:
    """Closing right after the commit that begins a checkpoint waits for it; the log goes."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    write(database, 2 * COMMITS)
    database.close()
    assert not any(thread.name == "memd-checkpoint" for thread in threading.enumerate())
    assert os.listdir(tmp_path) == ["state.db"]


def test_deleted_content_goes_beside_a_checkpoint(tmp_path: Path) -> None:
    """Compacting right after the commit that begins a checkpoint empties the log."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    write(database, COMMITS)
    database.write("DELETE FROM things")
    database.compact()
    assert (tmp_path / "state.db-wal").stat().st_size == 0
    assert b"thing 1" not in (tmp_path / "state.db").read_bytes()
    database.close()


def test_a_checkpoint_that_fails_harms_nothing(tmp_path: Path) -> None:
    """A checkpoint of a removed file makes none, and the next commit goes to a new one."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    write(database, COMMITS // 2)
    for name in os.listdir(tmp_path):
        (tmp_path / name).unlink()
    database.file.begin_copy()
    database.file.wait_for_copy()
    assert os.listdir(tmp_path) == []
    write(database, 1)
    assert len(database.read("SELECT name FROM things")) == 1
    database.close()
