"""What the machine says of how busy it is."""

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
