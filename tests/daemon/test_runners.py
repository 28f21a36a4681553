"""What a job does."""

import io
from pathlib import Path

import anyio
import pytest
from anyio import from_thread
from msgspec.structs import replace

from memd.agent.runs import Runs
from memd.base.values import Tree
from memd.base.yielding import yield_to_requests
from memd.context.service import Summaries
from memd.daemon.app import SCHEMAS
from memd.daemon.dreaming import DreamStarter
from memd.daemon.log import Log
from memd.daemon.runners import runners
from memd.dream.values import Wanted
from memd.extract.service import Extractions
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Jobs, Running
from memd.review.suggestions import Suggestions
from memd.state.database import open_database
from memd.state.docs import Docs
from memd.state.suggestions import SuggestionTable
from memd.store import lock
from tests.dream.bench import Bench
from tests.extract.bench import NoModel, quiet
from tests.notes.bench import notes_of
from tests.stores import projects_in
from tests.support.calls import callers_in

pytestmark = pytest.mark.anyio


async def test_a_cancelled_dream_looks_at_no_further_memory(tmp_path: Path) -> None:
    """Its pass ends where it next gives way, and the lock is as it was before: none."""
    looked: list[int] = []

    def endless(_: Tree) -> Wanted:
        while True:
            yield_to_requests()
            looked.append(1)
            if len(looked) == 3:
                from_thread.run_sync(scope.cancel)

    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    bench = Bench(tmp_path, database)
    (tmp_path / "repo").mkdir()
    waiting = Suggestions(bench.store, SuggestionTable(database), bench.clock).new_quotations
    store, cursors, runs = bench.store, Docs(database), Runs(Docs(database))
    extract = Extractions(store, cursors, bench.clock, NoModel(), runs, waiting=waiting, note=quiet)
    priority, log = RequestPriority(), Log(io.StringIO())
    jobs = Jobs(bench.jobs, bench.clock, bench.sink, on_unexpected=repr)
    projects = projects_in(tmp_path, database)
    starter = DreamStarter(
        callers_in("/", database, bench.clock),
        projects,
        bench.dreams(endless),
        jobs,
        Docs(database),
        clock=bench.clock,
        priority=priority,
        on_battery=bool,
        log=log,
    )
    by_kind = runners(
        projects,
        extract,
        starter,
        bench.sink,
        priority,
        notes=notes_of(bench.clock, database),
        summaries=Summaries(bench.clock, NoModel(), runs),
    )
    request = {"cwd": str(tmp_path / "repo"), "environment": {}, "client": "c", "session": "s"}
    running = Running(replace(bench.jobs.get(bench.job()), request=request), bench.progress)
    with anyio.fail_after(60), anyio.CancelScope() as scope:
        await by_kind["dream"](running)
    database.close()
    assert scope.cancelled_caught
    assert len(looked) == 3
    assert list(tmp_path.glob(f"**/{lock.LOCK}")) == []
