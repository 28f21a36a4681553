"""The daily pruning of the journal."""

import io
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.context.service import Contexts
from memd.core.clock_check import DAY_SECONDS
from memd.core.values import Actor, ProposalDecided, Provenance
from memd.daemon.app import SCHEMAS
from memd.daemon.log import Log
from memd.daemon.retention import LOOK_SECONDS, keep_bounded
from memd.projects.configuration import Configuration
from memd.rpc.hub import Hub
from memd.state.ages import Ages
from memd.state.contexts import ContextRow, ContextTable
from memd.state.database import Database, open_database
from memd.state.journal import Journal
from memd.state.ledger import Item, Ledger
from memd.state.proposals import Proposal, ProposalTable
from memd.state.records import PlannedChange, Step
from memd.state.runs import Runs
from memd.store.service import Store
from tests.notes.bench import notes_of
from tests.support.clock import FakeClock
from tests.support.daemon import Home, daemon_here, throw_away_home

pytestmark = pytest.mark.anyio
MEMORY = {"path": "a.md", "name": "a", "description": "about a", "type": "user", "body": "one"}


async def nothing() -> None:
    """Forget nothing else."""


@dataclass(frozen=True)
class Keeper:
    """The pruning task with all that it uses."""

    clock: FakeClock
    database: Database
    log: io.StringIO
    path: Path

    def change(self) -> None:
        """Journal a change of now."""
        book, at = Journal(self.database), self.clock.now()
        intent = PlannedChange(
            "/m", at, Provenance(Actor.CLIENT), "", "ab", (Step("a", "1", None),), {}
        )
        book.mark_applied(book.record(intent), at)

    def left(self) -> list[int]:
        """Return the numbers of the sets that are left."""
        return [row["id"] for row in self.database.read("SELECT id FROM changes ORDER BY id")]

    async def rested(self) -> None:
        """Return once the task has done its round and sleeps."""
        with anyio.fail_after(60):
            while not self.clock._sleepers:
                await anyio.lowlevel.checkpoint()

    async def next_day(self) -> None:
        """Let a day go by and the task do its round."""
        self.clock.advance(DAY_SECONDS)
        await self.rested()


@asynccontextmanager
async def keeper(folder: Path, options: str) -> AsyncIterator[Keeper]:
    """Run the pruning task with these settings until the end of the block."""
    config = folder / "memd.toml"
    config.write_text(options)
    clock, log = FakeClock(), io.StringIO()
    database = open_database(str(folder / "state.db"), SCHEMAS)
    configuration = Configuration(str(config))
    store = Store(database, configuration, clock, Hub(), home=str(folder), environ={})
    made = Keeper(clock, database, log, folder / "state.db")
    async with anyio.create_task_group() as group:
        notes = notes_of(clock, Runs(database))
        bounded = partial(keep_bounded, database, store, Ages(database), notes=notes)
        bounded = partial(bounded, contexts=Contexts(clock, ContextTable(database)), forget=nothing)
        group.start_soon(bounded, clock, Log(log))
        await made.rested()
        yield made
        group.cancel_scope.cancel()
    database.close()


async def test_history_is_bounded_every_day(tmp_path: Path) -> None:
    """A change goes on the day on which it is older than the settings say, and is logged."""
    async with keeper(tmp_path, "[journal]\ndays = 2\n") as kept:
        for _ in range(3):
            kept.change()
            await kept.next_day()
        assert kept.left() == [2, 3]
        assert kept.log.getvalue().count('"pruned"') == 1
        await kept.next_day()
        await kept.next_day()
        assert kept.left() == []


async def test_session_notes_go_by_their_last_change(tmp_path: Path) -> None:
    """Notes that memd wrote go some days after their last change; whatever else is there stays."""
    cursor = "<!-- memd notes 1 session={} covers= tokens=0 engine=local at= -->\n"
    projects = tmp_path / ".claude" / "projects" / "-p"
    files = {name: projects / name / "session-memory" / "summary.md" for name in ("old", "new")}
    files["theirs"] = projects / ".claude" / "session-memory" / "theirs.md"
    for name, path in files.items():
        path.parent.mkdir(parents=True)
        path.write_text("# Title\n\n" + ("" if name == "theirs" else cursor.format(name)))
    (projects / "old.jsonl").write_text("{}\n")
    async with keeper(tmp_path, "[notes]\ndays = 2\n") as kept:
        for name, path in files.items():
            at = kept.clock.now() + (DAY_SECONDS if name == "new" else 0)
            os.utime(path, (at, at))
        for _ in range(2):
            await kept.next_day()
        assert files["old"].exists()
        await kept.next_day()
        assert [name for name, path in files.items() if path.exists()] == ["new", "theirs"]
        assert sorted(path.name for path in projects.iterdir()) == [".claude", "new", "old.jsonl"]


async def test_stored_results_go_some_days_after_their_last_use(tmp_path: Path) -> None:
    """With the decisions of their session; how long is a setting."""
    folders = [tmp_path / "projects" / "-p" / name / "tool-results" for name in ("old", "new")]
    files = [folder / "t1.txt" for folder in folders]
    async with keeper(tmp_path, "[context]\ndays = 2\n") as kept:
        table = ContextTable(kept.database)
        for number, file in enumerate(files):
            file.parent.mkdir(parents=True)
            file.write_text("a result")
            decision = ("t1", "ab", "spill", "its beginning", str(file), 8)
            at = kept.clock.now() + number * DAY_SECONDS
            table.save(ContextRow(str(file.parent), "", at), [decision])
        for _ in range(2):
            await kept.next_day()
        assert [file.exists() for file in files] == [True, True]
        await kept.next_day()
        assert [file.exists() for file in files] == [False, True]
        assert [row.folder for row in table.rows("")] == [str(folders[1])]
        assert table.decisions(str(folders[0])) == ()


async def test_what_was_decided_of_dreams_is_bounded_too(tmp_path: Path) -> None:
    """A decided proposal goes on the day on which history of its age does, an open one stays."""
    async with keeper(tmp_path, "[journal]\ndays = 2\n") as kept:
        table, by = ProposalTable(kept.database), Provenance(Actor.DREAM)
        names = [table.propose(Proposal("", "/m", 1.0, problems=(p,)), by) for p in "ab"]
        table.decide(ProposalDecided(names[0], "rejected", "[]"), kept.clock.now())
        await kept.next_day()
        assert len(table.of_directory("/m", decided=True)) == 2
        await kept.next_day()
        await kept.next_day()
        assert [results.id for results in table.of_directory("/m", decided=True)] == names[1:]


async def test_what_sessions_were_given_is_bounded_too(tmp_path: Path) -> None:
    """A session's ledger goes a month after its last use, when no client resumes it any more."""
    async with keeper(tmp_path, "") as kept:
        ledger = Ledger(kept.database)
        ledger.use("s", kept.clock.now())
        ledger.mark("s", [Item("/a", "1", 10)], 100, kept.clock.now())
        ledger.flush()
        days = 0
        while kept.database.read("SELECT 1 FROM surfaced WHERE live"):
            await kept.next_day()
            days += 1
        assert days in (31, 32)  # and the day in which the clock was proved


async def test_a_state_file_that_fails_is_tried_again(tmp_path: Path) -> None:
    """A day on which the state file cannot be used costs that day's pruning alone."""
    async with keeper(tmp_path, "[journal]\ndays = 1\n") as kept:
        kept.change()
        aside = tmp_path / "away.db"
        os.rename(kept.path, aside)
        os.mkdir(kept.path)
        kept.clock.advance(DAY_SECONDS)
        await kept.next_day()
        assert '"not pruned"' in kept.log.getvalue()
        os.rmdir(kept.path)
        os.rename(aside, kept.path)
        await kept.next_day()
        assert kept.left() == []


async def looked(clock: FakeClock) -> None:
    """Return once the daemon has done its round of the clock."""
    with anyio.fail_after(60):
        while not any(at - clock.monotonic() == LOOK_SECONDS for at, _ in clock._sleepers):
            await anyio.lowlevel.checkpoint()


async def changes(client: AsyncClient, cwd: str) -> int:
    """Return how many changes the history has."""
    return len((await client.call("memory.history", {"cwd": cwd}))["changes"])


@asynccontextmanager
async def lived(clock: FakeClock) -> AsyncIterator[tuple[Home, str]]:
    """Make a home whose daemon ran for two days, with three changes."""
    with throw_away_home() as home:
        cwd = home.project()
        async with daemon_here(home, clock), AsyncClient(home.places.socket, name="t") as client:
            for day in range(3):
                await client.call("memory.write", {**MEMORY, "body": f"{day}", "cwd": cwd})
                clock.advance(DAY_SECONDS)
                await looked(clock)
        yield home, cwd


async def test_history_goes_a_day_after_a_long_pause() -> None:
    """What became too old while no daemon ran stays until the clock has run for a day."""
    clock = FakeClock()
    async with lived(clock) as (home, cwd):
        clock.advance(181 * DAY_SECONDS)
        async with daemon_here(home, clock), AsyncClient(home.places.socket, name="t") as client:
            assert await changes(client, cwd)
            clock.advance(DAY_SECONDS - 60)
            await looked(clock)
            assert await changes(client, cwd)
            clock.advance(DAY_SECONDS)
            with anyio.fail_after(60):
                while await changes(client, cwd):
                    pass
            assert (await client.call("memory.list", {"cwd": cwd}))["memories"]


@pytest.mark.parametrize("days", [200, -1, -400])
async def test_a_clock_that_jumped_takes_nothing(days: int) -> None:
    """A start with a wrong clock, writes under it, and the next starts leave all history."""
    clock = FakeClock()
    async with lived(clock) as (home, cwd):
        for jump in (days, -days, 0):
            clock.jump(jump * DAY_SECONDS)
            async with (
                daemon_here(home, clock),
                AsyncClient(home.places.socket, name="t") as client,
            ):
                before = await changes(client, cwd)
                await looked(clock)
                body = f"written {jump} {clock.now()}"
                await client.call("memory.write", {**MEMORY, "body": body, "cwd": cwd})
                assert await changes(client, cwd) == before + 1
        assert before == 3 + 2
        clock.advance(3 * DAY_SECONDS)
        async with daemon_here(home, clock), AsyncClient(home.places.socket, name="t") as client:
            for _ in range(3):
                clock.advance(DAY_SECONDS)
                await looked(clock)
            assert await changes(client, cwd) == before + 1
