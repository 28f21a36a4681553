"""Asking the gates, with real files; the whole table is in tests/promises/test_dream_gates.py."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from memd.core.settings import DreamSettings, Settings
from memd.core.values import Project
from memd.dream import gates
from memd.dream.gatekeeper import Gatekeeper, Looks
from memd.projects.project import slug
from memd.testing.clock import FakeClock
from memd.transcripts.sessions import sessions_of
from memd.watch import locks

ON = Settings(dream=DreamSettings(min_sessions=1))
HOUR = 3600.0


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Make a project with one transcript, in which nobody has dreamt."""
    found = Project(
        str(tmp_path / "p" / "sub"),
        str(tmp_path / "p"),
        str(tmp_path / "memory"),
        "test",
        str(tmp_path / "projects"),
        enabled=True,
    )
    Path(found.memory_dir).mkdir()
    add(found, found.root, "s1", FakeClock().now() - HOUR)
    return found


def add(project: Project, cwd: str, session: str, at: float) -> None:
    """Write a transcript that changed last at a time."""
    folder = Path(project.transcripts, slug(cwd))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{session}.jsonl").write_text("")
    os.utime(folder / f"{session}.jsonl", (at, at))


def test_each_folder_is_scanned_once_in_a_while(project: Project) -> None:
    """A folder is looked at again after ``scan_minutes`` of a clock that nobody sets."""
    clock, scanned = FakeClock(), list[str]()

    def scan(folder: str) -> dict[str, float]:
        scanned.append(folder)
        return sessions_of(folder)

    keeper = Gatekeeper(clock, Looks(sessions=scan))

    def closed(project: Project, wanted: int) -> str:
        settings = Settings(dream=DreamSettings(min_sessions=wanted, scan_minutes=3.0))
        return keeper.closed(project, settings, force=False, session="")

    assert closed(project, 2) == gates.SESSIONS
    add(project, project.cwd, "s2", clock.now())
    assert closed(project, 2) == gates.SESSIONS
    clock.jump(24 * HOUR)
    clock.advance(179.0)
    assert closed(project, 2) == gates.SESSIONS
    assert len(scanned) == 2
    clock.advance(1.0)
    assert closed(project, 2) == ""
    assert sorted(scanned) == sorted(2 * [*set(scanned)])
    elsewhere = replace(project, cwd=f"{project.root}/other")
    assert closed(elsewhere, 1) == ""
    assert len(scanned) == 5  # the root's folder is known, the other one is new


def test_an_outlook_takes_nothing(project: Project) -> None:
    """Looking at all gates changes no file, and a lock that cannot be used says why."""
    clock = FakeClock()
    keeper = Gatekeeper(clock)
    calm = keeper.outlook(project, ON)
    assert (calm.gate, calm.last, calm.due, calm.sessions) == ("", None, None, 1)
    assert os.listdir(project.memory_dir) == []
    Path(project.memory_dir, locks.LOCK).mkdir()
    broken = keeper.outlook(project, replace(ON, dream=DreamSettings(min_hours=0.0)))
    assert [gate.name for gate in broken.gates if not gate.open] == ["sessions", "lock"]
    assert "cannot be used" in broken.gates[3].says
    assert keeper.outlook(replace(project, enabled=False), ON).gate == gates.MEMORY_OFF
