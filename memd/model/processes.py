"""Ending a program with all that it started. Blocks: call it from a worker thread.

Rules of this file
- A process belongs to a program when the program's mark is in its environment, or when it is of the
  program's group. The group counts while its leader is the process that memd started, or is gone:
  the kernel gives no number away that a group still has. A number that was given anew ends nobody.
- What was found is killed, and looked for again until nothing is left: a process may start another
  one meanwhile.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from memd.state.tables import StartedProgram

if TYPE_CHECKING:
    import psutil

MARK = "MEMD_MODEL_RUN"
_TOLERANCE_SECONDS = 2.0  # a start is counted in ticks since boot, and the clock may be set
_ROUNDS = 100
_PAUSE_SECONDS = 0.02  # until what was killed is gone


def began(pid: int) -> float:
    """Return when a process began, 0 where it is gone."""
    import psutil  # noqa: PLC0415 - 2.6 MB that only a daemon with such a model needs

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0


def end(program: StartedProgram) -> bool:
    """Kill a program and all that it started; return whether nothing is left."""
    for _ in range(_ROUNDS):
        left = list(_members(program))
        if not left:
            return True
        for process in left:
            _kill(process)
        # psutil's own wait would take the status of our child away from the event loop.
        time.sleep(_PAUSE_SECONDS)
    return False


def descends(pid: int, program: StartedProgram) -> bool:
    """Return whether a process is of a program, or has it among its ancestors."""
    import psutil  # noqa: PLC0415 - as above

    try:
        process = psutil.Process(pid)
        line = (process, *process.parents())
        return any(_is_member(item, program, led=True) for item in line)
    except psutil.Error:
        return False


def _kill(process: "psutil.Process") -> None:
    import psutil  # noqa: PLC0415 - as above

    with suppress(psutil.Error):
        process.kill()  # not where its number is another process's by now


def _members(program: StartedProgram) -> Iterator["psutil.Process"]:
    import psutil  # noqa: PLC0415 - as above

    led = program.pid > 0 and psutil.boot_time() < program.began + _TOLERANCE_SECONDS
    if led and psutil.pid_exists(program.pid):
        led = abs(began(program.pid) - program.began) < _TOLERANCE_SECONDS
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and _is_member(process, program, led=led):
                yield process
        except psutil.Error:
            continue


def _is_member(process: "psutil.Process", program: StartedProgram, *, led: bool) -> bool:
    import psutil  # noqa: PLC0415 - as above

    try:
        if led and program.pid and os.getpgid(process.pid) == program.pid:
            return process.status() != psutil.STATUS_ZOMBIE
        ours = process.uids().real == os.getuid()
        return ours and process.environ().get(MARK) == program.mark
    except (psutil.Error, OSError):
        return False
