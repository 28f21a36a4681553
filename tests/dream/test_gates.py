"""Whether a dream may begin; the table of gates is in tests/net/test_dream_lock.py."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from memd.core.settings import DreamSettings, Settings
from memd.core.values import Project
from memd.dream import gates
from memd.dream.gates import Conditions, Gatekeeper, Sources
from memd.projects.project import slug
from memd.transcripts.sessions import sessions_of
from memd.watch import locks
from tests.support.clock import FakeClock

NOW = 1_760_000_000.0
HOUR = 3600.0
ON = Settings()
PROJECT = Project("/p", "/p", "/m", "default", "/t", enabled=True)


@given(
    st.one_of(st.none(), st.floats(-1e10, 1e12)), st.floats(0, 2e9), st.floats(0, 10_000), st.data()
)
def test_no_time_closes_the_gate_for_ever(
    consolidated: float | None, now: float, hours: float, data: st.DataObject
) -> None:
    """Whatever the lock's time and however the clock was set, the gate opens within its hours."""
    settings = replace(ON, dream=DreamSettings(min_hours=hours))
    now += data.draw(st.sampled_from((0.0, -24 * HOUR, -now)))
    opens = _outlook(settings, now, at=consolidated).due
    assert opens is None or now < opens <= now + hours * HOUR + 60.0


def _outlook(
    settings: Settings = ON,
    now: float = NOW,
    *,
    project: Project = PROJECT,
    at: float | None = NOW - 25 * HOUR,
    count: int = 5,
    busy: bool = False,
    unusable: str = "",
) -> gates.Outlook:
    def lock(directory: str, *_: object) -> bool:
        if unusable:
            raise locks.LockUnusableError(directory, unusable)
        return busy

    sources = Sources(
        consolidated_at=lambda _: at,
        sessions=lambda _: {f"s{number}": now for number in range(count)},
        busy=lock,
    )
    return Gatekeeper(FakeClock(now), sources).outlook(project, settings)


@pytest.mark.parametrize(
    ("conditions", "word"),
    [
        (Conditions(), ""),
        (Conditions(paused=True), "paused"),
        (Conditions(prompts=1), "prompt"),
        (Conditions(on_battery=True), "battery"),
        (Conditions(began=3599.0), "hour"),
        (Conditions(began=3600.0), ""),
    ],
)
def test_a_dream_waits_for_a_quiet_machine(conditions: Conditions, word: str) -> None:
    """Each reason keeps an automatic dream waiting."""
    said = gates.reason_to_wait(conditions, Settings())
    assert word in said
    assert bool(said) == bool(word)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Make a project with one transcript, in which nobody has dreamt."""
    results = Project(
        str(tmp_path / "p" / "sub"),
        str(tmp_path / "p"),
        str(tmp_path / "memory"),
        "test",
        str(tmp_path / "projects"),
        enabled=True,
    )
    Path(results.memory_dir).mkdir()
    add(results, results.root, "s1", FakeClock().now() - HOUR)
    return results


def add(project: Project, cwd: str, session: str, at: float) -> None:
    """Write a transcript that changed last at a time."""
    folder = Path(project.transcripts, slug(cwd))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.jsonl").write_text("")
    os.utime(folder / f"{session}.jsonl", (at, at))


def test_each_folder_is_scanned_once_in_a_while(project: Project) -> None:
    """A folder is looked at again after ten minutes of a clock that nobody sets."""
    clock, scanned = FakeClock(), list[str]()

    def scan(folder: str) -> dict[str, float]:
        scanned.append(folder)
        return sessions_of(folder)

    keeper = Gatekeeper(clock, Sources(sessions=scan))

    def closed(project: Project, wanted: int) -> str:
        settings = Settings(dream=DreamSettings(min_sessions=wanted))
        return keeper.first_closed_gate(project, settings, force=False, session="")

    assert closed(project, 2) == gates.SESSIONS
    add(project, project.cwd, "s2", clock.now())
    assert closed(project, 2) == gates.SESSIONS
    clock.jump(24 * HOUR)
    clock.advance(599.0)
    assert closed(project, 2) == gates.SESSIONS
    assert len(scanned) == 2
    clock.advance(1.0)
    assert closed(project, 2) == ""
    assert sorted(scanned) == sorted(2 * [*set(scanned)])
    elsewhere = structs.replace(project, cwd=f"{project.root}/other")
    assert closed(elsewhere, 1) == ""
    assert len(scanned) == 5  # the root's folder is known, the other one is new
