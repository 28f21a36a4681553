"""Why an automatic dream waits."""

from dataclasses import replace
from typing import Any

import pytest

from memd.core.settings import DreamSettings, Settings
from memd.dream.quiet import Pressure, Standing, waits

MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("standing", "word"),
    [
        (Standing(), ""),
        (Standing(paused=True), "paused"),
        (Standing(prompts=1), "prompt"),
        (Standing(pressure=Pressure(on_battery=False)), ""),
        (Standing(pressure=Pressure(on_battery=True)), "battery"),
        (Standing(pressure=Pressure(load=0.75)), ""),
        (Standing(pressure=Pressure(load=0.76)), "0.76"),
        (Standing(pressure=Pressure(free_memory=256 * MEBIBYTE)), ""),
        (Standing(pressure=Pressure(free_memory=256 * MEBIBYTE - 1)), "255 MiB"),
        (Standing(began=3599.0), "hour"),
        (Standing(began=3600.0), ""),
    ],
)
def test_a_dream_waits_for_a_quiet_machine(standing: Standing, word: str) -> None:
    """Each reason keeps an automatic dream waiting, and what is not told keeps none."""
    said = waits(standing, Settings())
    assert word in said
    assert bool(said) == bool(word)


@pytest.mark.parametrize(
    "options",
    [
        {"on_battery": True, "max_load": 0.0, "free_memory_mb": 0, "min_hours": 0.0},
        {"on_battery": True, "max_load": 99.0, "free_memory_mb": 1, "min_hours": 0.5},
    ],
)
def test_each_reason_but_people_can_be_switched_off(options: dict[str, Any]) -> None:
    """The settings let a dream begin on a busy machine, never while somebody waits for one."""
    settings = replace(Settings(), dream=DreamSettings(**options))
    busy = Standing(
        pressure=Pressure(on_battery=True, load=8.0, free_memory=MEBIBYTE), began=1800.0
    )
    assert waits(busy, settings) == ""
    assert waits(replace(busy, prompts=1), settings)
    assert waits(replace(busy, paused=True), settings)
