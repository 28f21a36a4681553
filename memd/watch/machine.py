"""What the machine says of its processes and of how busy it is: the door of psutil.

Rules of this file
- psutil is imported at its first use: 2.6 MB and 10 ms that only a dream needs, not the start.
- Nothing here raises: what the system does not tell is unknown, which is a value.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

# psutil counts a start in clock ticks since boot and the clock may have been set since.
_TOLERANCE_SECONDS = 2.0
# No such sensor on this platform, or one whose files do not say what psutil expects of them.
_UNTOLD = (AttributeError, NotImplementedError, OSError, RuntimeError, TypeError, ValueError)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pressure:
    """How busy the machine is; ``None`` is what it does not tell.

    ``load`` is the average of the last minute for each core, ``free_memory`` bytes that can be had
    without swapping.
    """

    on_battery: bool | None = None
    load: float | None = None
    free_memory: int | None = None


def alive(pid: int, since: float) -> bool:
    """Return whether this process runs and began before ``since`` (seconds since 1970)."""
    import psutil  # noqa: PLC0415 - see the rules of this file

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return bool(process.create_time() <= since + _TOLERANCE_SECONDS)
    except psutil.Error as error:
        return isinstance(error, psutil.AccessDenied)  # it exists, and we may not know more


def pressure() -> Pressure:
    """Return how busy the machine is. Reads a few small files of the system, no more."""
    return Pressure(told(_on_battery), told(_load), told(_free_memory))


def told(ask: Callable[[], T]) -> T | None:
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


def _on_battery() -> bool | None:
    import psutil  # noqa: PLC0415 - see the rules of this file

    return on_battery(psutil.sensors_battery())


def _load() -> float:
    return os.getloadavg()[0] / (os.cpu_count() or math.inf)


def _free_memory() -> int:
    import psutil  # noqa: PLC0415 - see the rules of this file

    return int(psutil.virtual_memory().available)
