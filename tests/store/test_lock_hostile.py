"""What may lie in the place of the consolidation lock, and who may seem to hold it (A2).

All cases go through the real functions and ask the real machine who lives. Where rights matter,
root becomes user 65534 for the length of the case; root itself may read a file of mode 0000 and
write into a directory of mode 0500, and there the lock works as anywhere.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from memd.base.errors import Storage
from memd.store import lock
from memd.store.lock import GUARD, LOCK, ConsolidationLock

NS = 1_000_000_000
MINUTE = 60.0
NOBODY = 65534
IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="only root can give a file away")


def _take(folder: Path | str, now: float) -> ConsolidationLock | None:
    return lock.take(str(folder), now, lambda *_: None, lock.is_alive)


def _lock(folder: Path, body: bytes, mtime_ns: int) -> Path:
    path = folder / LOCK
    path.write_bytes(body)
    os.utime(path, ns=(mtime_ns, mtime_ns))
    return path


@pytest.fixture(scope="module")
def child() -> Iterator[psutil.Process]:
    """Run a process of our own that knows nothing of memory."""
    program = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as process:
        yield psutil.Process(process.pid)
        assert process.stdin is not None
        process.stdin.close()


def _link(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "file")


def _link_to_folder(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def _dangling(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "none")


def _loop(path: Path, _outside: Path) -> None:
    path.symlink_to(path.name)


def _folder(path: Path, _outside: Path) -> None:
    path.mkdir()
    (path / "kept").write_text("kept")


def _pipe(path: Path, _outside: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path, _outside: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    os.chdir(path.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


def _seen(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return what every entry below a folder is: identity, kind and mode, times, size, links."""
    results: dict[str, tuple[int, ...]] = {}
    for path in sorted((folder, *folder.rglob("*"))):
        facts = path.lstat()
        entry = (facts.st_ino, facts.st_mode, facts.st_mtime_ns, facts.st_size, facts.st_nlink)
        results[str(path)] = (*entry, hash(path.read_bytes()) if path.is_file() else 0)
    return results


@pytest.mark.parametrize("name", [LOCK, GUARD])
@pytest.mark.parametrize(
    "make", [_link, _link_to_folder, _dangling, _loop, _folder, _pipe, _socket]
)
def test_what_is_no_plain_file_is_left_alone(
    tmp_path: Path, name: str, make: Callable[[Path, Path], None]
) -> None:
    """Neither followed nor waited for nor removed: told as unusable by whoever wants the lock."""
    outside, folder = tmp_path / "outside", tmp_path / "memory"
    outside.mkdir()
    folder.mkdir()
    (outside / "file").write_bytes(b"%d\n" % os.getpid())
    (folder / GUARD).touch()
    if name == GUARD:
        (folder / GUARD).unlink()
    make(folder / name, outside)
    before = _seen(tmp_path)
    with pytest.raises(Storage):
        _take(folder, time.time())
    for prior_ns in (None, 1):
        with pytest.raises(Storage):
            lock.restore(str(folder), os.getpid(), 1, prior_ns)
    if name == LOCK:
        with pytest.raises(Storage):
            lock.is_busy(str(folder), time.time())
    lock.consolidated_at(str(folder))
    assert _seen(tmp_path) == before


@pytest.mark.parametrize("make", [_link, _dangling, _loop, _pipe, _socket])
def test_what_lies_at_the_name_in_between_is_replaced(
    tmp_path: Path, make: Callable[[Path, Path], None]
) -> None:
    """What lies where the new lock file is written first goes; what it points to stays."""
    outside, folder = tmp_path / "outside", tmp_path / "memory"
    outside.mkdir()
    folder.mkdir()
    (outside / "file").write_bytes(b"kept")
    before = _seen(outside)
    make(folder / f"{LOCK}.new", outside)
    held = _take(folder, time.time())
    assert held is not None
    held.release(held.taken_ns)
    assert sorted(path.name for path in folder.iterdir()) == [LOCK, GUARD]
    assert _seen(outside) == before


def test_a_file_with_another_name_keeps_its_text_and_time(tmp_path: Path) -> None:
    """Of a lock file that is a hard link to something else only our name of it changes."""
    precious = tmp_path / "precious"
    folder = tmp_path / "memory"
    folder.mkdir()
    precious.write_text("not a lock at all")
    os.utime(precious, ns=(5 * NS, 5 * NS))
    os.link(precious, folder / LOCK)
    os.link(precious, folder / f"{LOCK}.new")
    held = _take(folder, time.time())
    assert held is not None
    held.release(held.prior_ns)
    assert (folder / LOCK).stat().st_mtime_ns == 5 * NS
    assert (precious.read_text(), precious.stat().st_mtime_ns) == ("not a lock at all", 5 * NS)
    assert precious.stat().st_nlink == 1


@contextmanager
def _without_rights(folder: Path) -> Iterator[str]:
    """Be who owns a folder and is not root, in it: the way to it may not be open to them."""
    here = os.open(".", os.O_RDONLY)
    os.chdir(folder)
    if IS_ROOT:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield "."
    finally:
        if IS_ROOT:
            os.seteuid(0)
        os.fchdir(here)
        os.close(here)


@pytest.mark.parametrize("name", [LOCK, GUARD])
def test_a_file_that_nobody_may_read_is_told(tmp_path: Path, name: str) -> None:
    """Of mode 0000 the lock cannot be used, and root, who may read it, uses it as any other."""
    path = tmp_path / name
    path.write_bytes(b"")
    path.chmod(0)
    if IS_ROOT:
        held = _take(tmp_path, time.time())
        assert held is not None
        held.release(held.prior_ns)
        path.chmod(0)
        os.chown(path, NOBODY, NOBODY)
    before = _seen(tmp_path)[str(path)] if IS_ROOT else ()
    with _without_rights(tmp_path) as here:
        with pytest.raises(Storage, match="Permission denied"):
            _take(here, time.time())
        with pytest.raises(Storage, match="Permission denied"):
            lock.restore(here, os.getpid(), 1, None)
    if IS_ROOT:
        assert _seen(tmp_path)[str(path)] == before
    assert path.lstat().st_mode & 0o777 == 0


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """In a directory of mode 0500 nothing is taken and nothing changed; root may."""
    tmp_path.chmod(0o500)
    with _without_rights(tmp_path) as here:
        with pytest.raises(Storage, match="Permission denied"):
            _take(here, time.time())
        assert not lock.is_busy(here, time.time())
    assert list(tmp_path.iterdir()) == []
    if IS_ROOT:
        held = _take(tmp_path, time.time())
        assert held is not None
        held.release(held.prior_ns)
    tmp_path.chmod(0o700)


@as_root
def test_a_lock_of_another_user(tmp_path: Path) -> None:
    """A lock that somebody else wrote is read as any other where we may, and told where not."""
    path = _lock(tmp_path, b"", 7 * NS)
    path.chmod(0o644)
    with _without_rights(tmp_path) as here:
        held = _take(here, time.time())
        assert held is not None
        held.release(held.prior_ns)
    assert (path.stat().st_uid, path.stat().st_mtime_ns) == (NOBODY, 7 * NS)
    os.chown(path, 0, 0)
    path.chmod(0o600)
    with (
        _without_rights(tmp_path) as here,
        pytest.raises(Storage, match="Permission denied"),
    ):
        _take(here, time.time())
    os.chown(path, NOBODY, NOBODY)
    held = _take(tmp_path, time.time())
    assert held is not None
    held.release(held.prior_ns)


def test_one_process_has_one_holder_also_without_a_guard(tmp_path: Path) -> None:
    """Where the guard is deleted, the PID keeps a second one out, and a stale first one ends."""
    now = time.time()
    first = _take(tmp_path, now)
    assert first is not None
    (tmp_path / GUARD).unlink()
    assert _take(tmp_path, now + 5) is None
    assert first.is_ours()
    second = _take(tmp_path, now + 61 * MINUTE)  # the clock was set, or the machine slept
    assert second is not None
    assert not first.is_ours()
    assert second.is_ours()
    first.release(first.taken_ns)
    assert second.is_ours()
    second.release(second.prior_ns)
    assert lock.consolidated_at(str(tmp_path)) == pytest.approx(now, abs=1e-5)


def test_another_process_is_kept_out_without_a_guard(tmp_path: Path) -> None:
    """Where the guard of a process that holds the lock is deleted, no other one gets in."""
    program = (
        "import os, sys, time; from memd.store import lock;"
        "held = lock.take(sys.argv[1], time.time(), lambda *_: None, lock.is_alive);"
        "print(held is not None, flush=True); sys.stdin.read()"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"True\n"
        (tmp_path / GUARD).unlink()
        assert _take(tmp_path, time.time()) is None
        process.stdin.close()
    held = _take(tmp_path, time.time())
    assert held is not None
    held.release(held.prior_ns)


def test_a_moved_time_alone_does_not_cost_the_lock(tmp_path: Path) -> None:
    """A program that touches the file takes nothing over, as long as the guard is in its place."""
    held = _take(tmp_path, time.time())
    assert held is not None
    os.utime(tmp_path / LOCK, (5, 5))
    assert held.is_ours()
    (tmp_path / GUARD).unlink()
    assert not held.is_ours()
    assert replace(held, taken_ns=5 * NS).is_ours()
    (tmp_path / GUARD).touch()
    held.release(held.prior_ns)
