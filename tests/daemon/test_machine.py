"""What the machine says of its processes."""

import os

import pytest

from memd.daemon import machine


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
