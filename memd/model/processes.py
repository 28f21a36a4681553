"""Kill a program with all processes that it started. Blocks: call it from a worker thread.

Rules of this file
- A process belongs to a program if the program's mark is in its environment or if it is in the
  program's process group. The group counts only while its leader is the process that memd started,
  or is gone: the kernel does not reuse a number that a group still has. So a process that later got
  the same number is never killed.
- Killing is repeated until no process is left, as one may start another meanwhile.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import psutil

MARK = "MEMD_MODEL_RUN"
_TOLERANCE_SECONDS = 2.0  # a start is counted in ticks since boot, and the clock may be set
_ROUNDS = 100  # of killing; the program is given up afterwards
_PAUSE_SECONDS = 0.02  # between two rounds of killing


class StartedProgram(Struct, frozen=True):
    """A program that memd starts as a model: the mark in its environment, its PID and start time.

    ``pid`` is also its process group, 0 if it is not known yet. ``began`` is the start time in
    seconds since 1970, as the system counts it. The document, with the mark as its key, exists from
    before the program starts until none of its processes is left, so that a restart after a crash
    can end them.
    """

    mark: str
    pid: int = 0
    began: float = 0.0


def began(pid: int) -> float:
    """Return when a process began, in seconds since 1970, 0 if it is gone."""
    import psutil  # noqa: PLC0415 - 2.6 MB that only a daemon with such a model needs

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0


def end(program: StartedProgram) -> bool:
    """Kill a program and all processes that it started; return whether none is left.

    Gives up after two seconds.
    """
    for _ in range(_ROUNDS):
        members = list(_members(program))
        if not members:
            return True
        for process in members:
            _kill(process)
        # psutil's wait is not used, as it would take the child's exit status from the event loop.
        time.sleep(_PAUSE_SECONDS)
    return False


def descends(pid: int, program: StartedProgram) -> bool:
    """Return whether a process or one of its ancestors belongs to a program."""
    import psutil  # noqa: PLC0415 - as above

    try:
        process = psutil.Process(pid)
        ancestry = (process, *process.parents())
        return any(_is_member(item, program, owns_group=True) for item in ancestry)
    except psutil.Error:
        return False


def _kill(process: "psutil.Process") -> None:
    """Kill a process, unless it is gone."""
    import psutil  # noqa: PLC0415 - as above

    with suppress(psutil.Error):
        process.kill()  # psutil raises if the number now belongs to another process


def _members(program: StartedProgram) -> Iterator["psutil.Process"]:
    """Yield the processes that belong to a program, except memd itself."""
    import psutil  # noqa: PLC0415 - as above

    # A record from before the last boot names processes that no longer exist.
    owns_group = program.pid > 0 and psutil.boot_time() < program.began + _TOLERANCE_SECONDS
    if owns_group and psutil.pid_exists(program.pid):
        owns_group = abs(began(program.pid) - program.began) < _TOLERANCE_SECONDS
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and _is_member(process, program, owns_group=owns_group):
                yield process
        except psutil.Error:
            continue


def _is_member(process: "psutil.Process", program: StartedProgram, *, owns_group: bool) -> bool:
    """Return whether a process belongs to a program.

    ``owns_group`` says that all processes of the program's group belong to it.
    """
    import psutil  # noqa: PLC0415 - as above

    try:
        if owns_group and program.pid and os.getpgid(process.pid) == program.pid:
            return process.status() != psutil.STATUS_ZOMBIE
        is_ours = process.uids().real == os.getuid()
        return is_ours and process.environ().get(MARK) == program.mark
    except (psutil.Error, OSError):
        return False
