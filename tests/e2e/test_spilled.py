"""The real Claude Code and large results: what its hook has stored is read back whole."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.claude import Turn, conversation, stop
from tests.e2e.programs import memctl
from tests.support.daemon import Home, daemon_process, throw_away_home
from tests.support.messages import MessagesServer, messages_server, text, tools
from tests.support.steps import ReceivedMessage, ScriptedReply

pytestmark = pytest.mark.e2e
LINES = [f"kestrel line {number} of the log that was searched" for number in range(300)]
SEARCH = {"pattern": "kestrel", "output_mode": "content", "head_limit": 400}
SETTINGS = "[context]\nhook_spill = true\n[context.limits]\nGrep = 8000\n"  # below its own 20,000


@pytest.fixture
def home() -> Iterator[Home]:
    """Make a home with memd's hooks and a project with a long log."""
    with throw_away_home() as made:
        config = Path(made.places.config)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(SETTINGS)
        config.chmod(0o600)
        memctl(made, "--no-start", "setup", "claude-code")
        Path(made.project(), "kestrel.log").write_text("\n".join(LINES))
        yield made
        stop(made)


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """Serve a model that searches, reads the file that it is given, and answers."""

    def working(request: ReceivedMessage) -> ScriptedReply:
        given = results(request)
        path = given[-1].partition("whole at: ")[2].partition("\n")[0] if given else ""
        if not given:
            return tools(("Grep", SEARCH))
        return tools(("Read", {"file_path": path})) if path else text("That is all.")

    with messages_server(working) as serving:
        yield serving


def results(request: ReceivedMessage) -> list[str]:
    """Return the results of tools in a request."""
    blocks: list[Any] = [
        block
        for message in request.json["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    ]
    return [str(block["content"]) for block in blocks if block["type"] == "tool_result"]


def searched(home: Home, server: MessagesServer, *options: str) -> Turn:
    """Return a turn in which the model searches; Claude Code has that tool where it is allowed."""
    with conversation(home, server, home.project(), *options, "--allowedTools", "Grep") as talk:
        return talk.say("Please search the log.")


def test_a_large_result_is_stored_and_read_back(home: Home, server: MessagesServer) -> None:
    """The model sees the beginning and the path, and reads every line without being asked."""
    with daemon_process(home):
        turn = searched(home, server)
    assert turn.events[-1]["subtype"] == "success"
    shown, read = results(turn.requests[-1])
    assert shown.startswith("<persisted-output>\n")
    assert len(shown) < 3_000
    assert all(line in read for line in LINES)
    assert turn.hooks["PostToolUse"] < 1.0


def test_without_a_daemon_results_stay(home: Home, server: MessagesServer) -> None:
    """Where nobody answers the hook, the model has the whole result, as without memd."""
    with daemon_process(home) as process:
        process.kill()
        process.wait()
        # Without its server of MCP, which starts a daemon.
        turn = searched(home, server, "--strict-mcp-config")
    (whole,) = results(turn.requests[-1])
    assert all(line in whole for line in LINES)
