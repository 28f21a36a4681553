"""The real SDK against a scripted server over real HTTP."""

import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.model import errors
from memd.model.claude import Claude, Connections
from memd.model.endpoint import Endpoint
from memd.model.port import Reply, Usage
from tests.model.asks import ask
from tests.support.messages import (
    MessagesServer,
    messages_server,
    text,
    tools,
)
from tests.support.steps import Cut, Drip, Failure, Hang, Raw

# One process imports the SDK, the others need not.
pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]

KEY = "sk-key-of-the-test"
SCHEMA = {"type": "object", "properties": {"names": {"type": "array"}}}


@asynccontextmanager
async def asking(url: str, key: str = KEY, **members: Any) -> AsyncIterator[Claude]:
    """Hold a model at an address; its connections are closed afterwards."""
    connections = Connections()
    claude = Claude(Endpoint(url, key, **members), connections)
    await claude.warm()
    try:
        yield claude
    finally:
        await connections.aclose()


@contextmanager
def failing(kind: type[errors.ModelError]) -> Iterator[pytest.ExceptionInfo[errors.ModelError]]:
    """Expect a failure that says nothing of the key, itself or by what it follows from."""
    with pytest.raises(kind) as caught:
        yield caught
    assert KEY not in repr([caught.value, caught.value.facts, caught.value.__cause__])
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


async def one(server: MessagesServer, **members: Any) -> Reply:
    """Ask a server once."""
    async with asking(server.url) as claude:
        return await claude.ask(ask(**members))


async def test_a_right_answer_comes_with_its_usage() -> None:
    """Text, calls, blocks and tokens arrive, and the request is what the port was given."""
    heard: list[Usage] = []
    with messages_server(tools(("Read", {"path": "a.md"}), say="let me look")) as server:
        async with asking(server.url) as claude:
            reply = await claude.ask(ask(system="be brief"), heard.append)
    assert (reply.text, reply.stop, reply.calls[0].input) == (
        "let me look",
        "tool_use",
        {"path": "a.md"},
    )
    assert heard == [reply.usage]
    assert reply.usage.input > 0
    sent = server.messages[0]
    assert sent.key == KEY
    assert sent.json == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 100,
        "system": "be brief",
        "messages": [{"role": "user", "content": "hello"}],
    }


async def test_everything_that_may_be_unknown_is_left_out_one_by_one() -> None:
    """A server that knows only the oldest part of the API still answers."""
    unknown = ("thinking", "output_config", "cache_control", "metadata")
    block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    members = {
        "schema": SCHEMA,
        "system": (block,),
        "extra": {
            "thinking": {"type": "between_tools"},
            "output_config": {"effort": "low"},
            "metadata": {"user_id": "u"},
        },
    }
    with messages_server(text("{}"), without=unknown) as server:
        assert (await one(server, **members)).text == "{}"
    assert not set(unknown) & set(server.messages[-1].json)
    assert server.messages[-1].json["system"] == [{"type": "text", "text": "x"}]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Failure(401, f"bad key {KEY}"), errors.ModelUnauthorisedError),
        (Failure(403), errors.ModelUnauthorisedError),
        (Failure(500), errors.ModelUnavailableError),
        (Failure(529), errors.ModelUnavailableError),
        (Raw(b"<html>Bad Gateway</html>", 502, "text/html"), errors.ModelUnavailableError),
        (Failure(413), errors.PromptTooLongError),
        (Failure(400, "prompt is too long: 9 tokens > 8 maximum"), errors.PromptTooLongError),
        (Failure(400, "model: nothing not found"), errors.ModelRefusedError),
        (Raw(b'{"content": [{"type": "te'), errors.ModelReplyError),
        (Raw(b"[" * 100_000), errors.ModelReplyError),
        (Raw(b"{}"), errors.ModelReplyError),
        (Raw(b"x" * (5 * 1024 * 1024)), errors.ModelReplyError),
        (Raw(b"<html>Sign in</html>", 200, "text/html"), errors.ModelReplyError),
        (
            Raw(b'{"type": "error", "error": {"type": "api_error", "message": "no"}}'),
            errors.ModelUnavailableError,
        ),
        (Cut(text("hello"), at=0.5), errors.ModelUnavailableError),
        (Cut(text("hello"), at=None), errors.ModelUnavailableError),
        (Raw(b"", 307, headers={"Location": "http://127.0.0.1:1/"}), errors.ModelRefusedError),
    ],
)
async def test_each_failure_is_of_its_kind(step: Any, kind: type[errors.ModelError]) -> None:
    """Whatever a server does wrong, one failure of the room comes out and no credential."""
    with messages_server(step) as server:
        async with asking(server.url) as claude:
            with failing(kind):
                await claude.ask(ask())
    assert len(server.requests) == 1


@pytest.mark.parametrize("step", [Hang(text("late")), Drip(text("late"), size=1)])
async def test_the_time_is_kept_and_the_request_ends(step: Any) -> None:
    """A server that hangs or drips is left in time, and the request is ended on the wire."""
    with messages_server([text("hi"), step]) as server:
        async with asking(server.url) as claude:
            await claude.ask(ask())  # so that the time is not spent on the way there
            with failing(errors.ModelUnavailableError) as caught:
                await claude.ask(ask(seconds=1.0))
            await anyio.to_thread.run_sync(server.wait_for, 2)
            end_of = await anyio.to_thread.run_sync(server.messages[1].wait)
    assert end_of == "gone"
    assert caught.value.may_cost


async def test_cancelling_ends_the_request() -> None:
    """Who stops waiting closes the connection; the next ask is as good as the first."""
    with messages_server([Hang(text("never")), text("hi")]) as server:
        async with asking(server.url) as claude:
            async with anyio.create_task_group() as group:
                group.start_soon(claude.ask, ask())
                await anyio.to_thread.run_sync(server.wait_for, 1)
                group.cancel_scope.cancel()
            assert await anyio.to_thread.run_sync(server.messages[0].wait) == "gone"
            assert (await claude.ask(ask())).text == "hi"


async def test_only_the_given_headers_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers and credentials of the process's environment stay there; the endpoint's go out."""
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Stray: 1\nAuthorization: Bearer stray")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "stray")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with messages_server(text("x")) as server:
        async with asking(server.url, "", headers=(("X-Team", "blue"),)) as claude:
            await claude.ask(ask())
        async with asking(server.url, "", auth_token="token") as claude:  # noqa: S106 - no secret
            await claude.ask(ask())
    first, second = server.messages
    assert (first.key, second.key) == ("none", "token")
    assert first.headers["x-team"] == "blue"
    assert "x-stray" not in first.headers
    assert "stray" not in str(second.headers)


async def test_a_key_file_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    """A key that was exchanged in its file counts without a restart."""
    path = tmp_path / "key"
    path.touch(0o600)
    with messages_server(text("hi"), keys=["new"]) as server:
        async with asking(server.url, "", key_file=str(path)) as claude:
            assert "holds no key" in claude.problem
            with pytest.raises(errors.ModelNotConfiguredError):
                await claude.ask(ask())
            path.write_text("old")
            with pytest.raises(errors.ModelUnauthorisedError):
                await claude.ask(ask())
            assert "credentials" in claude.problem
            path.write_text("new\n")
            assert (await claude.ask(ask())).text == "hi"
            assert claude.problem == ""


async def test_nothing_of_a_request_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever level others set, the libraries keep silent about what is sent."""
    caplog.set_level(logging.DEBUG)
    with messages_server([text("x"), Failure(500, "secret words")]) as server:
        async with asking(server.url) as claude:
            await claude.ask(ask())
            with failing(errors.ModelUnavailableError):
                await claude.ask(ask())
    names = {record.name.partition(".")[0] for record in caplog.records}
    assert not names & {"anthropic", "httpx2"}


def test_memd_starts_without_the_sdk() -> None:
    """Importing the room does not import the library."""
    code = (
        "import sys, memd.model.configured; assert not {'anthropic', 'httpx2'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_sdk_a_model_is_not_configured() -> None:
    """Where the extra is not installed the failure says what to install."""
    code = (
        "import sys, anyio\n"
        "sys.modules['anthropic'] = None\n"
        "from memd.model.claude import Claude, Connections\n"
        "from memd.model.endpoint import Endpoint\n"
        "claude = Claude(Endpoint('http://localhost:1'), Connections())\n"
        "anyio.run(claude.warm)\n"
        "assert 'memdir-daemon[anthropic]' in claude.problem, claude.problem\n"
        "assert 'pip install' in str(anyio.run(claude.reach, 1))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
