"""A program's conversation through ``memd gateway``, with a daemon and a server that checks."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, beta_tool

from memd.gateway.command import main
from tests.gateway.gateways import SECONDS, gateway
from tests.support.daemon import Home, daemon_process, throw_away_home
from tests.support.messages import Failure, MessagesServer, messages_server, text
from tests.support.messages_request import ReceivedMessage
from tests.support.messages_steps import Step, thinking, tools
from tests.timing import least_seconds

KEY = "sk-ant-very-secret-0123456789"
LARGE = "a line of the log\n" * 4_000
TOOLS = [
    {"name": name, "description": name, "input_schema": {"type": "object"}}
    for name in ("run", "Read")
]


class Program:
    """An agent that runs a tool in each turn and sends its whole history again."""

    def __init__(self, name: str) -> None:
        self.members: dict[str, Any] = {
            "model": "claude-opus-5-5",
            "max_tokens": 2_000,
            "thinking": {"type": "adaptive"},
            "cache_control": {"type": "ephemeral"},
            "tools": TOOLS,
        }
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": f"Look at {name}."}]

    def send(self, url: str, **headers: str) -> Mapping[str, Any]:
        """Send the conversation and take in the reply. Raises AssertionError for a refusal."""
        body = json.dumps({**self.members, "messages": self.messages})
        host, _, path = url.removeprefix("http://").partition("/")
        connection = HTTPConnection(host, timeout=60)
        try:
            connection.request("POST", f"/{path}/v1/messages", body, {"x-api-key": KEY, **headers})
            response = connection.getresponse()
            reply: dict[str, Any] = json.loads(response.read())
        finally:
            connection.close()
        assert response.status == 200, reply
        self.messages.append({"role": "assistant", "content": reply["content"]})
        return reply

    def turn(self, url: str, result: str, **headers: str) -> Mapping[str, Any]:
        """Answer the last reply's calls and send that."""
        calls = [block for block in self.messages[-1]["content"] if block["type"] == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": result} for call in calls
        ]
        self.messages.append({"role": "user", "content": results})
        return self.send(url, **headers)


def calling(request: ReceivedMessage) -> Step:
    """Think and call a tool, whatever is said."""
    del request
    return thinking("Let me see.", tools(("run", {})))


def shown(request: ReceivedMessage) -> list[str]:
    """Return the results of a request."""
    rows = [m["content"] for m in request.json["messages"] if isinstance(m["content"], list)]
    return [block["content"] for row in rows for block in row if block["type"] == "tool_result"]


def spilled(program: Program, server: MessagesServer, url: str) -> None:
    """Have turns of a program until one of its large results was stored: a machine may be busy."""
    for number in in_time():
        program.turn(url, f"{number}\n{LARGE}")
        if shown(server.messages[-1])[-1].startswith("<persisted-output>"):
            return


def in_time() -> Iterator[int]:
    """Count for as long as something that a daemon on a busy machine may miss has not come."""
    until = time.monotonic() + SECONDS
    for number in count():
        assert time.monotonic() < until
        yield number


def test_a_conversation_is_never_changed_behind_its_reader(home: Home) -> None:
    """With thinking that is bound to all before it no request is refused, whoever restarts."""
    with messages_server(calling) as server:
        program = Program("bound")
        with daemon_process(home):
            with gateway(home, server.url, "--cwd", home.project()) as running:
                program.send(running.url)
                spilled(program, server, running.url)
                before = shown(server.messages[-1])
                program.turn(running.url, "small")
            with gateway(home, server.url, "--cwd", home.project()) as running:
                program.turn(running.url, "small")
                assert shown(server.messages[-1])[: len(before)] == before
                spilled(program, server, running.url)
                before = shown(server.messages[-1])
        with gateway(home, server.url, "--cwd", home.project()) as running:
            with daemon_process(home):
                program.turn(running.url, "small")
            # The daemon is gone, and the traffic goes on with what is known.
            program.turn(running.url, LARGE)
            assert shown(server.messages[-1])[: len(before)] == before
            assert shown(server.messages[-1])[-1] == LARGE
            with daemon_process(home):
                spilled(program, server, running.url)
            assert shown(server.messages[-1])[len(before) + 1] == LARGE
        assert [request.status for request in server.messages] == [200] * len(server.messages)


def test_the_cache_is_hit_as_without_memd(home: Home) -> None:
    """What is read from the cache is all that was sent before, in each request."""
    with (
        messages_server(calling, least=0) as server,
        daemon_process(home),
        gateway(home, server.url, "--cwd", home.project()) as running,
    ):
        program = Program("cached")
        program.send(running.url)
        total = 0
        for number in range(12):
            usage = program.turn(running.url, LARGE if number % 3 == 0 else "small")["usage"]
            assert usage["cache_read_input_tokens"] >= total
            total = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]


def test_the_tool_runner_of_the_sdk_reads_what_was_stored(home: Home) -> None:
    """An agent of the SDK runs through it as it is, and its model reads the whole by its path."""
    given: list[str] = []
    turns = in_time()

    @beta_tool
    def run() -> str:
        """Run it."""
        return f"{len(given)}\n{LARGE}"

    @beta_tool(name="Read")
    def read(path: str) -> str:
        """Read a file."""
        return Path(path).read_text()

    def model(request: ReceivedMessage) -> Step:
        given[:] = shown(request)
        stored = [result for result in given if result.startswith("<persisted-output>")]
        if not stored:
            next(turns)
            return tools(("run", {}))
        if given[-1] not in stored:
            return text("Read.")
        return tools(("Read", {"path": stored[0].splitlines()[1].partition("at: ")[2]}))

    with (
        messages_server(model) as server,
        daemon_process(home),
        gateway(home, server.url, "--cwd", home.project()) as running,
        Anthropic(base_url=running.url, api_key=KEY, max_retries=0) as sdk,
    ):
        runner = sdk.beta.messages.tool_runner(
            model="claude-haiku-5-5",
            max_tokens=1_000,
            thread=False,
            tools=[run, read],
            messages=[{"role": "user", "content": "Look at the runner."}],
        )
        runner.until_done()
    short, whole = given[-2:]
    assert short.startswith("<persisted-output>")
    assert whole.endswith(LARGE)


def test_a_refusal_is_tried_once_with_the_original(home: Home) -> None:
    """A 400 on what is new is not the program's: it gets the answer to what it sent."""

    def picky(request: ReceivedMessage) -> Step:
        return Failure(400) if b"<persisted-output>" in request.body else calling(request)

    with (
        messages_server(picky) as server,
        daemon_process(home),
        gateway(home, server.url, "--cwd", home.project()) as running,
    ):
        program = Program("picky")
        program.send(running.url)
        for number in in_time():
            before = len(server.messages)
            program.turn(running.url, f"{number}\n{LARGE}")
            if len(server.messages) == before + 2:
                break
        first, second = server.messages[-2:]
        assert (first.status, second.status) == (400, 200)
        assert shown(second)[-1].endswith(LARGE)
        assert second.headers["x-api-key"] == KEY
        before = len(server.messages)
        program.turn(running.url, "small")
        assert len(server.messages) == before + 1


def test_a_refusal_of_both_is_the_program_s(home: Home) -> None:
    """Where the original is refused too, that answer is handed on, and asked for once."""
    replies: list[Step | Callable[[ReceivedMessage], Step]] = [calling]
    replies += [Failure(400, "never")] * 8
    with (
        messages_server(replies) as server,
        daemon_process(home),
        gateway(home, server.url, "--cwd", home.project()) as running,
    ):
        program = Program("never")
        program.send(running.url)
        with pytest.raises(AssertionError, match="never"):
            program.turn(running.url, LARGE)
        assert len(server.messages) in {2, 3}


def test_a_silent_daemon_delays_by_a_moment(home: Home) -> None:
    """A daemon that hangs costs a request a tenth of a second, not its result."""
    with (
        messages_server(calling) as server,
        daemon_process(home) as daemon,
        gateway(home, server.url, "--cwd", home.project()) as running,
    ):
        program = Program("hanging")
        program.send(running.url)
        program.turn(running.url, "small")
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            assert least_seconds(lambda: program.turn(running.url, LARGE), 1.5) < 1.5
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        assert shown(server.messages[-1])[-1] == LARGE
        spilled(program, server, running.url)
        assert shown(server.messages[-1])[1] == LARGE


def test_betas_are_added_to_those_of_the_program(home: Home) -> None:
    """With --manage the request has the API's context management, and the program's betas too."""
    with (
        messages_server(calling) as server,
        daemon_process(home),
        gateway(home, server.url, "--cwd", home.project(), "--manage") as running,
    ):
        program = Program("managed")
        program.send(running.url, **{"anthropic-beta": "fine-2025"})
        for _ in in_time():
            program.turn(running.url, "small", **{"anthropic-beta": "fine-2025"})
            if "context_management" in server.messages[-1].json:
                break
        betas = server.messages[-1].headers["anthropic-beta"]
        assert betas == "fine-2025,context-management-2025-06-27"


def test_keys_are_in_nothing_that_is_stored(home: Home) -> None:
    """Nothing that gateway or daemon wrote holds a key, though requests are stored in part."""
    with (
        messages_server(calling) as server,
        daemon_process(home),
        gateway(home, server.url, "--cwd", home.project()) as running,
    ):
        program = Program("keys")
        program.send(running.url)
        spilled(program, server, running.url)
    assert server.messages[-1].key == KEY
    files = [path for path in Path(home.path).rglob("*") if path.is_file()]
    assert [path.suffix for path in files].count(".txt") >= 1
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "address",
    [
        "http://api.example",
        "http://10.0.0.1",
        "http://127.0.0.1.example",
        "https://user:password@api.example",
        "https://api.example/?key=1",
        "https://api.example/#a",
        "https://",
        "ftp://127.0.0.1",
        "https://api.example:port",
        "https://[::1",
        "https://api.example/a b",
        "https://äpi.example",
    ],
)
def test_credentials_go_nowhere_in_clear(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An upstream is https or this machine, and its address holds no password."""
    assert main(["--upstream", address]) == 2
    assert "password" not in capsys.readouterr().err


def test_the_upstream_is_a_setting(home: Home) -> None:
    """The user's own settings name the upstream; a file that others may write does not count."""
    with messages_server(text("hello")) as server:
        settings = Path(home.places.config)
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[gateway]\nupstream = "{server.url}"\n')
        command = [sys.executable, "-m", "memd", "gateway"]
        process = subprocess.Popen(command, env=dict(home.environ), stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            Program("setting").send(process.stdout.readline().decode().strip())
        finally:
            process.terminate()
            process.communicate(timeout=60)
        assert len(server.messages) == 1


def test_the_help_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    """The help names each option, and what is changed; a wrong option ends with 2."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    for word in ("--port", "--upstream", "--cwd", "--reader", "--manage", "Read", "SIGTERM"):
        assert word in printed
    for option in ("--port=any", "--port=99999", "--port=-1", "--cwd=/nowhere/at/all"):
        with pytest.raises(SystemExit) as ended:
            main([option])
        assert ended.value.code == 2
    assert "--cwd /nowhere/at/all is no folder" in capsys.readouterr().err


@pytest.fixture
def home() -> Any:
    """Make a home of its own for each test."""
    with throw_away_home() as made:
        yield made
