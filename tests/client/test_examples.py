"""The examples of clients/python, as a reader would run them."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import until
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import messages_server, text, tools
from tests.support.scripted_daemon import HangUp, ScriptedDaemon
from tests.support.steps import ReceivedMessage, ScriptedReply

EXAMPLES = Path(__file__).parents[2] / "clients" / "python"
BLOCKING, ASYNCHRONOUS = re.findall(
    "```python\n(.*?)```", (EXAMPLES / "README.md").read_text(), re.DOTALL
)

SDK = re.findall(
    "```python\n(.*?)```", (EXAMPLES.parents[1] / "docs" / "sdk.md").read_text(), re.DOTALL
)


@pytest.fixture(scope="module", name="home")
def _home() -> Iterator[Home]:
    with throw_away_home() as home, daemon_process(home):
        yield home


def _run(home: Home, *arguments: str, given: str = "", **environ: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**home.environ, **environ},
        cwd=home.project(),
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_blocking_example_works(home: Home) -> None:
    """It writes, finds what it wrote, and reads what is wrong with a memory that is not there."""
    written, missing = _run(home, "-c", BLOCKING)
    assert written == "created project_freeze.md"
    assert missing.startswith("not_found - there is no memory gone.md - ")


def test_the_asynchronous_example_works(home: Home) -> None:
    """It waits for a dream and hears that the job is done."""
    assert _run(home, "-c", ASYNCHRONOUS)[-2:] == ["dreamt: completed", "job.done dream"]


def test_the_chat_goes_on_from_its_notes(home: Home) -> None:
    """A full window makes the notes the first message, once, and the newest turns follow them."""
    replies = [text(str(number)) for number in range(9)]
    replies[6] = ScriptedReply(({"type": "text", "text": "6"},), usage={"input_tokens": 170_000})
    prompts = [f"We sail at {number}. " + "Mind the kestrel. " * 900 for number in range(9)]
    with messages_server(replies) as server:
        environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        lines = _run(home, str(EXAMPLES / "compacting.py"), given="\n".join(prompts), **environ)
        asked = [request.json["messages"] for request in server.messages]
    assert lines == [str(number) for number in range(9)]
    assert [len(messages) for messages in asked[:8]] == [1, 3, 5, 7, 9, 11, 13, 15]
    notes, *rest = [str(message["content"]) for message in asked[8]]
    assert "# Task specification" in notes
    assert "We sail at 0." in notes
    assert rest[-2] == "7"
    assert len(rest) < 15


@pytest.mark.full
def test_the_chat_goes_on_without_memd(home: Home) -> None:
    """A daemon that hangs up on each call costs it nothing but the memory."""
    socket = f"{home.path}/played/memd.sock"
    used = ScriptedReply(({"type": "text", "text": "1"},), usage={"input_tokens": 160_000})
    with messages_server(used) as server, ScriptedDaemon(socket, {"context.plan": HangUp()}):
        environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        example = str(EXAMPLES / "compacting.py")
        lines = _run(home, example, given="a\nb\nc", MEMD_SOCKET=socket, **environ)
        asked = [len(request.json["messages"]) for request in server.messages]
    assert (lines, asked) == (["1"] * 3, [1, 3, 5])


def test_the_chat_of_the_docs_remembers(home: Home) -> None:
    """What it is asked to remember in one turn is a memory, and its prefix only grows."""
    with messages_server(text("Aye.")) as server:
        environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        prompts = "Remember that the osprey broker listens on 9931.\nGo on.\nGo on.\n\n"
        lines = _run(home, "-c", SDK[0], given=prompts, **environ)
        first, *others = [request.json for request in server.messages]
    assert lines == ["> Aye.", "> Aye.", "> Aye.", "> "]
    for longer in others:
        assert longer.get("system") == first.get("system")
        assert longer["messages"][:1] == first["messages"]
    assert len(others[1]["messages"]) == 5
    with client(home, "test") as connection:
        params = {"cwd": home.project(), "query": "osprey broker"}
        until(lambda: connection.call("memory.search", params)["hits"], "it is a memory")


@pytest.mark.full
def test_the_agent_s_conversation_stays_small(home: Home) -> None:
    """The large file that its tool returns goes out short, and its model reads the rest."""
    large = "one\n" * 30_000 + "the last line"
    Path(home.project(), "large.txt").write_text(large)

    def read_on(request: ReceivedMessage) -> ScriptedReply:
        path = request.last_text.partition("whole at: ")[2].partition("\n")[0]
        return tools(("read_stored_result", {"path": path, "offset": 110_000}))

    script: list[Any] = [tools(("read_file", {"path": "large.txt"})), read_on, text("I read it.")]
    with messages_server(script) as server:
        environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        lines = _run(home, str(EXAMPLES / "keeping.py"), "session-1", "Read it.", **environ)
        asked = server.messages
    assert lines[-1] == "I read it."
    assert len(asked[1].last_text) < 3_000
    assert asked[2].last_text.endswith("the last line")


def test_the_agent_remembers(home: Home) -> None:
    """What the agent's model writes with its tool is a memory of the project, the assistant's."""
    write = {
        "command": "create",
        "path": "/memories/project_releases.md",
        "file_text": "---\nname: releases\ndescription: Releases are on Tuesdays\n"
        "metadata:\n  type: project\n---\nReleases are on Tuesdays.\n",
    }
    script = [tools(("memory", write)), text("I will remember that.")]
    with messages_server(script) as server:
        lines = _run(
            home,
            str(EXAMPLES / "agent.py"),
            "We release on Tuesdays.",
            ANTHROPIC_BASE_URL=server.url,
            ANTHROPIC_API_KEY="k",
        )
        assert lines == ["I will remember that."]
        assert server.messages[0].json["messages"][0]["content"] == "We release on Tuesdays."
    with client(home, "test") as connection:
        params = {"cwd": home.project(), "path": "project_releases.md"}
        assert connection.call("memory.read", params)["origin"] == "assistant"
