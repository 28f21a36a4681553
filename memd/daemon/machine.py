"""How busy the machine is, as psutil says.

Rules of this file
- psutil is imported at its first use: 2.6 MB and 10 ms that only a dream needs, not the start.
- Nothing here raises: what the system does not tell is unknown, which is a value.
"""

import math
import os
from collections.abc import Callable
from typing import TypeVar

from memd.core.agents import SystemProcess
from memd.dream.gates import Pressure

# No such sensor on this platform, or one whose files do not say what psutil expects of them.
_UNTOLD = (AttributeError, NotImplementedError, OSError, RuntimeError, TypeError, ValueError)

T = TypeVar("T")
_PID_MOST = 2**31


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

    Its start is counted from the system's start: a clock that is set does not move it.
    """
    import psutil  # noqa: PLC0415 - see the rules of this file

    if not 0 < pid < _PID_MOST:
        return None
    try:
        running = psutil.Process(pid)
        with running.oneshot():
            if running.status() == psutil.STATUS_ZOMBIE:
                return None
            began = running.create_time() - psutil.boot_time()
            uid, parent = running.uids().real, running.ppid()
            return SystemProcess(pid, uid, began, parent, running.name())
    except (psutil.Error, *_UNTOLD):
        return None
