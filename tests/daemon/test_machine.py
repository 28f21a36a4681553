"""What the machine says of how busy it is."""

import os

import psutil
import pytest

from memd.daemon import machine


def test_the_machine_says_how_busy_it_is() -> None:
    """What this system tells is told in plain units, and asking costs next to nothing."""
    results = machine.pressure()
    memory = psutil.virtual_memory()
    assert results.free_memory is not None
    assert 0 < results.free_memory <= memory.total
    assert results.load is None or results.load >= 0
    assert results.on_battery in {None, True, False}


@pytest.mark.parametrize(
    "failure", [AttributeError(), OSError(), NotImplementedError(), ValueError(), psutil.Error()]
)
def test_what_the_system_does_not_tell_is_unknown(failure: Exception) -> None:
    """A sensor that is missing or broken is a value, never an error."""

    def ask() -> float:
        raise failure

    assert machine.or_unknown(ask) is None


@pytest.mark.parametrize("pid", [0, -1, 2**31, 2**31 - 1, 2**70])
def test_a_number_of_nobody_is_no_process(pid: int) -> None:
    """What is no process's number is answered with none, never with an error."""
    assert machine.process(pid) is None


def test_a_process_is_known_by_its_start() -> None:
    """This process is there, is ours, and began where it began whenever one asks."""
    mine = machine.process(os.getpid())
    assert mine is not None
    assert (mine.uid, mine.parent) == (os.getuid(), os.getppid())
    assert mine == machine.process(os.getpid())
