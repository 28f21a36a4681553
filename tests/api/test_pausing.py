"""pause and resume over the socket."""

import os
from dataclasses import asdict

import pytest

from memd.client.aio import AsyncClient
from memd.core import limits
from memd.daemon.app import SCHEMAS
from memd.jobs.breaker import failed
from memd.state.database import open_database
from memd.state.jobs import JobTable
from memd.state.pauses import Breaker
from memd.testing.clock import FakeClock
from memd.testing.daemon import Home, daemon_here
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio
WORDS = [{"role": "user", "content": "From now on, always write the tests first."}]


async def test_a_pause_keeps_jobs_and_lets_prompts_through(caller: Caller) -> None:
    """In a pause jobs are accepted and wait, prompts are answered; resume lets the jobs run."""
    await caller.write()
    paused = await caller.plain("pause")
    assert (paused["paused_since"], paused["waiting"]) == (caller.clock.now(), 0)
    accepted = await caller.call("extract", session_id="s", messages=WORDS)
    assert accepted["status"] == "accepted"
    found = await caller.call("prefetch", session_id="s", query="integration tests database")
    assert [memory["name"] for memory in found["memories"]] == ["test-policy"]
    status = await caller.plain("status")
    assert (status["paused_since"], status["jobs"]) == (caller.clock.now(), {"queued": 1})
    assert (await caller.plain("pause", now=True))["waiting"] == 1
    assert (await caller.plain("resume"))["paused_since"] is None
    ended = await caller.plain("job.wait", job=accepted["job"])
    assert ended["state"] == "completed"
    assert (await caller.plain("status"))["paused_since"] is None


async def test_an_open_breaker_is_told(home: Home, clock: FakeClock) -> None:
    """The status names each directory that does without a model, why, and until when."""
    row: Breaker | None = None
    for _ in range(limits.BREAKER_AFTER):
        row = failed(row, "/m", "the server is overloaded", clock.now())
    assert row is not None
    os.makedirs(home.places.state_dir, mode=0o700)
    database = open_database(home.places.database, SCHEMAS)
    JobTable(database).pauses.keep(row)
    database.close()
    async with daemon_here(home, clock), AsyncClient(home.places.socket, name="t") as client:
        told = (await client.call("status", {}))["breakers"]
        paused = await client.call("pause", {})
    assert told == paused["breakers"] == [asdict(row)]
    assert told[0]["until"] == clock.now() + limits.BREAKER_SECONDS
