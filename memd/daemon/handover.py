"""Replace the running version of memd by the installed one, in the same process.

Rules of this file
- The process stays: its PID, the instance lock and the listening socket, so a supervisor notices
  nothing. Only its program is replaced (execve), so the socket always listens, no other daemon can
  start, and no descriptor is passed to another process.
- The program is the one this process was started with, at the same path: a client that can open the
  socket cannot choose what runs.
- Two descriptors' numbers are passed in one variable, with the PID they are for: a child process
  that inherits the variable ignores it. Each descriptor is checked before its use like one that was
  opened by name.
- If the program cannot be replaced (its file was removed), this version goes on.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from memd.client.launch import SERVE as PROGRAM

__all__ = ["PROGRAM", "Handover", "received", "replace_program"]

VARIABLE = "MEMD_HANDOVER"
_NONE = -1  # in place of a descriptor


class Handover(NamedTuple):
    """The descriptors that this process's earlier program passed on, -1 for none."""

    lock: int = _NONE
    listener: int = _NONE


def received(environ: Mapping[str, str], pid: int) -> Handover:
    """Return the descriptors in the variable, if it is meant for this PID, else -1 twice."""
    numbers = environ.get(VARIABLE, "").split(":")
    if len(numbers) != len(("pid", *Handover._fields)):
        return Handover()
    if not all(number.isdecimal() for number in numbers):
        return Handover()
    for_pid, lock, listener = (int(number) for number in numbers)
    return Handover(lock, listener) if for_pid == pid else Handover()


def replace_program(environ: Mapping[str, str], lock: int, listener: int) -> None:
    """Replace this program by the installed one; returns only by raising OSError."""
    variables = {**environ, VARIABLE: f"{os.getpid()}:{lock}:{listener}"}
    sys.stdout.flush()
    sys.stderr.flush()
    with _inheritable(lock, listener):
        os.execve(PROGRAM[0], PROGRAM, variables)  # noqa: S606 - no shell is meant


@contextmanager
def _inheritable(*descriptors: int) -> Iterator[None]:
    """Let descriptors survive an execve within the block."""
    for each in descriptors:
        os.set_inheritable(each, True)  # noqa: FBT003 - its only form
    try:
        yield
    finally:
        for each in descriptors:
            os.set_inheritable(each, False)  # noqa: FBT003 - its only form
