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
from tests.client.agents import LARGE, LINE, WAYS, asynchronous, blocking, body, history, sent_by
from tests.support.daemon import Home, daemon_process, throw_away_home
from tests.support.messages import Failure, MessagesServer, ScriptedReply, messages_server, text
from tests.support.messages import tools as calling

_OFFSET = re.compile(r"\[bytes \d+ to \d+ of \d+, go on with offset (\d+)\]\n")
_PATH = re.compile(r"whole at: (.*)")
_numbers = iter(range(1_000_000))


@pytest.fixture(scope="module", name="home")
def _home() -> Iterator[Home]:
    """Run a real daemon for all tests of this file."""
    with throw_away_home() as home, daemon_process(home):
        yield home


@pytest.fixture(name="server")
def _server() -> Iterator[MessagesServer]:
    with messages_server(text("done")) as server:
        yield server


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
    learnt = "estimate" if way == "unread" else "usage"  # of a reply that is not read at once
    assert known.plan["count"]["source"] == learnt


def test_without_the_reader_tool_nothing_changes(home: Home, server: MessagesServer) -> None:
    """A request whose tools cannot read a stored result goes out byte for byte."""
    known = keeper(home)
    given = body(history(LARGE))
    for middleware in (None, known):
        sent_by("create", server.url, middleware, given)
    assert server.messages[0].body == server.messages[1].body


def test_a_count_is_that_of_what_is_sent(home: Home, server: MessagesServer) -> None:
    """The SDK's count_tokens counts the conversation as it would go out."""
    known = keeper(home)
    given = body(history(LARGE), known)
    del given["max_tokens"]
    with blocking(server.url, None) as plain, blocking(server.url, known) as kept_small:
        whole = plain.messages.count_tokens(**given).input_tokens
        assert kept_small.messages.count_tokens(**given).input_tokens < whole / 10


def test_retries_send_the_same_bytes(home: Home) -> None:
    """A request that is answered with 429 and 529 goes out three times as it was."""
    script: list[Any] = [Failure(429, retry_after=0), Failure(529, retry_after=0), text("done")]
    with messages_server(script) as server, blocking(server.url, known := keeper(home), 2) as api:
        api.messages.create(**body(history(LARGE), known))
        assert len({request.body for request in server.messages}) == 1
        assert "persisted-output" in result(server)


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
def test_a_tool_runner_sends_results_short(home: Home, *, thread: bool, stream: bool) -> None:
    """The runner's results are stored, with the whole history here and with the server's thread."""
    with messages_server(_calls(3)) as server:
        known = keeper(home)
        given = {**body([{"role": "user", "content": "Look."}]), "stream": stream}
        given["tools"] = [report, known.reader_tool()]
        with blocking(server.url, known) as api:
            runner = api.beta.messages.tool_runner(**given, **({} if thread else {"thread": False}))
            for _ in runner:
                assert not known.after_turn(runner)
        _all_short(server, known, thread=thread)


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
    last = server.messages[-1].whole["messages"]
    contents = [message["content"][0]["content"] for message in last[2::2]]
    assert [len(content) < 3_000 for content in contents] == [True] * 3
    assert [read_back(known.reader_tool(), each)[:2] for each in contents] == ["0\n", "1\n", "2\n"]


def test_a_runner_compacts_where_it_is_due(home: Home) -> None:
    """A loop near its window's end has the API compact once, and goes on behind the block."""
    used = {"usage": {"input_tokens": 170_000}}
    script = [*_calls(2)[:1], ScriptedReply((_call(1),), "tool_use", **used), text("so far")]
    with messages_server([*script, text("done")]) as server:
        with blocking(server.url, None) as api:
            known = keeper(home, model=api.beta.models.retrieve("claude-opus-5-5"))
        given = body([{"role": "user", "content": "Look."}])
        given |= {"model": "claude-opus-5-5", "tools": [report, known.reader_tool()]}
        with blocking(server.url, known) as api:
            given["betas"] = ["compact-2026-09-04"]
            runner = api.beta.messages.tool_runner(**given, thread=False)
            scheduled = [known.after_turn(runner) for _ in runner]
    assert scheduled.count(True) == 1
    compacting = [request for request in server.messages if request.json.get("compaction")]
    assert len(compacting) == 1
    assert compacting[0].status == 200
    assert "persisted-output" in str(compacting[0].json["messages"])


def _call(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "name": "report", "input": {"n": number}}


def test_a_restart_changes_no_byte(server: MessagesServer) -> None:
    """What was sent is sent again after the daemon's end and by a program that starts anew."""
    with throw_away_home() as home:
        known = keeper(home, "one")
        given = body(history(LARGE), known)
        longer = body(history(LARGE, LARGE), known)
        with daemon_process(home):
            sent_by("create", server.url, known, given)
        sent_by("create", server.url, known, given)
        with daemon_process(home):
            sent_by("create", server.url, known, longer)
            sent_by("create", server.url, keeper(home, "one"), longer)
            forked = keeper(home, "two")
            forked.load(known.dump())
            sent_by("create", server.url, forked, longer)
    sent = [str(request.json["messages"][:3]) for request in server.messages]
    assert "persisted-output" in sent[0]
    assert len(set(sent)) == 1
    assert len({result(server, request, 4) for request in range(2, 4)}) == 1


def test_what_the_server_was_told_to_clear_it_is_told_again(server: MessagesServer) -> None:
    """Without a daemon a request has the members that memd added before: the same prompt."""
    given = body(history(LINE))
    with throw_away_home() as home:
        with daemon_process(home), blocking(server.url, None) as api:
            known = keeper(home, model=api.beta.models.retrieve("claude-haiku-5-5"))
            sent_by("create", server.url, known, given)
        sent_by("create", server.url, known, given)
        sent_by("create", server.url, known, {**given, "model": "claude-opus-5-5"})
    requests = [request for request in server.messages if request.status == 200]
    edits = [request.json["context_management"]["edits"] for request in requests]
    assert [len(each) for each in edits] == [1, 1, 1]


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
    assert known.plan["status"] == "ok"


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


def test_a_conversation_can_be_compacted_by_its_program(home: Home) -> None:
    """A program with a loop of its own gets its conversation in short, the newest as it is."""
    known = keeper(home)
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    done = {"role": "assistant", "content": [thought, {"type": "text", "text": "Done."}]}
    newest = [done, {"role": "user", "content": "Thanks."}]
    messages = [*history(*[LINE * 500] * 30), *newest]
    shorter = known.compacted(messages, strategy="local")
    assert shorter[-1] is newest[-1]
    assert shorter[-2] == {"role": "assistant", "content": done["content"][1:]}
    assert len(str(shorter)) < len(str(messages)) / 2
    assert known.compacted(messages, skip=["notes", "api", "model", "local"]) == messages
