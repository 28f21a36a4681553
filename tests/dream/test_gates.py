"""Whether a dream may begin."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    ("consolidated", "gate", "due"),
    [
        (None, "", None),
        (NOW - 24 * HOUR, "", None),
        (NOW - 23.9 * HOUR, gates.TIME, NOW + 0.1 * HOUR),
        (NOW, gates.TIME, NOW + 24 * HOUR),
        (NOW + 30.0, gates.TIME, NOW + 24 * HOUR + 30.0),
        (NOW + 61.0, "", None),
        (NOW * 10, "", None),
        (0.0, "", None),
    ],
)
def test_a_day_lies_between_two_dreams(
    consolidated: float | None, gate: str, due: float | None
) -> None:
    """The gate of time opens after its hours, and at once where the last time cannot be true."""
    since = gates.believed(consolidated, NOW)
    assert gates.time(since, NOW, ON) == gate
    assert gates.due(since, NOW, ON) == pytest.approx(due)


def test_no_hours_keep_nothing_closed() -> None:
    """Without hours between dreams a clock that is a little ahead does not close the gate."""
    settings = replace(ON, dream=DreamSettings(min_hours=0.0))
    assert gates.time(NOW + 30.0, NOW, settings) == ""


@given(
    st.one_of(st.none(), st.floats(-1e10, 1e12)), st.floats(0, 2e9), st.floats(0, 10_000), st.data()
)
def test_no_time_closes_the_gate_for_ever(
    consolidated: float | None, now: float, hours: float, data: st.DataObject
) -> None:
    """Whatever the lock's time and however the clock was set, the gate opens within its hours."""
    settings = replace(ON, dream=DreamSettings(min_hours=hours))
    now += data.draw(st.sampled_from((0.0, -24 * HOUR, -now)))
    opens = gates.due(gates.believed(consolidated, now), now, settings)
    assert opens is None or now < opens <= now + hours * HOUR + 60.0


def test_sessions_since_the_last_dream_count() -> None:
    """Transcripts count when they changed since the last dream, without the session that asks."""
    found = gates.newest([{"a": 1.0, "b": 11.0}, {"a": 12.0, "c": 13.0, "b": 2.0}])
    assert found == {"a": 12.0, "b": 11.0, "c": 13.0}

    def gate(wanted: int, since: float | None, without: str = "", now: float = NOW) -> str:
        settings = replace(ON, dream=DreamSettings(min_sessions=wanted))
        return gates.sessions(gates.changed(found, since, now, without=without), settings)

    assert gate(3, None) == ""
    assert gate(4, None) == gates.SESSIONS
    assert gate(3, None, "a") == gates.SESSIONS
    assert gate(2, 11.0) == ""
    assert gate(3, 11.0) == gates.SESSIONS
    assert gate(0, NOW) == ""
    assert gate(1, None, now=-60.0) == gates.SESSIONS


def test_transcripts_of_the_future_wait_for_their_time() -> None:
    """A transcript dated by a clock that was ahead counts once, after that time has come."""
    found = {"a": NOW + 61.0}
    assert gates.changed(found, None, NOW, without="") == 0
    assert gates.changed(found, NOW, NOW + 2.0, without="") == 1
    assert gates.changed(found, NOW + 62.0, NOW + 70.0, without="") == 0


def _outlook(**changes: Any) -> gates.Outlook:
    facts = {"since": NOW - 25 * HOUR, "count": 5, "busy": False} | changes
    return gates.outlook(PROJECT, ON, NOW, **facts)


def test_an_outlook_names_the_first_closed_gate() -> None:
    """All gates are told with words, and the first closed one stands for them."""
    calm = _outlook()
    assert (calm.gate, calm.due, calm.last, calm.sessions) == ("", None, NOW - 25 * HOUR, 5)
    assert [gate.name for gate in calm.gates] == ["switches", "time", "sessions", "lock"]
    assert all(gate.open and gate.says for gate in calm.gates)
    early = _outlook(since=NOW - 6 * HOUR, count=1, busy=True)
    assert (early.gate, early.due) == (gates.TIME, NOW + 18 * HOUR)
    assert [gate.says for gate in early.gates[1:]] == [
        "the last dream was 6.0 of 24 hours ago",
        "1 of 5 sessions since the last dream",
        "another program is consolidating these memories",
    ]
    assert _outlook(count=1).gate == gates.SESSIONS
    broken = _outlook(since=None, busy=True, unusable="it is a link")
    assert (broken.gate, broken.gates[3].says) == (gates.LOCK, "it is a link")
    assert broken.gates[1].says == "there was no dream yet"


def test_an_outlook_says_which_switch_is_off() -> None:
    """A switch that is off is named as a skipped dream names it, with its reason."""
    off = replace(ON, dream=DreamSettings(enabled=False))
    assert gates.outlook(PROJECT, off, NOW, since=None, count=0, busy=False).gate == "dream_off"
    project = replace(PROJECT, enabled=False, reason="MEMD_DISABLE is set")
    first = gates.outlook(project, off, NOW, since=None, count=0, busy=False).gates[0]
    assert first == gates.Gate("memory_off", open=False, says="MEMD_DISABLE is set")
