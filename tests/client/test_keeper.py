"""The middleware of the SDK with a real daemon, as programs use it."""

import os
import re
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import ToolError

from memd.client.context import Keeper
from tests.client.agents import LARGE, LINE, WAYS, asynchronous, body, history, sent_by
from tests.support.daemon import Home, daemon_process, throw_away_home
from tests.support.messages import MessagesServer, messages_server, text
from tests.support.messages import tools as calling
from tests.support.steps import ScriptedReply

_OFFSET = re.compile(r"\[bytes \d+ to \d+ of \d+, go on with offset (\d+)\]\n")
_PATH = re.compile(r"whole at: (.*)")
_numbers = iter(range(1_000_000))


@pytest.fixture(scope="module", name="home")
def _home() -> Iterator[Home]:
    """Run a real daemon for all tests of this file."""
    with throw_away_home() as home, daemon_process(home):
        yield home


def keeper(home: Home, session: str = "", **given: Any) -> Keeper:
    """Return a middleware of the home's daemon, for a session of its own."""
    name = session or f"s{next(_numbers)}"
    # A loaded machine is not what these tests are about.
    return Keeper(home.project(), name, socket=home.places.socket, seconds=10, **given)


def result(server: MessagesServer, request: int = -1, message: int = 2) -> str:
    """Return what went out in the place of a conversation's result."""
    content = server.messages[request].json["messages"][message]["content"]
    return str(content[0]["content"])


def read_back(reading: Any, shown: str) -> str:
    """Return a stored result as the model reads it, part by part."""
    path, parts, offset = _PATH.findall(shown)[0], [], "0"
    while offset:
        part = reading.call({"path": path, "offset": int(offset)})
        match = _OFFSET.match(part)
        parts.append(part.partition("\n")[2])
        offset = match[1] if match else ""
    return "".join(parts)


@pytest.mark.parametrize("way", WAYS)
def test_a_large_result_is_sent_short_and_read_whole(
    home: Home, server: MessagesServer, way: str
) -> None:
    """Each way of sending has the large result's beginning in its place, the model the whole."""
    known = keeper(home)
    large = "好 " + LARGE
    assert sent_by(way, server.url, known, body(history(large), known)) == "done"
    assert len(result(server)) < 3_000
    assert read_back(known.reader_tool(), result(server)) == large
    assert (known.plan["level"], known.plan["count"]["source"]) == ("ok", "estimate")
    assert sent_by(way, server.url, known, body(history(large, LINE), known)) == "done"
    assert server.messages[0].json["messages"] == server.messages[1].json["messages"][:3]
    assert result(server, message=4) == LINE
    assert known.plan["count"]["source"] == "usage"


@beta_tool
def report(n: int) -> str:
    """Report."""
    return f"{n}\n{LARGE}"


@beta_async_tool(name="report")
async def report_async(n: int) -> str:
    """Report."""
    return f"{n}\n{LARGE}"


def _calls(count: int) -> list[ScriptedReply]:
    """Return replies that call the tool one time after another, and then end."""
    return [*(calling(("report", {"n": n})) for n in range(count)), text("done")]


RUNNERS = [(thread, stream) for thread in (False, True) for stream in (False, True)]


@pytest.mark.parametrize(("thread", "stream"), RUNNERS)
def test_an_async_tool_runner_sends_results_short(
    home: Home, *, thread: bool, stream: bool
) -> None:
    """The async runner's results are stored, and its reader tool reads them."""

    async def run(url: str) -> None:
        given = {**body([{"role": "user", "content": "Look."}]), "stream": stream}
        given["tools"] = [report_async, known.async_reader_tool()]
        async with asynchronous(url, known) as api:
            runner = api.beta.messages.tool_runner(**given, **({} if thread else {"thread": False}))
            async for _ in runner:
                assert not known.after_turn(runner)

    with messages_server(_calls(3)) as server:
        known = keeper(home)
        anyio.run(run, server.url)
        _all_short(server, known, thread=thread)
        path = next(iter(known.dump()["decisions"]))["path"]
        assert "0\n" in anyio.run(known.async_reader_tool().call, {"path": path})


def _all_short(server: MessagesServer, known: Keeper, *, thread: bool) -> None:
    assert len(server.messages) == 4
    assert bool(server.messages[0].json.get("thread")) is thread
    newest = [request.json["messages"][-1] for request in server.messages[1:]]
    contents = [message["content"][0]["content"] for message in newest]
    assert [len(content) < 3_000 for content in contents] == [True] * 3
    assert [read_back(known.reader_tool(), each)[:2] for each in contents] == ["0\n", "1\n", "2\n"]


def test_a_kill_in_the_middle_costs_nothing(server: MessagesServer) -> None:
    """Requests go out while the daemon is killed, and what it had decided stays decided."""
    with throw_away_home() as home:
        known = keeper(home)
        with daemon_process(home) as process:
            sent_by("create", server.url, known, body(history(LARGE), known))
            process.kill()
            process.wait()
            sent_by("stream", server.url, known, body(history(LARGE, LARGE), known))
        with daemon_process(home):
            sent_by("create", server.url, known, body(history(LARGE, LARGE, LARGE), known))
        first, second, third = (result(server, 2, message) for message in (2, 4, 6))
    assert "persisted-output" in first
    assert second == LARGE
    assert "persisted-output" in third


def test_what_fits_into_no_frame_is_stored_too(home: Home, server: MessagesServer) -> None:
    """A result of 5 MiB goes to memd as a file, beside a picture whose bytes memd never sees."""
    known = keeper(home)
    messages = history(huge := LINE * 200_000)
    source = {"type": "base64", "media_type": "image/png", "data": "iVBO" * 1_500_000}
    messages[0]["content"] = [{"type": "image", "source": source}, {"type": "text", "text": "?"}]
    sent_by("create", server.url, known, body(messages, known))
    assert read_back(known.reader_tool(), result(server)) == huge
    assert server.messages[0].json["messages"][0] == messages[0]
    assert known.plan["problems"] == []


def test_the_reader_reads_nothing_but_stored_results(home: Home, server: MessagesServer) -> None:
    """Other paths, and a result's path once it is a link or has several names, are errors."""
    known = keeper(home)
    sent_by("create", server.url, known, body(history(LARGE), known))
    reading = known.reader_tool()
    path = _PATH.findall(result(server))[0]
    secret = os.path.join(home.path, "secret")
    with open(secret, "w") as file:
        file.write("the key")
    for other in (secret, "", path + "x", f"{os.path.dirname(path)}/../../secret"):
        with pytest.raises(ToolError):
            reading.call({"path": other})
    os.rename(path, path + ".old")
    for make in (os.symlink, os.link):
        make(secret, path)
        with pytest.raises(ToolError):
            reading.call({"path": path})
        os.unlink(path)
    folder = os.path.dirname(path)
    os.rename(path + ".old", path)
    os.rename(folder, folder + "2")
    os.symlink(folder + "2", folder)
    with pytest.raises(ToolError):
        reading.call({"path": path})


def test_many_requests_at_once_go_out_as_they_should(home: Home, server: MessagesServer) -> None:
    """Requests of one program at once are each its own, whatever they share."""
    known = keeper(home)

    async def send() -> None:
        async with asynchronous(server.url, known) as api, anyio.create_task_group() as group:
            for number in range(20):
                given = body(history(f"{number}\n{LARGE}"), known)
                group.start_soon(_create, api, given)

    anyio.run(send)
    numbers = [re.findall(r"^\d+$", result(server, n), re.MULTILINE) for n in range(20)]
    assert sorted(int(number) for (number,) in numbers) == [*range(20)]


async def _create(api: Any, given: dict[str, Any]) -> None:
    await api.messages.create(**given)
