"""A prompt has its answer whatever a model's server does: the whole over real HTTP."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.recall.circuit_breaker import FAILURES, LONGEST_PAUSE_SECONDS
from memd.testing.clock import FakeClock
from memd.testing.daemon import Home, daemon_here, throw_away_home
from memd.testing.messages import (
    Cut,
    Drip,
    Failure,
    Hang,
    MessagesServer,
    Raw,
    ReceivedMessage,
    error_with_200,
    html,
    messages_server,
    refusal,
    structured,
    text,
)

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]

QUERY = "how do we deploy the parser?"
CASE = re.compile(r"case (\d+)")
CHOSEN = {"selected_memories": ["b.md", "invented.md", "b.md"]}
# Whatever of these a server does, the local ranker answers.
TROUBLE = (
    structured({"selected": ["b.md"]}),
    text('{"selected_memories": ["b.'),
    text("You may want to read b.md"),
    text('{"selected_memories": ["b.md"', stop="max_tokens"),
    refusal("bio"),
    Raw(b'{"content": ['),
    Raw(b""),
    Raw(b"[" * 200_000),
    html(502),
    html(200),
    error_with_200(),
    Failure(400, "no"),
    Failure(401),
    Failure(403),
    Failure(404, "model: claude-sonnet-5-5 not found"),
    Failure(413),
    Failure(429, retry_after=30),
    Failure(500),
    Failure(529),
    Cut(structured(CHOSEN)),
    Cut(structured(CHOSEN), at=None),
    Hang(structured(CHOSEN)),
    Drip(structured(CHOSEN), size=1),
)


@pytest.fixture
def home() -> Iterator[Home]:
    """Make a throw-away HOME."""
    with throw_away_home() as made:
        yield made


def configure(home: Home, server: MessagesServer) -> None:
    """Let the daemon ask a server, for half a second at most."""
    path = Path(home.places.config)
    path.parent.mkdir(parents=True, exist_ok=True)
    options = "[recall]\nmodel_seconds = 0.5\n[spend]\ndollars_per_day = 100\n"
    path.write_text(f'[model]\nbase_url = "{server.url}"\n{options}')
    path.chmod(0o600)


async def remember(client: AsyncClient, cwd: str) -> None:
    """Write two memories; the local ranker prefers the first for the query."""
    for name, words in (("a", "how we deploy the parser"), ("b", "birthdays")):
        memory = {"name": name, "description": words, "type": "project", "body": words}
        await client.call("memory.write", {"cwd": cwd, "path": f"{name}.md", **memory})


async def ask(client: AsyncClient, cwd: str, session: str, query: str = QUERY) -> Any:
    """Return who answered a prompt of a session, the memories' names, and the bytes so far."""
    params = {"cwd": cwd, "session_id": session, "query": query}
    with anyio.fail_after(60):
        results = await client.call("prefetch", params)
    return results["strategy"], [m["name"] for m in results["memories"]], results["session_bytes"]


async def chosen(client: AsyncClient, clock: FakeClock, cwd: str, name: str) -> Any:
    """Return the first answer that is the model's, in a session of its own.

    Until the SDK is loaded, and on a busy machine, the local ranker answers.
    """
    with anyio.fail_after(60):
        for number in count():
            clock.advance(LONGEST_PAUSE_SECONDS)
            results = await ask(client, cwd, f"{name} {number}")
            if results[0] == "model":
                return results, f"{name} {number}"
    raise AssertionError


@asynccontextmanager
async def desk(
    home: Home, server: MessagesServer
) -> AsyncIterator[tuple[AsyncClient, FakeClock, str]]:
    """Open a daemon that asks a server, with its clock and a project of two memories."""
    configure(home, server)
    clock = FakeClock()
    async with (
        daemon_here(home, clock),
        AsyncClient(home.places.socket, name="test") as client,
    ):
        cwd = home.project()
        await remember(client, cwd)
        yield client, clock, cwd


def script(request: ReceivedMessage) -> Any:
    """Return the trouble of the case that a prompt names, else a right answer."""
    case = CASE.search(request.last_text)
    return TROUBLE[int(case[1])] if case else structured(CHOSEN)


async def test_every_server_leads_to_an_answer(home: Home) -> None:
    """The model's choice counts when it comes; each trouble costs only the choice."""
    with messages_server(script) as server:
        async with desk(home, server) as (client, clock, cwd):
            assert (await chosen(client, clock, cwd, "first"))[0][1] == ["b"]
            for number, step in enumerate(TROUBLE):
                clock.advance(
                    LONGEST_PAUSE_SECONDS
                )  # a model that failed is left alone for a while
                results = await ask(client, cwd, f"s{number}", f"{QUERY} case {number}")
                assert results[:2] == ("local", ["a"]), step
            assert (await chosen(client, clock, cwd, "last"))[0][1] == ["b"]
            status = await client.call("status", {})
    assert status["spend"]["used"]["requests"] > len(TROUBLE)


async def test_a_model_that_hangs_is_soon_left_alone(home: Home) -> None:
    """After three prompts that waited for nothing none waits; the model is asked again later."""
    mended = False

    def answer(_: ReceivedMessage) -> Any:
        return structured(CHOSEN) if mended else Hang(structured(CHOSEN))

    with messages_server(answer) as server:
        async with desk(home, server) as (client, clock, cwd):
            for number in range(FAILURES + 5):
                assert (await ask(client, cwd, f"s{number}"))[:2] == ("local", ["a"])
            assert len(server.messages) <= FAILURES
            params = {"cwd": cwd, "session_id": "n", "query": QUERY}
            reported = await client.call("prefetch", params)
            assert "for a while" in reported["note"]
            mended = True
            assert (await chosen(client, clock, cwd, "last"))[0][1] == ["b"]


async def test_only_what_was_sent_is_marked(home: Home) -> None:
    """A memory that the model chose does not come again; another session still gets it."""
    with messages_server(script, without=["output_config", "thinking"]) as server:
        async with desk(home, server) as (client, clock, cwd):
            (_, names, sent), session = await chosen(client, clock, cwd, "s")
            assert names == ["b"]
            _, again, after = await ask(client, cwd, session)
            assert "b" not in again
            assert after - sent <= len("how we deploy the parser") * len(again)
            assert (await chosen(client, clock, cwd, "other"))[0][1] == ["b"]
    assert "thinking" not in server.messages[-1].json
