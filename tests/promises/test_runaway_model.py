"""A model that never comes to an end costs little, is told of, and keeps no prompt waiting."""

import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.core import limits
from memd.daemon.clock import SystemClock
from memd.testing.clock import FakeClock
from memd.testing.daemon import daemon_here, throw_away_home
from memd.testing.messages import (
    Failure,
    Hang,
    MessagesServer,
    ReceivedMessage,
    error_with_200,
    messages_server,
    structured,
    text,
    tools,
)

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]

CASE = re.compile(r"case (\d+)")
WISH = "From now on install packages with pnpm because npm breaks our workspaces"
LOOPS = tools(("Glob", {"pattern": "*.md"}), ("Read", {"file_path": "MEMORY.md"}))
# What a model's server may do for ever; with a hint to come back at once, where it gives one.
TROUBLE = (
    LOOPS,
    text("and so on and on " * 2000, stop="max_tokens"),
    Hang(text("too late")),
    Failure(429, retry_after=0.01),
    Failure(500, retry_after=0.01),
    Failure(529, retry_after=0.01),
    Failure(400, "prompt is too long: 230000 tokens > 200000 maximum"),
    error_with_200(),
)
DOLLARS = 0.6  # half of it may go into extractions
_REQUESTS = limits.PARK_AFTER * 5 * 3  # tries, turns, and what one request is repeated at most


def _never(_tries: int) -> bool:
    """Tell of a server that answers."""
    return False


class _Desk:
    """A daemon with a scripted model, and a project for each case."""

    def __init__(self, client: AsyncClient, clock: FakeClock, projects: list[str]) -> None:
        self.client = client
        self.clock = clock
        self.projects = projects

    async def call(self, method: str, number: int, **params: Any) -> Any:
        """Call a method of one project."""
        with anyio.fail_after(60):
            return await self.client.call(method, {"cwd": self.projects[number], **params})

    async def submit(self, number: int, session: str = "s") -> str:
        """Ask for an extraction of a conversation about a case; return the job."""
        said = [{"role": "user", "content": f"{WISH}. This is case {number}."}]
        return str((await self.call("extract", number, session_id=session, messages=said))["job"])

    async def breakers(self, number: int) -> list[Any]:
        """Return the open breaker of one project, if it is open."""
        reported = (await self.client.call("status", {}))["breakers"]
        return [row for row in reported if f"-p{number}/" in row["directory"]]

    async def done(self, job: str, number: int, hangs: Callable[[int], bool] = _never) -> Any:
        """Return a job once it has ended; a prompt is asked before each of its tries.

        Time goes on between its tries, and in a try in which the server ``hangs``.
        """
        query = {"session_id": "prompts", "query": "how do we deploy the parser?"}
        tries = 0
        with anyio.fail_after(60):
            while True:
                results = await self.client.call("job.get", {"job": job})
                if results["ended"] is not None:
                    return results
                if results["attempts"] > tries:
                    tries = results["attempts"]
                    assert "memories" in await self.call("prefetch", number, **query)
                if results["state"] == "queued" or hangs(tries):
                    self.clock.advance(10.0)


@asynccontextmanager
async def _desk(
    server: MessagesServer, dollars: float, count: int = len(TROUBLE)
) -> AsyncIterator[_Desk]:
    clock = FakeClock(1_772_528_400.0)
    with throw_away_home() as home:
        config = Path(home.places.config)
        config.parent.mkdir(parents=True, exist_ok=True)
        spend = f"[spend]\ndollars_per_day = {dollars}\n[dream]\nauto = false\n"
        config.write_text(f'[model]\nbase_url = "{server.url}"\n{spend}')
        config.chmod(0o600)
        async with (
            daemon_here(home, clock),
            AsyncClient(home.places.socket, name="test", environment={}) as client,
        ):
            try:
                yield _Desk(client, clock, [home.project(f"p{number}") for number in range(count)])
            finally:  # what still runs is not waited for
                await client.call("pause", {"now": True})


def _script(request: ReceivedMessage) -> Any:
    """Return a case's trouble to an extraction, and a choice to a prompt."""
    case = CASE.search(str(request.json["messages"]))
    if not request.json.get("tools") or case is None:
        return structured({"selected_memories": []})
    return TROUBLE[int(case[1])]


async def test_each_trouble_is_parked_after_three_tries() -> None:
    """Few requests, a parked job that is told, a breaker for its directory, and prompts go on."""
    with messages_server(_script) as server:
        async with _desk(server, 100) as here:
            jobs = []
            for number in range(len(TROUBLE)):
                hangs = partial(_hangs, server, number)
                jobs.append(await here.submit(number))
                ended = await here.done(jobs[-1], number, hangs)
                assert (ended["state"], ended["parked"]) == ("failed", True), TROUBLE[number]
                assert (ended["attempts"], ended["error"]["times"]) == (3, 3)
                assert ended["error"]["kind"] == "extraction_failed"
                (broken,) = await here.breakers(number)
                assert broken["until"] - broken["since"] == limits.BREAKER_SECONDS
            reported = await here.client.call("job.list", {"parked": True})
            status = await here.client.call("status", {})
    assert sorted(job["job"] for job in reported["jobs"]) == sorted(jobs)
    assert status["jobs"]["parked"] == len(TROUBLE)
    for number in range(len(TROUBLE)):
        assert 0 < _requested(server, number) <= _REQUESTS


def _requested(server: MessagesServer, number: int) -> int:
    """Return how often a case's extractions asked the server."""
    return sum(f"case {number}." in str(request.json["messages"]) for request in server.messages)


def _hangs(server: MessagesServer, number: int, tries: int) -> bool:
    return isinstance(TROUBLE[number], Hang) and _requested(server, number) >= tries


async def test_an_open_breaker_costs_no_memory() -> None:
    """The local extractor does the work at once and says why; later the model is asked again."""
    mended = False

    def script(request: ReceivedMessage) -> Any:
        return text("nothing new") if mended else _script(request)

    with messages_server(script) as server:
        async with _desk(server, 100, 1) as here:
            assert (await here.done(await here.submit(0), 0))["parked"]
            before = len(server.messages)
            meanwhile = (await here.done(await here.submit(0, "other"), 0))["result"]
            assert (meanwhile["engine"], len(meanwhile["saved"])) == ("local", 1)
            assert "left alone" in meanwhile["problem"]
            assert len(server.messages) == before
            mended = True
            here.clock.advance(limits.BREAKER_SECONDS)
            after = (await here.done(await here.submit(0, "third"), 0))["result"]
            assert (after["turns"], after["engine"]) == (1, "claude-sonnet-5-5")
            assert (await here.client.call("status", {}))["breakers"] == []


async def test_money_has_its_bound_whatever_the_model_does() -> None:
    """A model that loops in every project stays under the cap; then the local extractor works."""
    with messages_server(LOOPS) as server:
        async with _desk(server, DOLLARS, 12) as here:
            engines = []
            for number in range(12):
                ended = await here.done(await here.submit(number), number)
                engines.append("parked" if ended["parked"] else ended["result"]["engine"])
            spend = (await here.client.call("status", {}))["spend"]
    assert spend["used"]["dollars"] <= DOLLARS
    assert engines[0] == "parked"
    assert engines[-1] == "local"
    assert "spend.extract_share" in ended["result"]["problem"]


async def test_a_prompt_does_not_wait_for_a_hung_extraction() -> None:
    """While an extraction hangs, prompts are answered by the clock on the wall."""

    def script(request: ReceivedMessage) -> Any:
        return Hang(LOOPS) if request.json.get("tools") else structured({"selected_memories": []})

    with throw_away_home() as home, messages_server(script) as server:
        config = Path(home.places.config)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f'[model]\nbase_url = "{server.url}"\n')
        config.chmod(0o600)
        async with (
            daemon_here(home, SystemClock()),
            AsyncClient(home.places.socket, name="test", environment={}) as client,
        ):
            cwd = home.project()
            memory = {"name": "a", "description": "how we deploy", "type": "project", "body": "b"}
            await client.call("memory.write", {"cwd": cwd, "path": "a.md", **memory})
            said = [{"role": "user", "content": WISH}]
            params = {"cwd": cwd, "session_id": "s", "messages": said}
            job = (await client.call("extract", params))["job"]
            assert await anyio.to_thread.run_sync(server.wait_for, 1)
            times = []
            for number in range(10):
                requested = {"cwd": cwd, "session_id": f"p{number}", "query": "how do we deploy?"}
                begun = time.monotonic()
                await client.call("prefetch", {**requested, "strategy": "local"})
                times.append(time.monotonic() - begun)
            assert min(times) < 1.0
            assert (await client.call("job.get", {"job": job}))["state"] == "running"
            assert (await client.call("job.cancel", {"job": job}))["cancelled"]
