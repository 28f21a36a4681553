"""Dreams that begin by themselves, in a daemon on a fake clock."""

import io
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.daemon.app import SCHEMAS
from memd.daemon.dreaming import DreamStarter
from memd.daemon.log import Log
from memd.dream.service import Dreams
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Jobs
from memd.projects.configuration import Configuration
from memd.rpc.hub import Hub
from memd.state.database import open_database
from memd.state.dreams import DreamTable
from memd.state.jobs import JobTable
from memd.state.proposals import ProposalTable
from memd.state.runs import Runs
from memd.state.visits import Visit, Visits
from memd.store.service import Store
from tests.dream.bench import NoModel
from tests.support.clock import FakeClock
from tests.support.daemon import Home, daemon_here, throw_away_home

pytestmark = pytest.mark.anyio
CHECK = 30 * 60.0


@dataclass
class Machine:
    """A machine that may run on battery; ``requested`` counts how often it was asked."""

    on_battery: bool = False
    requested: int = 0
    does: Callable[[], bool] | None = None

    def __call__(self) -> bool:
        """Say whether it runs on battery."""
        self.requested += 1
        return self.does() if self.does else self.on_battery


@dataclass(frozen=True)
class Daemon:
    """A daemon, its clock, its machine and one client."""

    home: Home
    clock: FakeClock
    machine: Machine
    client: AsyncClient

    async def call(self, method: str, cwd: str, **params: Any) -> Any:
        """Call a method about a project."""
        return await self.client.call(method, {"cwd": cwd, **params})

    async def dreams(self) -> list[dict[str, Any]]:
        """Return the dreams that there are, the newest first."""
        jobs = (await self.client.call("job.list"))["jobs"]
        return [job for job in jobs if job["kind"] == "dream"]

    async def until_dreams(self, count: int) -> None:
        """Return once there are so many dreams, all of them over."""
        with anyio.fail_after(60):
            while len(results := await self.dreams()) < count:
                pass
            for job in results:
                await self.client.call("job.wait", {"job": job["job"]})
        assert len(results) == count

    async def tick(self) -> None:
        """Let the timer have one look; return once it has had it."""
        await self._timer_sleeps()
        self.clock.advance(CHECK)
        await self._timer_sleeps()

    async def _timer_sleeps(self) -> None:
        with anyio.fail_after(60):
            wakes = self.clock.monotonic() + CHECK
            while all(when != wakes for when, _ in self.clock._sleepers):
                await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def running(options: str = "min_sessions = 0\n") -> AsyncIterator[Daemon]:
    """Run a daemon with these options of dreams."""
    with throw_away_home() as home:
        config = Path(home.places.config)
        config.parent.mkdir(parents=True)
        config.write_text(f"[dream]\n{options}")
        config.chmod(0o600)
        clock, machine = FakeClock(), Machine()
        async with (
            daemon_here(home, clock, machine) as _,
            AsyncClient(home.places.socket, name="t") as client,
        ):
            yield Daemon(home, clock, machine, client)


async def test_the_timer_looks_at_all_that_are_known_and_there() -> None:
    """A project that is gone or that its files switch off is passed over; the others dream."""
    async with running("min_sessions = 0\nmin_hours = 0.5\n") as daemon:
        cwds = [daemon.home.project(name) for name in ("a", "b", "c", "d")]
        on = {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0"}
        await daemon.client.call("hello", {"client": "test", "environment": on})
        for cwd in cwds:
            await daemon.call("session.end", cwd, session_id="s")
        await daemon.until_dreams(4)
        shutil.rmtree(cwds[1])
        Path(cwds[3], ".memd.toml").write_text("enabled = false\n")
        await daemon.tick()
        await daemon.until_dreams(6)
        directories = [job["directory"] for job in (await daemon.dreams())[:2]]
        assert not any("-b/" in directory or "-d/" in directory for directory in directories)


async def test_sessions_that_end_together_share_one_dream() -> None:
    """However many triggers come at once, a directory gets one dream."""
    async with running() as daemon:
        cwd = daemon.home.project()

        async def end(session: str) -> None:
            await daemon.call("session.end", cwd, session_id=session)

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(end, f"s{number}")
        await daemon.until_dreams(1)
        assert daemon.machine.requested == 1


async def test_a_dream_that_waits_for_its_turn_is_not_doubled(tmp_path: Path) -> None:
    """While a dream of a directory waits, no other is submitted; nor while a prompt is answered."""
    (tmp_path / "memd.toml").write_text("[dream]\nmin_sessions = 0\n")
    (tmp_path / "memd.toml").chmod(0o600)
    (tmp_path / "p").mkdir()
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    clock, hub, priority = FakeClock(), Hub(), RequestPriority()
    configuration = Configuration(str(tmp_path / "memd.toml"))
    store = Store(database, configuration, clock, hub, home=str(tmp_path), environ={})
    jobs = Jobs(JobTable(database), clock, hub, on_unexpected=repr)
    starter = DreamStarter(
        store,
        Dreams(
            store,
            DreamTable(database),
            ProposalTable(database),
            clock,
            models=NoModel(),
            runs=Runs(database),
        ),
        jobs,  # nobody runs them
        Visits(database),
        clock=clock,
        priority=priority,
        on_battery=bool,
        log=Log(io.StringIO()),
    )
    visit = Visit(str(tmp_path / "p"), "c", {})
    project, settings, _ = await store.where(visit.cwd, visit.environment)
    requested = (await starter.request(project, settings, visit, force=False)).job
    assert await starter.consider(project, settings, visit) == ""
    assert (await starter.prospect(project, settings)).running == requested
    assert await jobs.cancel(requested)
    with priority.prompt():
        assert await starter.consider(project, settings, visit) == ""
    assert await starter.consider(project, settings, visit) not in {"", requested}
    database.close()


async def test_a_pause_keeps_dreams_from_being_submitted() -> None:
    """While background work is paused no automatic dream piles up; status says why."""
    async with running() as daemon:
        cwd = daemon.home.project()
        await daemon.client.call("pause")
        await daemon.call("session.end", cwd, session_id="s")
        assert await daemon.dreams() == []
        assert "paused" in (await daemon.call("dream.status", cwd))["waits"]
        await daemon.client.call("resume")
        await daemon.tick()
        await daemon.until_dreams(1)


async def test_a_state_file_that_fails_costs_that_look_alone() -> None:
    """What keeps the timer from a dream is logged, and memd goes on."""
    async with running() as daemon:
        cwd = daemon.home.project()
        daemon.machine.on_battery = True
        await daemon.call("session.end", cwd, session_id="s")
        state = Path(daemon.home.places.database)
        aside = state.with_name("away.db")

        def vanish() -> bool:
            os.rename(state, aside)
            state.mkdir()
            return False

        daemon.machine.does = vanish
        await daemon.tick()
        daemon.machine.does = None
        await daemon.tick()
        state.rmdir()
        os.rename(aside, state)
        daemon.machine.on_battery = False
        await daemon.call("session.end", cwd, session_id="s")
        await daemon.until_dreams(1)
        log = Path(daemon.home.places.log).read_text()
        assert log.count("no dream begun") == 1
        assert log.count("no dreams looked for") == 1
