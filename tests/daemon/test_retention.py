"""The daily pruning of the journal."""

import io
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.core.settings import JournalSettings
from memd.core.values import Actor, ProposalDecided, Provenance
from memd.daemon.app import SCHEMAS
from memd.daemon.log import Log
from memd.daemon.retention import DAY_SECONDS, keep_bounded, prune
from memd.rpc.hub import Hub
from memd.state.database import Database, StateUnusableError, open_database
from memd.state.dreams import DreamTable
from memd.state.journal import Intent, Journal, Step
from memd.state.retention import Pruned
from memd.store.configuration import Configuration
from memd.store.service import Store
from memd.testing.clock import FakeClock
from memd.testing.daemon import daemon_here, throw_away_home

pytestmark = pytest.mark.anyio
MEMORY = {"path": "a.md", "name": "a", "description": "about a", "type": "user", "body": "one"}


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
        intent = Intent("/m", at, Provenance(Actor.CLIENT), "", "ab", (Step("a", "1", None),), {})
        book.applied(book.record(intent), at)

    def left(self) -> list[int]:
        """Return the numbers of the sets that are left."""
        return [row["id"] for row in self.database.read("SELECT id FROM changes ORDER BY id")]

    async def rested(self) -> None:
        """Return once the task has done its round and sleeps."""
        with anyio.fail_after(20):
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
        group.start_soon(keep_bounded, database, store, clock, Log(log))
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


async def test_what_was_decided_of_dreams_is_bounded_too(tmp_path: Path) -> None:
    """A decided proposal goes on the day on which history of its age does, an open one stays."""
    async with keeper(tmp_path, "[journal]\ndays = 2\n") as kept:
        table = DreamTable(kept.database)
        names = [table.propose("/m", f"j{n}", 1.0, {"said": f"{n}"}) for n in range(2)]
        table.decide(ProposalDecided(names[0], "rejected", "[]"), kept.clock.now())
        await kept.next_day()
        assert len(table.proposals("/m", only="")) == 2
        await kept.next_day()
        await kept.next_day()
        assert [found.id for found in table.proposals("/m", only="")] == names[1:]


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


async def test_a_round_ends_when_nothing_is_left_to_do(tmp_path: Path) -> None:
    """An empty journal is no work, and one that cannot be read raises."""
    path = str(tmp_path / "state.db")
    database = open_database(path, SCHEMAS)
    assert await prune(database, JournalSettings(), 1e9) == Pruned()
    database.close()
    os.unlink(path)
    os.mkdir(path)
    with pytest.raises(StateUnusableError):
        await prune(database, JournalSettings(), 1e9)


async def test_the_daemon_prunes_at_its_start() -> None:
    """What became too old while no daemon ran goes at the next start; the memory stays."""
    clock = FakeClock()
    with throw_away_home() as home:
        cwd = home.project()
        async with daemon_here(home, clock), AsyncClient(home.places.socket, name="t") as client:
            await client.call("memory.write", {**MEMORY, "cwd": cwd})
        clock.advance(181 * DAY_SECONDS)
        async with daemon_here(home, clock), AsyncClient(home.places.socket, name="t") as client:
            with anyio.fail_after(20):
                while (await client.call("memory.history", {"cwd": cwd}))["changes"]:
                    pass
            assert (await client.call("memory.list", {"cwd": cwd}))["memories"]
