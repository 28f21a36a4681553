"""Whether a dream may begin."""

from dataclasses import replace

import pytest

from memd.core.settings import DreamSettings, Settings
from memd.core.values import Project
from memd.dream import gates

NOW = 1_760_000_000.0
HOUR = 3600.0
ON = Settings()
PROJECT = Project("/p", "/p", "/m", "default", "/t", enabled=True)


def test_switches_come_first() -> None:
    """Memory that is off is named before dreams that are off."""
    off = replace(ON, dream=DreamSettings(enabled=False))
    assert gates.switches(PROJECT, ON) == ""
    assert gates.switches(PROJECT, off) == gates.DREAM_OFF
    assert gates.switches(replace(PROJECT, enabled=False), off) == gates.MEMORY_OFF
    assert gates.switches(PROJECT, replace(off, enabled=False)) == gates.MEMORY_OFF


@pytest.mark.parametrize(
    ("consolidated", "gate"),
    [
        (None, ""),
        (NOW - 24 * HOUR, ""),
        (NOW - 23.9 * HOUR, gates.TIME),
        (NOW, gates.TIME),
        (NOW + 30.0, gates.TIME),
        (NOW + 61.0, ""),
        (NOW * 10, ""),
        (0.0, ""),
    ],
)
def test_a_day_lies_between_two_dreams(consolidated: float | None, gate: str) -> None:
    """The gate of time opens after its hours, and at once where the last time cannot be true."""
    assert gates.time(gates.believed(consolidated, NOW), NOW, ON) == gate


def test_sessions_since_the_last_dream_count() -> None:
    """Transcripts count when they changed since the last dream, without the session that asks."""
    found = gates.newest([("a", 1.0), ("b", 11.0), ("a", 12.0), ("c", 13.0), ("b", 2.0)])
    assert found == {"a": 12.0, "b": 11.0, "c": 13.0}

    def gate(wanted: int, since: float | None, without: str = "") -> str:
        settings = replace(ON, dream=DreamSettings(min_sessions=wanted))
        return gates.sessions(found, since, settings, without=without)

    assert gate(3, None) == ""
    assert gate(4, None) == gates.SESSIONS
    assert gate(3, None, "a") == gates.SESSIONS
    assert gate(2, 11.0) == ""
    assert gate(3, 11.0) == gates.SESSIONS
    assert gate(0, NOW) == ""
