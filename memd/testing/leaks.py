"""What a daemon holds at the end of a test and did not hold at its beginning: its leaks.

Rules of this file
- A process of its own is looked at while it still runs; a daemon in this process after its end,
  when nothing of it may be left.
- What comes late (a client that has just left, a file held for a moment) gets half a minute.
- What a daemon may come to hold is in one table with its reason. All else is named as a leak.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from memd.client.errors import DaemonUnavailableError, RemoteError
from memd.client.launch import Client
from memd.core.places import Places

# Each of these is opened with the first use and stays: there is one of it, however much is done.
_ONCE = {
    os.devnull: 2,  # standard input, and the one to spare for refusing when there are no more
    "anon_inode:[eventpoll]": 1,  # the event loop's
    "anon_inode:inotify": 1,  # one queue of the kernel for all directories,
    "pipe": 2,  # and what wakes its reader
    "socket": 3,  # the listener, and the pair that wakes the event loop
    "internet socket": 4,  # connections to a model are kept for the next request
}
_DATABASE = ("", "-wal", "-shm")  # one connection of SQLite
_INDEX = 2  # descriptors of a file of a search index in use: the file, and the map of it
_POOLED_THREADS = 80  # 40 of anyio's pool, 16 of recall's, the rest for libraries: they stay idle
# Pools of the event loop, which outlives a daemon here: anyio's, and asyncio's that looks up names.
_POOLS = ("AnyIO worker thread", "asyncio_")
SETTLING_SECONDS = 30.0
_PAUSE_SECONDS = 0.02


class LeakError(AssertionError):
    """A daemon held something at the end that it had no reason to hold."""

    def __init__(self, leaks: Iterable[str]) -> None:
        super().__init__("leaked: " + "; ".join(leaks))


@contextmanager
def no_leaks_here(home: str, settling: float = SETTLING_SECONDS) -> Iterator[None]:
    """Fail when a block leaves descriptors, threads or temporary files of a daemon behind."""
    descriptors, threads = _descriptors(os.getpid()), set(threading.enumerate())
    files = _temporary(home)
    yield

    def leaks() -> list[str]:
        left = _descriptors(os.getpid()) - descriptors
        new = [each.name for each in set(threading.enumerate()) - threads]
        alone = [name for name in new if not name.startswith(_POOLS)]
        return _named(left, alone, _temporary(home) - files)

    _finish(leaks, settling)


@contextmanager
def no_leaks_of(pid: int, places: Places, settling: float = SETTLING_SECONDS) -> Iterator[None]:
    """Fail when a daemon's process, if it still runs, holds too much at the end of a block."""
    once = Counter(_ONCE) + Counter(f"{places.database}{end}" for end in _DATABASE)
    allowed = _descriptors(pid) | once
    allowed["socket"] = once["socket"]
    index = f"{places.state_dir}/index/"
    threads = _threads(pid) + _POOLED_THREADS
    files = _temporary(places.home)
    yield

    def leaks() -> list[str]:
        left = _with_connections(pid, places) - allowed
        left -= Counter({name: _INDEX for name in left if name.startswith(index)})
        crowd = _threads(pid)
        many = [f"{crowd} threads"] if crowd > threads else []
        return _named(left, many, _temporary(places.home) - files)

    with suppress(OSError):  # it has ended, and holds nothing
        _finish(leaks, settling)


def _finish(leaks: Callable[[], list[str]], seconds: float) -> None:
    until = time.monotonic() + seconds
    while result := leaks():
        if time.monotonic() >= until:
            raise LeakError(result)
        time.sleep(_PAUSE_SECONDS)


def _named(descriptors: Counter[str], threads: Iterable[str], files: Iterable[str]) -> list[str]:
    return [
        *(f"{count} x descriptor of {name}" for name, count in sorted(descriptors.items())),
        *(f"thread {name}" for name in sorted(threads)),
        *(f"temporary file {name}" for name in sorted(files)),
    ]


def _descriptors(pid: int) -> Counter[str]:
    """Return what a process has open: paths, or the kinds of what has none."""
    result: Counter[str] = Counter()
    internet = _internet(pid)
    for number in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile, as what lists them is
            name = os.readlink(f"/proc/{pid}/fd/{number}")
            kind, _, inode = name.partition(":")
            if kind in {"socket", "pipe"}:
                name = "internet socket" if inode.strip("[]") in internet else kind
            result[name] += 1
    return result


def _internet(pid: int) -> set[str]:
    """Return the inodes of TCP's sockets."""
    tables = [
        Path(f"/proc/{pid}/net/{name}").read_text().split("\n")[1:] for name in ("tcp", "tcp6")
    ]
    return {row.split()[9] for row in chain(*tables) if row}


def _threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def _temporary(home: str) -> set[str]:
    return {str(path) for path in Path(home).rglob("*.tmp")}


def _with_connections(pid: int, places: Places) -> Counter[str]:
    """Return what a process has open but for one socket of each connection that it knows of."""
    try:
        with Client(places.socket, name="leaks", environment={}) as client:
            known = int(client.call("status", {})["connections"])
            return _descriptors(pid) - Counter({"socket": known})
    except (DaemonUnavailableError, RemoteError):  # it is too busy for one more, or ending
        return _descriptors(pid)
