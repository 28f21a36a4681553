"""The locks of dreams, with their rows in the state file."""

import os
from pathlib import Path

import pytest

from memd.base.errors import Storage
from memd.daemon.app import SCHEMAS
from memd.dream.lock import DreamLock, LockRow, lock_rows
from memd.state.database import open_database
from memd.state.docs import Docs
from memd.store.lock import LOCK
from tests.support.clock import FakeClock

NOW, NS = 1_772_450_000.0, 1_000_000_000
FAR = 2**100  # ns, a time that no system has


@pytest.fixture
def locks(tmp_path: Path) -> DreamLock:
    """Return the locks of a daemon beside an empty memory directory."""
    (tmp_path / "memory").mkdir()
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    return DreamLock(Docs(database), FakeClock(NOW), lambda _pid, _since: True)


@pytest.mark.parametrize("prior", [None, NOW - 90_000.25])
def test_a_dream_that_died_has_its_turn_again(
    tmp_path: Path, locks: DreamLock, prior: float | None
) -> None:
    """The next start gives the lock its time of before, and says so once; then it is free."""
    folder, path = str(tmp_path / "memory"), tmp_path / "memory" / LOCK
    if prior is not None:
        path.touch()
        os.utime(path, (prior, prior))
    taken = locks.take(folder)
    assert taken is not None
    assert locks.recover() == ()  # the dream goes on, and its row stays
    taken.descriptors.close()  # as the end of the process does
    assert len(locks.recover()) == 1
    assert (path.stat().st_mtime if path.exists() else None) == prior
    assert locks.recover() == ()
    again = locks.take(folder)
    assert again is not None
    locks.finish(again, is_complete=True)
    assert path.stat().st_mtime == NOW
    assert lock_rows(locks.table) == ()


def test_a_row_that_names_no_possible_time_is_told(tmp_path: Path, locks: DreamLock) -> None:
    """A time that no file can have is a sentence at the start, and refuses the next dream."""
    folder, pid = str(tmp_path / "memory"), os.getpid()
    (tmp_path / "memory" / LOCK).write_text(f"{pid}\n")
    os.utime(tmp_path / "memory" / LOCK, (NOW, NOW))
    locks.table.put(LockRow(folder, pid, int(NOW * NS), FAR), folder)
    (told,) = locks.recover()
    assert "cannot be used" in told
    locks.table.put(LockRow(folder, pid, int(NOW * NS), FAR), folder)
    (tmp_path / "memory" / LOCK).unlink()
    (tmp_path / "memory" / LOCK).mkdir()
    with pytest.raises(Storage):
        locks.take(folder)
