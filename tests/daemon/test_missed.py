"""What a daemon works off that happened while none answered."""

import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest

from memd.client.aio import AsyncClient
from memd.daemon.missed import CHECK_SECONDS
from tests.support import transcripts
from tests.support.clock import FakeClock
from tests.support.daemon import Home, daemon_here, throw_away_home

pytestmark = pytest.mark.anyio
WORDS = "Remember: always run the integration tests against a real database."
MORE = "Remember: always use tabs in Makefiles."
DAY = 86_400.0


@dataclass
class Missing:
    """A home with a conversation that no daemon has heard of."""

    home: Home
    cwd: str
    clock: FakeClock

    @property
    def spool(self) -> Path:
        """The folder in which hooks leave events."""
        folder = Path(self.home.places.spool)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def say(self, text: str, session: str = "s") -> str:
        """Let the person say something; return the transcript."""
        folder = Path(self.home.path, ".claude", "projects", "x")
        return transcripts.write(folder / f"{session}.jsonl", transcripts.user(text))

    def leave(self, name: str, event: str = "Stop", session: str = "s", **members: str) -> None:
        """Leave an event as the hook does."""
        path = str(Path(self.home.path, ".claude", "projects", "x", f"{session}.jsonl"))
        payload = {"session_id": session, "transcript_path": path, "cwd": self.cwd, **members}
        facts = {"client": "claude-code", "event": event, "environment": {}, "payload": payload}
        request = {"jsonrpc": "2.0", "id": 1, "method": "hook", "params": facts}
        (self.spool / name).write_text(json.dumps(request))

    @asynccontextmanager
    async def daemon(self) -> AsyncIterator[AsyncClient]:
        """Run a daemon and give a client of it."""
        async with (
            daemon_here(self.home, self.clock),
            AsyncClient(self.home.places.socket, name="t") as client,
        ):
            yield client

    async def emptied(self, *left: str) -> None:
        """Return once nothing but these is in the spool; the clock goes on."""
        with anyio.fail_after(60):
            while sorted(os.listdir(self.spool)) != [*left]:
                self.clock.advance(CHECK_SECONDS)
                await anyio.lowlevel.checkpoint()

    async def jobs(self, client: AsyncClient, count: int) -> list[dict[str, Any]]:
        """Return the extractions once so many have ended, the newest first."""
        with anyio.fail_after(60):
            while True:
                jobs = (await client.call("job.list"))["jobs"]
                jobs = [job for job in jobs if job["kind"] == "extract"]
                if len([job for job in jobs if job["ended"]]) >= count:
                    return jobs


@pytest.fixture(name="missing")
def _missing() -> Iterator[Missing]:
    with throw_away_home() as home:
        yield Missing(home, home.project(), FakeClock(time.time()))


async def memories(client: AsyncClient, cwd: str) -> int:
    """Return how many memories there are."""
    return len((await client.call("memory.list", {"cwd": cwd}))["memories"])


async def test_an_event_that_comes_back_does_nothing_twice(missing: Missing) -> None:
    """One that was answered before its file was removed finds nothing new."""
    missing.say(WORDS)
    for _ in range(2):
        missing.leave("1")
        async with missing.daemon() as client:
            await missing.emptied()
    async with missing.daemon() as client:
        newest, first = await missing.jobs(client, 2)
        assert newest["result"]["reason"] == "nothing_new"
        assert first["result"]["saved"]
        assert await memories(client, missing.cwd) == 1


async def test_strange_files_do_no_harm(missing: Missing) -> None:
    """Of whatever lies there the daemon is ready, nothing is opened that is no small file."""
    missing.say(WORDS)
    spool = missing.spool
    secret = Path(missing.home.path, "secret")
    secret.write_text(json.dumps({"method": "hook", "params": {}}))
    for number, text in enumerate(
        (
            "",
            "\0" * 100,
            "{" * 4000,
            "[]",
            '{"method":"shutdown","params":{}}',
            '{"method":"hook"}',
            '{"method":"hook","params":{}}',
            '{"method":"hook","params":{"client":"x","event":"Stop"}}',
            '{"method":"hook","params":{"client":"claude-code","event":"Stop","payload":[]}}',
            '{"method":"hook","params":{"client":"claude-code","event":3}}',
            '{"method":"hook","params":{"a":"' + "x" * 5000 + '"}}',
            "\ud800\u2028".encode("utf-8", "surrogatepass").decode("latin-1"),
        )
    ):
        (spool / f"0{number:02}").write_text(text)
    os.mkfifo(spool / "1")
    (spool / "2").symlink_to(secret)
    (spool / "3").mkdir()
    (spool / ".draft").write_text("half of ")
    missing.leave("4")
    async with missing.daemon() as client:
        assert (await client.call("status"))["pid"] == os.getpid()
        (job,) = await missing.jobs(client, 1)
        assert job["session"] == "s"
        await missing.emptied(".draft", "3")
    assert secret.exists()


async def test_a_disk_that_refuses_keeps_the_event(missing: Missing) -> None:
    """While the state file cannot be used an event stays, and is worked off afterwards."""
    missing.say(WORDS)
    missing.leave("1")
    missing.leave("2", session="t")
    database = Path(missing.home.places.database)
    database.mkdir(parents=True)
    async with missing.daemon() as client:
        for _ in range(3):
            await client.call("load_prompt", {"cwd": missing.cwd})
            missing.clock.advance(CHECK_SECONDS)
        assert sorted(os.listdir(missing.spool)) == ["1", "2"]
        database.rmdir()
        await missing.emptied()
        await missing.jobs(client, 1)
        assert await memories(client, missing.cwd) == 1


async def begun(missing: Missing, session: str = "s") -> str:
    """Let a daemon hear the first turn of a conversation; return the transcript."""
    path = missing.say(WORDS, session)
    async with missing.daemon() as client:
        params = {"cwd": missing.cwd, "session_id": session, "transcript_path": path, "wait": True}
        assert (await client.call("extract", params))["status"] == "completed"
    return path


async def test_a_turn_that_nobody_told_of_is_read_at_the_start(missing: Missing) -> None:
    """A client that was killed leaves a transcript that grew; the next start reads it once."""
    path = await begun(missing)
    missing.say(MORE)
    old = time.time() - 3600
    os.utime(path, (old, old))
    async with missing.daemon() as client:
        newest, _ = await missing.jobs(client, 2)
        assert newest["result"]["saved"]
    async with missing.daemon() as client:
        assert len(await missing.jobs(client, 2)) == 2


async def test_a_conversation_that_goes_on_is_left_to_its_client(missing: Missing) -> None:
    """What changed a moment ago is looked at once it rests, and not if it changes again."""
    await begun(missing)
    await begun(missing, "t")
    missing.say(MORE)
    missing.say(MORE, "t")
    missing.clock.jump(time.time() - missing.clock.now())
    async with missing.daemon() as client:
        await client.call("status")
        missing.say(WORDS)
        with anyio.fail_after(60):
            while len(jobs := (await client.call("job.list"))["jobs"]) == 2:
                missing.clock.advance(10)
        assert jobs[0]["session"] == "t"


async def test_the_look_is_bounded(missing: Missing) -> None:
    """Old transcripts, those of directories that moved and those that are gone are passed over."""
    old = await begun(missing, "old")
    gone = await begun(missing, "gone")
    moved = await begun(missing, "moved")
    for path, session, age in ((old, "old", 8 * DAY), (moved, "moved", 3600.0)):
        missing.say(MORE, session)
        os.utime(path, (time.time() - age,) * 2)
    os.unlink(gone)
    os.rename(missing.cwd, f"{missing.cwd}-elsewhere")
    async with missing.daemon() as client:
        await client.call("status")
    async with missing.daemon() as client:
        assert len(await missing.jobs(client, 3)) == 3
