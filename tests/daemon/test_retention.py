"""The hourly pass that bounds what memd keeps."""

import io
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest

from memd.base.limits import STORED_BYTES
from memd.base.text import sha256
from memd.context.results import SessionResults
from memd.context.service import Contexts
from memd.daemon.app import SCHEMAS
from memd.daemon.log import Log
from memd.daemon.retention import PASS_SECONDS, keep_bounded
from memd.state.database import Database, open_database
from memd.state.docs import Docs
from tests.notes.bench import notes_of
from tests.store.bench import Bench, topic
from tests.stores import projects_in
from tests.support.calls import callers_in
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio
KEPT = 1000


async def nothing() -> None:
    """Forget nothing else."""


@dataclass(frozen=True)
class Keeper:
    """The task with all that it uses."""

    clock: FakeClock
    database: Database
    log: io.StringIO
    path: Path

    async def rested(self) -> None:
        """Return once the task has done its pass and sleeps."""
        with anyio.fail_after(60):
            while not self.clock._sleepers:
                await anyio.lowlevel.checkpoint()

    async def next_pass(self) -> None:
        """Let an hour go by and the task do its pass."""
        self.clock.advance(PASS_SECONDS)
        await self.rested()


@asynccontextmanager
async def keeper(folder: Path) -> AsyncIterator[Keeper]:
    """Run the task until the end of the block."""
    config = folder / "memd.toml"
    config.write_text("[journal]\nmebibytes = 1\n")
    clock, log = FakeClock(), io.StringIO()
    database = open_database(str(folder / "state.db"), SCHEMAS)
    projects = projects_in(folder, database)
    made = Keeper(clock, database, log, folder / "state.db")
    async with anyio.create_task_group() as group:
        notes = notes_of(clock, database)
        contexts = Contexts(clock, Docs(database), callers_in("/", database, clock))
        bounded = partial(keep_bounded, notes=notes, contexts=contexts, forget=nothing)
        group.start_soon(bounded, database, projects, clock, Log(log))
        await made.rested()
        yield made
        group.cancel_scope.cancel()
    database.close()


async def test_the_newest_notes_stay(tmp_path: Path) -> None:
    """Of notes that memd wrote the newest 1,000 are kept; whatever else is there stays."""
    projects = tmp_path / ".claude" / "projects" / "-p"
    for number in range(KEPT + 2):
        path = projects / f"s{number}" / "session-memory" / "summary.md"
        path.parent.mkdir(parents=True)
        above = "# Title\n\n"
        cursor = f"memd notes 2 session=s{number} covers= tokens=0 engine=local"
        path.write_text(f"{above}<!-- {cursor} hash={sha256(above.encode())[:16]} at= -->\n")
        os.utime(path, (number, number))
    (projects / "s0.jsonl").write_text("{}\n")
    async with keeper(tmp_path):
        left = {path.name for path in projects.iterdir()}
    assert left == {"s0.jsonl", *(f"s{number}" for number in range(2, KEPT + 2))}


async def test_results_of_the_oldest_sessions_go(tmp_path: Path) -> None:
    """Of too many bytes those of the session that stored longest ago go, and nothing else."""
    folder = tmp_path / "projects" / "-p" / "old" / "tool-results"
    folder.mkdir(parents=True)
    for name in ("t1.txt", "changed.txt", "theirs.txt"):
        (folder / name).write_text("a result")
    async with keeper(tmp_path) as kept:
        table = Docs(kept.database)
        table.put(SessionResults({"t1.txt": 8, "changed.txt": 7}), str(folder))
        new = f"{tmp_path}/projects/-p/new/tool-results"
        table.put(SessionResults({"t1.txt": STORED_BYTES * 7 // 8 - 15}), new)
        await kept.next_pass()
        assert (folder / "t1.txt").exists()
        table.put(SessionResults({"t1.txt": STORED_BYTES * 7 // 8 - 15, "t2.txt": 1}), new)
        await kept.next_pass()
        assert {path.name for path in folder.iterdir()} == {"changed.txt", "theirs.txt"}
        assert [place for place, _ in table.list_all(SessionResults)] == [new]


async def test_a_state_file_that_fails_is_tried_again(tmp_path: Path) -> None:
    """An hour in which the state file cannot be used costs that pass alone."""
    async with keeper(tmp_path) as kept:
        bench = Bench(tmp_path, kept.database)
        bench.write("a.md", topic("a", os.urandom(30_000).hex()))
        for number in range(50):
            bench.write("a.md", topic("a", os.urandom(30_000).hex() + str(number)))
        kept.database.read("PRAGMA wal_checkpoint(TRUNCATE)")
        aside = tmp_path / "away.db"
        os.rename(kept.path, aside)
        os.mkdir(kept.path)
        await kept.next_pass()
        assert '"not pruned"' in kept.log.getvalue()
        os.rmdir(kept.path)
        os.rename(aside, kept.path)
        await kept.next_pass()
        assert "c2" not in [each.id for each in bench.log.select()]
        assert kept.log.getvalue().count('"pruned"') == 1
