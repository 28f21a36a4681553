"""Why an automatic dream waits although its gates are open. Pure.

Rules of this file
- What the system does not tell does not count.
- A dream that a person asks for never waits.
- Two automatic dreams of a directory begin at least an hour apart on a clock that nobody sets,
  or ``dream.min_hours`` where that is less: a wall clock that jumps to and fro, or a dream that
  always fails, brings no storm.
"""

from dataclasses import dataclass

from memd.core.settings import Settings

_MEBIBYTE = 1024 * 1024
_HOUR = 3600.0
_APART_SECONDS = _HOUR


@dataclass(frozen=True, slots=True)
class Pressure:
    """How busy the machine is; ``None`` is what it does not tell.

    ``load`` is the average of the last minute for each core, ``free_memory`` bytes that can be had
    without swapping.
    """

    on_battery: bool | None = None
    load: float | None = None
    free_memory: int | None = None


_UNTOLD = Pressure()


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand: background work is ``paused`` or not, so many ``prompts`` are in flight.

    ``began`` is how many seconds ago the last automatic dream of this directory began.
    """

    paused: bool = False
    prompts: int = 0
    pressure: Pressure = _UNTOLD
    began: float | None = None


def waits(standing: Standing, settings: Settings) -> str:
    """Return why an automatic dream waits, in words, "" when it need not."""
    wanted, told = settings.dream, standing.pressure
    apart = min(_APART_SECONDS, wanted.min_hours * _HOUR)
    why = ""
    if standing.paused:
        why = "background work is paused"
    elif standing.prompts:
        why = "a prompt is being answered"
    elif told.on_battery and not wanted.on_battery:
        why = "the machine runs on battery"
    elif wanted.max_load and told.load is not None and told.load > wanted.max_load:
        why = f"the load is {told.load:.2f} of each core, above {wanted.max_load:g}"
    elif told.free_memory is not None and told.free_memory < wanted.free_memory_mb * _MEBIBYTE:
        free = told.free_memory // _MEBIBYTE
        why = f"{free} MiB of memory are free, fewer than {wanted.free_memory_mb}"
    elif standing.began is not None and standing.began < apart:
        why = "the last automatic dream began less than an hour ago"
    return why
