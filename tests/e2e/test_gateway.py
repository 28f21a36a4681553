"""Real programs behind ``memd gateway``, as they are but for their base URL."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.hooks import CLAUDE, set_up_opencode
from tests.e2e.programs import program, run
from tests.gateway.gateways import gateway
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import ReceivedMessage, messages_server, text, tools
from tests.support.messages_steps import Step

pytestmark = pytest.mark.e2e
SHELL = {"command": "seq 1 2000", "description": "Count"}


@pytest.fixture
def home() -> Iterator[Home]:
    """Make a home in which what a shell prints is stored early."""
    with throw_away_home() as made:
        settings = Path(made.places.config)
        settings.parent.mkdir(parents=True)
        settings.write_text("[context.limits]\nbash = 4000\nBash = 4000\n")
        yield made


def results(request: ReceivedMessage) -> list[str]:
    """Return the results of tools in a request, as text."""
    rows = [m["content"] for m in request.json["messages"] if isinstance(m["content"], list)]
    found = [block for row in rows for block in row if block["type"] == "tool_result"]
    return [_text(block["content"]) for block in found]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_opencode_reads_what_was_stored(home: Home) -> None:
    """A large result reaches the model short, and its whole by OpenCode's own tool."""

    def model(request: ReceivedMessage) -> Step:
        if "tools" not in request.json:
            return text("A title")
        given = results(request)
        if not given:
            return tools(("bash", SHELL))
        if len(given) == 1:
            return tools(("read", {"filePath": given[0].splitlines()[1].partition("at: ")[2]}))
        return text("It is all there.")

    with (
        daemon_process(home),
        messages_server(model) as server,
        gateway(home, server.url, "--cwd", home.project(), "--reader", "read") as running,
    ):
        server.url = running.url
        set_up_opencode(home, server)
        place = Path(home.path) / ".config" / "opencode" / "opencode.json"
        allowed = {"permission": {"external_directory": "allow"}}
        place.write_text(json.dumps(json.loads(place.read_text()) | allowed))
        run([program("opencode"), "run", "Count for me."], home, cwd=home.project())
    shown, read = results(server.messages[-1])
    assert shown.startswith("<persisted-output>")
    assert "1999" not in shown
    assert "2000" in read
    assert [request.status for request in server.messages] == [200] * len(server.messages)


def test_claude_code_passes_untouched(home: Home) -> None:
    """What Claude Code sends is its own: memd is not even told of it."""
    replies: list[Step] = [tools(("Bash", SHELL)), text("Counted.")]
    with (
        daemon_process(home),
        messages_server(replies) as server,
        gateway(home, server.url, "--cwd", home.project()) as running,
    ):
        extra = {**CLAUDE, "ANTHROPIC_BASE_URL": running.url}
        options = ("--allowedTools", "Bash", "-p", "Count for me.")
        printed = run([program("claude"), *options], home, extra, cwd=home.project())
        with client(home) as caller:
            assert caller.call("context.list")["contexts"] == []
    assert "Counted." in printed
    assert "1999\n2000" in results(server.messages[-1])[-1]
