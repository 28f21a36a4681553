"""The consolidation lock."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from memd.base.errors import Storage
from memd.store import lock
from memd.store.lock import GUARD, LOCK, ConsolidationLock, IsAlive
from tests.store.lock_race import race

NOW = 1_760_000_000.0
NS = 1_000_000_000
HOUR = 3600.0


def _remember(pid: int, taken_ns: int, prior_ns: int | None) -> None:
    assert pid == os.getpid()
    assert taken_ns == int(NOW * NS)
    assert prior_ns is None or isinstance(prior_ns, int)


def _nobody(_pid: int, _since: float) -> bool:
    return False


def _everybody(_pid: int, _since: float) -> bool:
    return True


def _write(folder: Path, body: bytes, mtime: float) -> Path:
    path = folder / LOCK
    path.write_bytes(body)
    os.utime(path, (mtime, mtime))
    return path


def _take(folder: Path, is_alive: IsAlive = _nobody) -> ConsolidationLock | None:
    return lock.take(str(folder), NOW, _remember, is_alive)


def _held(folder: Path, is_alive: IsAlive = _nobody) -> ConsolidationLock:
    held = _take(folder, is_alive)
    assert held is not None
    return held


def _end(held: ConsolidationLock) -> None:
    held.release(held.prior_ns)


def test_success_is_recorded_by_the_time(tmp_path: Path) -> None:
    """A dream names its process while it lasts, and a success leaves the time of its start."""
    assert lock.consolidated_at(str(tmp_path)) is None
    held = _held(tmp_path)
    assert (tmp_path / LOCK).read_bytes() == b"%d\n" % os.getpid()
    assert lock.consolidated_at(str(tmp_path)) == NOW
    assert held.is_ours()
    held.release(held.taken_ns)
    assert lock.consolidated_at(str(tmp_path)) == NOW
    assert (tmp_path / LOCK).read_bytes() == b""
    assert not lock.is_busy(str(tmp_path), NOW, _everybody)
    _end(_held(tmp_path, _everybody))
    assert sorted(path.name for path in tmp_path.iterdir()) == [LOCK, GUARD]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_what_stood_before_is_told_before_anything_changes(tmp_path: Path) -> None:
    """The earlier time is remembered first; where that fails, nothing was touched or is held."""
    path = _write(tmp_path, b"", NOW - 90 * HOUR)
    before = path.stat()

    def fail(_pid: int, _taken_ns: int, prior_ns: int | None) -> None:
        assert prior_ns == before.st_mtime_ns
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lock.take(str(tmp_path), NOW, fail, _nobody)
    assert path.stat().st_ino == before.st_ino
    _end(_held(tmp_path))


def test_two_of_ours_never_meet(tmp_path: Path) -> None:
    """While one dream holds the lock another of memd gets nothing, whatever the PID says."""
    held = _held(tmp_path)
    assert _take(tmp_path) is None
    assert lock.restore(str(tmp_path), os.getpid(), int(NOW * NS), None) is None
    held.release(held.taken_ns)
    assert _take(tmp_path) is not None


@pytest.mark.parametrize(
    ("body", "age", "busy"),
    [
        (b"4242\n", 0.0, True),
        (b"4242", 59 * 60.0, True),
        (b"4242\r\n", 10.0, True),
        (b"4242\n1760000000000\n", 10.0, True),
        (b"4242\n", 61 * 60.0, False),
        (b"4242\n", -10.0, True),
        (b"4242\n", -61 * 60.0, False),
        (b"4242\n", -1e9, False),
        (b"4242\n", NOW, False),
        (b"", 0.0, False),
        (b"0\n", 0.0, False),
        (b"-1\n", 0.0, False),
        (b"2147483648\n", 0.0, False),
        (b"99999999999999999999\n", 0.0, False),
        (b"abc\n", 0.0, False),
        ("４２\n".encode(), 0.0, False),
        (b"42\x00\n", 0.0, False),
        (b"4242\n" + b"x" * 1_000_000, 0.0, False),
    ],
)
def test_who_counts_as_a_holder(tmp_path: Path, body: bytes, age: float, busy: bool) -> None:  # noqa: FBT001 - a column of the table
    """A living PID less than an hour away holds the lock; garbage and stale times do not."""
    _write(tmp_path, body, NOW - age)
    assert lock.is_busy(str(tmp_path), NOW, _everybody) is busy
    assert not lock.is_busy(str(tmp_path), NOW, _nobody)
    held = _take(tmp_path, _everybody)
    assert (held is None) is busy
    if held is not None:
        held.release(held.taken_ns)


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    """Where there is no memory directory nobody is at it, and nothing can be taken."""
    missing = str(tmp_path / "none")
    assert not lock.is_busy(missing, NOW)
    assert lock.restore(missing, 1, 1, 1) is None
    with pytest.raises(Storage):
        lock.take(missing, NOW, _remember)
    (tmp_path / "file").write_text("")
    with pytest.raises(Storage):
        lock.is_busy(str(tmp_path / "file"), NOW)


def test_another_program_that_took_over_keeps_the_lock(tmp_path: Path) -> None:
    """A lock that no longer names us is not ours to end, however the dream went."""
    for mtime_ns in (int(NOW * NS), None):
        held = _held(tmp_path)
        path = _write(tmp_path, b"4242\n", NOW + 5)
        assert not held.is_ours()
        held.release(mtime_ns)
        assert path.read_bytes() == b"4242\n"
        assert path.stat().st_mtime == NOW + 5
    held = _held(tmp_path)
    (tmp_path / LOCK).unlink()
    assert not held.is_ours()
    (tmp_path / LOCK).mkdir()
    with pytest.raises(Storage):
        held.is_ours()
    with pytest.raises(Storage):
        held.release(held.taken_ns)


def test_the_start_puts_back_what_a_crash_left(tmp_path: Path) -> None:
    """A lock that a killed dream holds gets its earlier time back, and no holder."""
    path = _write(tmp_path, b"4242\n", NOW)
    (tmp_path / f"{LOCK}.new").write_text("")
    before = int((NOW - 50 * HOUR) * NS)
    assert lock.restore(str(tmp_path), 4242, int(NOW * NS), before) is True
    assert path.stat().st_mtime == NOW - 50 * HOUR
    assert path.read_bytes() == b""
    assert not (tmp_path / f"{LOCK}.new").exists()
    _write(tmp_path, b"4242\n", NOW)
    assert lock.restore(str(tmp_path), 4242, int(NOW * NS), None) is True
    assert not path.exists()


@pytest.mark.parametrize(
    ("body", "mtime"), [(b"77\n", NOW), (b"", NOW), (b"4242\n", NOW + 60), (b"4242\n", NOW - 60)]
)
def test_the_start_leaves_what_is_not_ours(tmp_path: Path, body: bytes, mtime: float) -> None:
    """A lock that names another holder or another time stays as it is."""
    path = _write(tmp_path, body, mtime)
    assert lock.restore(str(tmp_path), 4242, int(NOW * NS), 1) is False
    assert (path.read_bytes(), path.stat().st_mtime) == (body, mtime)


@contextmanager
def _meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """Do something over and over in another thread."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            act()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_program_that_writes_in_the_same_instant_is_noticed(tmp_path: Path) -> None:
    """What another program wrote after the first look stays, and memd does not hold the lock."""
    path = tmp_path / LOCK

    def overwrite(*_: object) -> None:
        path.write_text("4242\n")

    assert lock.take(str(tmp_path), NOW, overwrite, _nobody) is None
    assert path.read_text() == "4242\n"


def test_a_guard_that_keeps_vanishing_is_not_held(tmp_path: Path) -> None:
    """A guard that somebody else could open anew under the same name protects nothing."""
    with _meanwhile(partial((tmp_path / GUARD).unlink, missing_ok=True)):
        for _ in range(200):
            held = _take(tmp_path)
            if held is not None:
                held.release(held.prior_ns)
    (tmp_path / GUARD).unlink(missing_ok=True)
    folder = os.open(tmp_path, os.O_RDONLY)
    opened = os.open(GUARD, os.O_CREAT | os.O_RDWR, dir_fd=folder)
    try:
        assert lock._is_current_guard(folder, opened)
        (tmp_path / GUARD).unlink()
        assert not lock._is_current_guard(folder, opened)
        (tmp_path / GUARD).touch()
        assert not lock._is_current_guard(folder, opened)
    finally:
        os.close(opened)
        os.close(folder)


@pytest.mark.parametrize("foreign", [0, 1, 4])
def test_a_race_has_one_winner(tmp_path: Path, foreign: int) -> None:
    """Of daemons and foreign programs that start at once, never two daemons hold the lock."""
    _write(tmp_path, b"", NOW)
    rounds = race(tmp_path, 10, foreign)
    assert max(results.daemons for results in rounds) <= 1
    assert foreign or [results.daemons for results in rounds] == [1] * 10


def test_a_name_that_is_taken_is_no_way_out(tmp_path: Path) -> None:
    """What lies at the temporary name is replaced, and refused where it cannot be."""
    (tmp_path / "victim").write_text("kept")
    (tmp_path / f"{LOCK}.new").symlink_to("victim")
    _end(_held(tmp_path))
    assert (tmp_path / "victim").read_text() == "kept"
    (tmp_path / f"{LOCK}.new").mkdir()
    with pytest.raises(Storage):
        _take(tmp_path)
