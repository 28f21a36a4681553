"""The composition: what a start takes up and what an end leaves."""

import time
from pathlib import Path

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.client.errors import RemoteError
from tests.support.clock import FakeClock
from tests.support.daemon import daemon_here, throw_away_home

pytestmark = pytest.mark.anyio
WORDS = "From now on, always run the integration tests against a real database."
SAID = [{"role": "user", "content": WORDS}]


async def test_an_end_drains_what_was_accepted() -> None:
    """A daemon that is told to end finishes its jobs first."""
    with throw_away_home() as home:
        cwd = home.project()
        messages = [{"role": "user", "content": WORDS}]
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            params = {"cwd": cwd, "session_id": "s", "messages": messages}
            await client.call("extract", params)
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            (job,) = (await client.call("job.list"))["jobs"]
            assert job["state"] == "completed"


async def test_a_damaged_state_file_costs_history_only() -> None:
    """Memories are there after the state file was overwritten, and status says what happened."""
    with throw_away_home() as home:
        cwd = home.project()
        note = {"path": "a.md", "name": "a", "description": "d", "type": "user", "body": "b"}
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            await client.call("memory.write", {"cwd": cwd, **note})
        for name in ("state.db-wal", "state.db-shm"):
            Path(home.places.state_dir, name).unlink(missing_ok=True)
        Path(home.places.database).write_bytes(b"junk" * 1000)
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            assert len((await client.call("memory.list", {"cwd": cwd}))["memories"]) == 1
            assert (await client.call("memory.history", {"cwd": cwd}))["changes"] == []
            status = await client.call("status")
            assert "no memory is lost" in status["notes"][0]
            await client.call("memory.write", {"cwd": cwd, **note, "body": "c"})


async def test_a_state_file_lost_while_the_daemon_runs_is_begun_anew() -> None:
    """After its state file was deleted the daemon goes on, and status says what happened."""
    with throw_away_home() as home:
        cwd = home.project()
        note = {"path": "a.md", "name": "a", "description": "d", "type": "user", "body": "b"}
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            await client.call("memory.write", {"cwd": cwd, **note})
            Path(home.places.database).unlink()
            assert len((await client.call("memory.list", {"cwd": cwd}))["memories"]) == 1
            await client.call("memory.write", {"cwd": cwd, **note, "path": "b.md"})
            assert len((await client.call("memory.history", {"cwd": cwd}))["changes"]) == 1
            status = await client.call("status")
            assert "no memory is lost" in status["notes"][0]
            await client.call("memory.write", {"cwd": cwd, **note, "path": "c.md"})


async def test_a_state_file_that_cannot_be_used_keeps_nobody_from_reading() -> None:
    """A start without a usable state file serves memories; once it works, so does all else."""
    note = {"path": "a.md", "name": "a", "description": "d", "type": "user", "body": "b"}
    with throw_away_home() as home:
        cwd = home.project()
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            await client.call("memory.write", {"cwd": cwd, **note})
            await client.call("extract", {"cwd": cwd, "session_id": "s", "messages": SAID})
        aside = Path(home.places.state_dir, "aside")
        Path(home.places.database).rename(aside)
        Path(home.places.database).mkdir()
        clock = FakeClock(time.time())
        async with (
            daemon_here(home, clock),
            AsyncClient(home.places.socket, name="t") as client,
        ):
            assert (await client.call("memory.read", {"cwd": cwd, "path": "a.md"}))["content"]
            assert len((await client.call("memory.list", {"cwd": cwd}))["memories"]) == 2
            assert (await client.call("load_prompt", {"cwd": cwd}))["prompt"]
            for method, params in (
                ("memory.write", note),
                ("memory.history", {}),
                ("dream", {"force": True, "wait": True}),
                ("extract", {"session_id": "s", "messages": SAID, "wait": True}),
            ):
                with pytest.raises(RemoteError) as caught, anyio.fail_after(60):
                    await client.call(method, {"cwd": cwd, **params})
                assert caught.value.kind == "state_unusable"
            diagnosis = await client.call("doctor")
            assert not diagnosis["ok"]
            Path(home.places.database).rmdir()
            aside.rename(home.places.database)
            await client.call("memory.write", {"cwd": cwd, **note, "body": "c"})
            assert len((await client.call("memory.history", {"cwd": cwd}))["changes"]) == 3
            assert "wait for it" in (await client.call("status"))["notes"][0]
