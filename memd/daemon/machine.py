"""How busy the machine is, as psutil says.

Rules of this file
- psutil is imported at its first use: 2.6 MB and 10 ms that only a dream needs, not the start.
- Nothing here raises: what the system does not tell is unknown, which is a value.
"""

import math
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from memd.core.agents import SystemProcess
from memd.dream.gates import Pressure

if TYPE_CHECKING:
    import psutil

# No such sensor on this platform, or one whose files do not say what psutil expects of them.
_UNTOLD = (AttributeError, NotImplementedError, OSError, RuntimeError, TypeError, ValueError)

T = TypeVar("T")
_PID_MOST = 2**31
_SETTLED_SECONDS = 0.02  # two hundredths
# MainThread is what newer versions of Node call themselves.
_INTERPRETERS = ("node", "MainThread", "bun", "deno", "python")
_WORDS = 8  # of a command line, its options among them


def pressure() -> Pressure:
    """Return how busy the machine is. Reads a few small files of the system, no more."""
    import psutil  # noqa: PLC0415 - see the rules of this file

    return Pressure(
        or_unknown(lambda: on_battery(psutil.sensors_battery())),
        or_unknown(lambda: os.getloadavg()[0] / (os.cpu_count() or math.inf)),
        or_unknown(lambda: int(psutil.virtual_memory().available)),
    )


def or_unknown(ask: Callable[[], T]) -> T | None:
    """Return what the system answers, ``None`` where it does not."""
    import psutil  # noqa: PLC0415 - see the rules of this file

    try:
        return ask()
    except (psutil.Error, *_UNTOLD):
        return None


def on_battery(battery: object) -> bool | None:
    """Return what psutil's battery says: ``None`` where there is none or it does not know."""
    plugged = getattr(battery, "power_plugged", None)
    return None if plugged is None else not plugged


def process(pid: int) -> SystemProcess | None:
    """Return a living process, ``None`` for one that is gone, a zombie, or no number of any.

    Its start is counted from the system's start: a clock that is set does not move it. Starts are
    counted in hundredths of a second, so one that is younger is waited for: a number that is given
    anew later has another start then.
    """
    running = _process(pid)
    # A start that seems to lie ahead is waited for no longer: it is no matter of waiting.
    if running is not None and 0 < (young := _SETTLED_SECONDS - _age(running)) <= _SETTLED_SECONDS:
        time.sleep(young)
        running = _process(pid)
    return running


def _age(running: SystemProcess) -> float:
    """Return the seconds since a process began, or many where the system counts finely enough."""
    if sys.platform != "linux":  # pragma: no cover - macOS counts microseconds
        return math.inf
    return time.clock_gettime(time.CLOCK_BOOTTIME) - running.began


def _program(running: "psutil.Process") -> str:
    """Return what a process is called; a script that an interpreter runs by its own name."""
    name = running.name()
    if not name.startswith(_INTERPRETERS):
        return name
    words = [word for word in running.cmdline()[1:_WORDS] if not word.startswith("-")]
    return os.path.basename(words[0]) if words else name


def _process(pid: int) -> SystemProcess | None:
    import psutil  # noqa: PLC0415 - see the rules of this file

    if not 0 < pid < _PID_MOST:
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
    except (psutil.Error, *_UNTOLD):
        return None
