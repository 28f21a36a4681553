"""The locks of dreams with their rows in the state file."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.core.values import LockTaken
from memd.dream.lock import DreamLock
from memd.state import cursors, dreams, job_rows, journal
from memd.state.database import StateUnusableError, open_database
from memd.watch import locks
from memd.watch.locks import ConsolidationLock, LockUnusableError
from tests.dream.bench import DAY, NOW, NS, Bench

TAKEN = int(NOW) * NS
PRIOR = int(NOW - DAY) * NS + 123_456_789


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store without memories."""
    schemas = (journal.SCHEMA, cursors.SCHEMA, job_rows.SCHEMA, dreams.SCHEMA)
    database = open_database(str(tmp_path / "state.db"), schemas)
    yield Bench(tmp_path, database)
    database.close()


def _lock(bench: Bench, *, alive: bool = False) -> DreamLock:
    return DreamLock(bench.table, bench.clock, lambda _pid, _since: alive)


def _held(bench: Bench) -> ConsolidationLock:
    held = _lock(bench).take(str(bench.memory))
    assert held is not None
    return held


def _time(bench: Bench) -> int | None:
    """Return the mtime of the lock file, ``None`` where there is none."""
    path = bench.memory / locks.LOCK
    return path.stat().st_mtime_ns if path.exists() else None


def _prior(bench: Bench, prior: int | None) -> None:
    if prior is not None:
        os.utime(bench.lock(NOW), ns=(prior, prior))


def _retained(bench: Bench, taken: int = TAKEN) -> None:
    """Let the time of a dream stand, as its change set does."""
    with bench.database.transaction() as cursor:
        dreams.save(cursor, LockTaken(str(bench.memory), taken))


def _crash(bench: Bench, pid: int = 4242) -> None:
    """Leave a lock as a process does that died during its dream."""
    held = _held(bench)
    (bench.memory / locks.LOCK).write_bytes(b"%d\n" % pid)
    os.utime(bench.memory / locks.LOCK, ns=(TAKEN, TAKEN))
    (row,) = bench.table.locks()
    bench.table.remember(replace(row, pid=pid))
    os.close(held._guard)
    os.close(held._folder)


@pytest.mark.parametrize("prior", [None, PRIOR])
def test_the_start_puts_a_crash_right(bench: Bench, prior: int | None) -> None:
    """What a crash left gets the time that its change has earned, no holder, and no row."""
    for kept, time in ((False, prior), (True, TAKEN)):
        _prior(bench, prior)
        _crash(bench)
        if kept:
            _retained(bench)
        (sentence,) = _lock(bench).recover()
        assert ("its work is done" in sentence) is kept
        assert (_time(bench), bench.table.locks()) == (time, ())
        assert time is None or (bench.memory / locks.LOCK).read_bytes() == b""
        assert _lock(bench).recover() == ()


@pytest.mark.parametrize("prior", [None, PRIOR])
def test_a_change_that_came_true_late_sets_the_time(bench: Bench, prior: int | None) -> None:
    """Where the lock was given back and the change is completed later, the time follows it."""
    _prior(bench, prior)
    _lock(bench).finish(_held(bench), is_complete=False)
    _retained(bench)
    assert len(_lock(bench).recover()) == 1
    assert (_time(bench), bench.table.locks()) == (TAKEN, ())


def test_the_next_taking_puts_right_what_was_left(bench: Bench) -> None:
    """A row whose lock could not be settled is settled before the lock is taken again."""
    _prior(bench, PRIOR)
    _crash(bench)
    bench.clock.advance(30.0)
    held = _held(bench)
    assert held.prior_ns == PRIOR
    _lock(bench).finish(held, is_complete=False)
    assert _time(bench) == PRIOR


def test_a_dream_of_another_daemon_keeps_its_row(bench: Bench) -> None:
    """While another daemon that is leaving still dreams, a start and a taking leave its row."""
    held = _held(bench)
    (row,) = bench.table.locks()
    assert _lock(bench).recover() == ()
    assert _lock(bench).take(str(bench.memory)) is None
    assert bench.table.locks() == (row,)
    _lock(bench).finish(held, is_complete=True)


def test_an_unusable_lock_keeps_its_row(bench: Bench) -> None:
    """Where the lock cannot be settled now, the row stays and each start says why."""
    _prior(bench, PRIOR)
    held = _held(bench)
    path = bench.memory / locks.LOCK
    path.rename(bench.memory / "aside")
    path.mkdir()
    _lock(bench).finish(held, is_complete=False)
    for _ in range(2):
        (sentence,) = _lock(bench).recover()
        assert "cannot be used" in sentence
    assert len(bench.table.locks()) == 1
    path.rmdir()
    (bench.memory / "aside").rename(path)
    assert len(_lock(bench).recover()) == 1
    assert (_time(bench), bench.table.locks()) == (PRIOR, ())


def test_a_state_file_that_is_gone_lets_the_lock_go(bench: Bench) -> None:
    """Where no row can be read or dropped, the lock file is settled by what is known."""
    _prior(bench, PRIOR)
    held = _held(bench)
    bench.database.close()
    _lock(bench).finish(held, is_complete=False)
    assert _time(bench) == PRIOR
    with pytest.raises(StateUnusableError):
        _lock(bench).take(str(bench.memory))
    assert _time(bench) == PRIOR


def test_a_taking_that_fails_leaves_the_lock_as_it_was(bench: Bench) -> None:
    """Where the new lock file cannot be written, the old one stays and no row is left."""
    _prior(bench, PRIOR)
    (bench.memory / f"{locks.LOCK}.new").mkdir()
    with pytest.raises(LockUnusableError):
        _lock(bench).take(str(bench.memory))
    assert (_time(bench), bench.table.locks()) == (PRIOR, ())
