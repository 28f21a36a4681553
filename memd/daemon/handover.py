"""One version of memd gives way to the next one in the same process.

Rules of this file
- The process stays: its PID, the instance lock, the listening socket, and what a supervisor knows
  of it. Only its program is replaced (execve), so there is no moment in which nobody listens or
  another daemon could begin, and no right leaves the process.
- The program is the one this process was started with, at the same path: nobody who can open the
  socket chooses what runs.
- What is handed on are two numbers of descriptors in one variable, with the PID they are for: a
  child that inherits the variable by accident does not believe it. Each is checked before its use
  like one that was opened by name.
- A program that cannot be replaced (it was removed) goes on.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from memd.client.launch import SERVE as PROGRAM

__all__ = ["PROGRAM", "Handover", "received", "replace_program"]

VARIABLE = "MEMD_HANDOVER"
_NONE = -1


class Handover(NamedTuple):
    """Descriptors from the program that was here before, -1 where there are none."""

    lock: int = _NONE
    listener: int = _NONE


def received(environ: Mapping[str, str], pid: int) -> Handover:
    """Return what this process's earlier program left to it."""
    numbers = environ.get(VARIABLE, "").split(":")
    if len(numbers) == len(("pid", *Handover._fields)) and all(n.isdecimal() for n in numbers):
        meant, lock, listener = map(int, numbers)
        if meant == pid:
            return Handover(lock, listener)
    return Handover()


def replace_program(environ: Mapping[str, str], lock: int, listener: int) -> None:
    """Go on as the program that is installed now; returns only by raising OSError."""
    variables = {**environ, VARIABLE: f"{os.getpid()}:{lock}:{listener}"}
    sys.stdout.flush()
    sys.stderr.flush()
    with _inheritable(lock, listener):
        os.execve(PROGRAM[0], PROGRAM, variables)  # noqa: S606 - no shell is meant


@contextmanager
def _inheritable(*descriptors: int) -> Iterator[None]:
    for each in descriptors:
        os.set_inheritable(each, True)  # noqa: FBT003 - its only form
    try:
        yield
    finally:
        for each in descriptors:
            os.set_inheritable(each, False)  # noqa: FBT003 - its only form
