"""A stamp: what differs between two states of a file, so that it need not be read again. Pure.

It is inode, times and size. A file that changed within the last tick of the file system's clock may
change again without a change of its times, so such a young file has no stamp.
"""

import os
from operator import attrgetter

Stamp = tuple[int, ...]  # inode, mtime and ctime in nanoseconds, size; or nothing

# A kernel's tick is 10 ms at most; a file system that keeps whole seconds only may have one of 2 s.
_FINE_SECONDS, _COARSE_SECONDS = 0.1, 2.0
_SECOND_NS = 1_000_000_000

# Return the stamp of a status, whatever its age is.
now_of = attrgetter("st_ino", "st_mtime_ns", "st_ctime_ns", "st_size")


def stamp_of(status: os.stat_result, at: float) -> Stamp:
    """Return the stamp of a status that was taken ``at`` some time, in seconds since 1970.

    It is nothing for a file that is too young.
    """
    # Whole seconds alone: the file system may keep no finer times.
    is_fine = status.st_ctime_ns % _SECOND_NS or status.st_mtime_ns % _SECOND_NS
    if status.st_ctime >= at - (_FINE_SECONDS if is_fine else _COARSE_SECONDS):
        return ()
    stamp: Stamp = now_of(status)
    return stamp


def to_text(stamp: Stamp) -> str:
    """Return a stamp as the state file has it, "" for nothing."""
    return ":".join(map(str, stamp))


def from_text(text: str) -> Stamp:
    """Return the stamp in a text of the state file."""
    return tuple(map(int, filter(None, text.split(":"))))
