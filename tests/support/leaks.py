"""Find a daemon's leaks: descriptors, threads and temporary files that a test did not begin with.

Rules of this file
- A daemon with a process of its own is inspected while it still runs; a daemon in this process
  after its end, when nothing of it may be left.
- Descriptors that are closed late (of a client that has just left, for example) get half a minute.
- What a daemon may open for good is in one table with its reason. All else is reported as a leak.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memd.base.errors import MemdError
from memd.base.places import Places
from memd.client.launch import Client

# Descriptors that are opened at the first use and stay open; their number does not grow.
_OPENED_ONCE = {
    os.devnull: 2,  # standard input, and the server's reserve for when descriptors are short
    "anon_inode:[eventpoll]": 1,  # the event loop's
    "anon_inode:inotify": 1,  # one queue of the kernel for all directories,
    "pipe": 2,  # and what wakes its reader
    "socket": 3,  # the listener, and the pair that wakes the event loop
    "internet socket": 4,  # connections to a model are kept for the next request
}
# SQLite's two connections, one of them for checkpoints; they share the index of the log.
_DATABASE = {"": 2, "-wal": 2, "-shm": 1}  # descriptors by the end of the file's name
_POOLED_THREADS = 80  # 40 of anyio's pool, 16 of recall's, the rest for libraries: they stay idle
# Pools of the event loop, which outlives a daemon here: anyio's, that of ``memd/base/threads.py``,
# and asyncio's that looks up names.
_POOLS = ("AnyIO worker thread", "memd worker", "asyncio_")
_INODE_COLUMN = 9  # of the kernel's tables of sockets
SETTLING_SECONDS = 30.0  # in which descriptors may be closed after a test
_PAUSE_SECONDS = 0.02  # between two looks


class LeakError(AssertionError):
    """A daemon had descriptors, threads or temporary files at the end that it should not have."""

    def __init__(self, leaks: Iterable[str]) -> None:
        super().__init__("leaked: " + "; ".join(leaks))


@contextmanager
def no_leaks_here(home: str, settling: float = SETTLING_SECONDS) -> Iterator[None]:
    """Raise LeakError if descriptors, threads or temporary files are left ``settling`` s later."""
    descriptors, threads = _descriptors(os.getpid()), set(threading.enumerate())
    files = _temporary(home)
    yield

    def leaks() -> list[str]:
        """Return a line for each leak that is there now."""
        opened = _descriptors(os.getpid()) - descriptors
        new = [each.name for each in set(threading.enumerate()) - threads]
        not_pooled = [name for name in new if not name.startswith(_POOLS)]
        return _described(opened, not_pooled, _temporary(home) - files)

    _wait_for_none(leaks, settling)


@contextmanager
def no_leaks_of(pid: int, places: Places, settling: float = SETTLING_SECONDS) -> Iterator[None]:
    """Raise LeakError if a daemon's process has more than it may at the end of a block.

    A process that has ended has no leaks.
    """
    database = {f"{places.database}{end}": count for end, count in _DATABASE.items()}
    opened_once = Counter(_OPENED_ONCE) + Counter(database)
    allowed = _descriptors(pid) | opened_once
    allowed["socket"] = opened_once["socket"]
    most_threads = _count_threads(pid) + _POOLED_THREADS
    files = _temporary(places.home)
    yield

    def leaks() -> list[str]:
        """Return a line for each leak that is there now."""
        extra = _without_clients(pid, places) - allowed
        count = _count_threads(pid)
        too_many = [f"{count} threads"] if count > most_threads else []
        return _described(extra, too_many, _temporary(places.home) - files)

    with suppress(OSError):  # the process has ended
        _wait_for_none(leaks, settling)


def _wait_for_none(leaks: Callable[[], list[str]], seconds: float) -> None:
    """Wait until there are no leaks. Raises LeakError if there are some after so many seconds."""
    until = time.monotonic() + seconds
    while lines := leaks():
        if time.monotonic() >= until:
            raise LeakError(lines)
        time.sleep(_PAUSE_SECONDS)


def _described(
    descriptors: Counter[str], threads: Iterable[str], files: Iterable[str]
) -> list[str]:
    """Return a line for each kind of descriptor, each thread and each file."""
    return [
        *(f"{count} x descriptor of {name}" for name, count in sorted(descriptors.items())),
        *(f"thread {name}" for name in sorted(threads)),
        *(f"temporary file {name}" for name in sorted(files)),
    ]


def _descriptors(pid: int) -> Counter[str]:
    """Return the open descriptors of a process, by path, or by kind for those without one."""
    result: Counter[str] = Counter()
    internet_inodes = _internet_inodes(pid)
    for number in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile, as what lists them is
            name = os.readlink(f"/proc/{pid}/fd/{number}")
            kind, _, inode = name.partition(":")
            if kind in {"socket", "pipe"}:
                name = "internet socket" if inode.strip("[]") in internet_inodes else kind
            result[name] += 1
    return result


def _internet_inodes(pid: int) -> set[str]:
    """Return the inodes of all TCP sockets that a process can see."""
    rows: list[str] = []
    for name in ("tcp", "tcp6"):
        _, *lines = Path(f"/proc/{pid}/net/{name}").read_text().split("\n")  # without the head
        rows += lines
    return {row.split()[_INODE_COLUMN] for row in rows if row}


def _count_threads(pid: int) -> int:
    """Return how many threads a process has."""
    return len(os.listdir(f"/proc/{pid}/task"))


def _temporary(home: str) -> set[str]:
    """Return the temporary files below a directory."""
    return {str(path) for path in Path(home).rglob("*.tmp")}


def _without_clients(pid: int, places: Places) -> Counter[str]:
    """Return a daemon's descriptors, without a socket for each client that is connected."""
    try:
        with Client(places.socket, name="leaks", environment={}) as client:
            clients = int(client.call("status", {})["connections"])
            return _descriptors(pid) - Counter({"socket": clients})
    except MemdError:  # it is too busy for one more, or ending
        return _descriptors(pid)
