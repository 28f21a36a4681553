"""What the machine says of how busy it is."""

from types import SimpleNamespace

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


def test_a_battery_counts_when_it_is_in_use() -> None:
    """Only a machine that says that it is not plugged in runs on battery."""
    assert machine.on_battery(None) is None
    assert machine.on_battery(SimpleNamespace(power_plugged=None)) is None
    assert machine.on_battery(SimpleNamespace(power_plugged=True)) is False
    assert machine.on_battery(SimpleNamespace(power_plugged=False)) is True


@pytest.mark.parametrize(
    "failure", [AttributeError(), OSError(), NotImplementedError(), ValueError(), psutil.Error()]
)
def test_what_the_system_does_not_tell_is_unknown(failure: Exception) -> None:
    """A sensor that is missing or broken is a value, never an error."""

    def ask() -> float:
        raise failure

    assert machine.or_unknown(ask) is None
