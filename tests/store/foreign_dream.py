"""A program of its own that follows the published protocol of the lock, and knows no guard.

Usage: ``foreign_dream.py <folder>``. It knows nothing of memd. For each line on stdin it does the
next of: wait for as many seconds as the line says and try to take the lock (prints ``held`` or
``no``), work without looking again (``works`` or ``idle``), end (``done``). Dead or stale? Write
the PID, read it back: no more than that.
"""

import os
import sys
import time
from contextlib import suppress

STALE_SECONDS = 3600


def holder(path: str) -> int:
    """Return the PID in the lock, 0 for none."""
    try:
        with open(path) as file:
            return int(file.read().split("\n")[0])
    except (OSError, ValueError):
        return 0


def lives(pid: int) -> bool:
    """Say whether there is such a process."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def take(path: str) -> bool:
    """Take the lock if nobody seems to be at it; say whether that worked."""
    pid = holder(path)
    if pid and lives(pid):
        with suppress(FileNotFoundError):
            if time.time() - os.stat(path).st_mtime < STALE_SECONDS:
                return False
    with open(path, "w") as file:
        file.write(f"{os.getpid()}\n{int(time.time() * 1000)}")
    return holder(path) == os.getpid()


def say(word: str) -> None:
    """Print one word at once, and wait for the next line."""
    os.write(1, f"{word}\n".encode())
    sys.stdin.readline()


def main() -> None:
    """Do what the lines say until there are no more."""
    path = f"{sys.argv[1]}/.consolidate-lock"
    while line := sys.stdin.readline():
        until = time.perf_counter() + float(line)
        while time.perf_counter() < until:
            pass
        held = take(path)
        say("held" if held else "no")
        say("works" if held else "idle")
        if held and holder(path) == os.getpid():
            os.truncate(path, 0)
        os.write(1, b"done\n")


if __name__ == "__main__":
    main()
