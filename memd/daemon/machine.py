"""Describe processes, and say whether the machine runs on battery, with psutil.

Rules of this file
- psutil is imported at its first use: 2.6 MB and 10 ms that only a dream needs, not the start.
- Nothing here raises.
"""

import math
import os
import sys
import time
from typing import TYPE_CHECKING

from memd.base.agents import SystemProcess

if TYPE_CHECKING:
    import psutil

# Raised where this platform has no such sensor, or its files are not as psutil expects.
_UNAVAILABLE = (AttributeError, NotImplementedError, OSError, RuntimeError, TypeError, ValueError)

_PID_END = 2**31  # all process ids are below it
_SETTLED_SECONDS = 0.02  # twice the resolution of a process's start
# MainThread is what newer versions of Node call themselves.
_INTERPRETERS = ("node", "MainThread", "bun", "deno", "python")
_COMMAND_WORDS = 8  # the script's name is among the first words, behind options


def on_battery() -> bool:
    """Return whether the machine is known to run on battery. Blocks."""
    import psutil  # noqa: PLC0415 - see the rules of this file

    try:
        return getattr(psutil.sensors_battery(), "power_plugged", None) is False
    except (psutil.Error, *_UNAVAILABLE):
        return False


def process(pid: int) -> SystemProcess | None:
    """Return a living process, ``None`` for a dead one, a zombie, or an impossible PID.

    Its start is counted from the system's start, so setting the clock does not change it. Starts
    have a resolution of 0.01 s. For a process younger than 0.02 s this waits, so that a later one
    with the same PID has another start.
    """
    running = _process(pid)
    if running is None:
        return None
    remaining = _SETTLED_SECONDS - _age(running)
    # More would be a start in the future: an error of the clock, so it is not waited for.
    if 0 < remaining <= _SETTLED_SECONDS:
        time.sleep(remaining)
        running = _process(pid)
    return running


def _age(running: SystemProcess) -> float:
    """Return a process's age in seconds; infinity where starts have a finer resolution."""
    if sys.platform != "linux":  # pragma: no cover - macOS counts microseconds
        return math.inf
    return time.clock_gettime(time.CLOCK_BOOTTIME) - running.began


def _program(running: "psutil.Process") -> str:
    """Return a process's name; for an interpreter that of the script it runs."""
    name = running.name()
    if not name.startswith(_INTERPRETERS):
        return name
    words = [word for word in running.cmdline()[1:_COMMAND_WORDS] if not word.startswith("-")]
    return os.path.basename(words[0]) if words else name


def _process(pid: int) -> SystemProcess | None:
    """Return a living process, ``None`` for a dead one, a zombie or an impossible id."""
    import psutil  # noqa: PLC0415 - see the rules of this file

    if not 0 < pid < _PID_END:
        return None
    try:
        boot = psutil.boot_time()
        running = psutil.Process(pid)
        with running.oneshot():
            if running.status() == psutil.STATUS_ZOMBIE:
                return None
            began = running.create_time() - boot
            if psutil.boot_time() != boot:  # the clock was set meanwhile
                return _process(pid)
            uid, parent = running.uids().real, running.ppid()
            return SystemProcess(pid, uid, began, parent, _program(running))
    except (psutil.Error, *_UNAVAILABLE):
        return None
