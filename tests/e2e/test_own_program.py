"""Claude Code as memd's model: the real program, told by flags to do nothing but answer.

Its own model is a scripted server on loopback. ``make e2e`` installs it.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.programs import program
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import MessagesServer, messages_server, text
from tests.support.steps import ReceivedMessage, ScriptedReply

pytestmark = pytest.mark.e2e
SAID = "Remember: never deploy on a Friday."
CANARY = "hook-ran"
RULE = {
    "op": "create",
    "path": "no-friday-deploys.md",
    "type": "feedback",
    "name": "no-friday-deploys",
    "description": "never deploy on a Friday",
    "body": "Deploys never happen on a Friday.",
    "said": "never deploy on a Friday",
}


def answer(request: ReceivedMessage) -> ScriptedReply:
    """Return what the model says: a rule for the conversation, a merged pair for a dream."""
    asked = json.dumps(request.json["messages"])
    if SAID in asked:
        return text(json.dumps([RULE]))
    merged = {"op": "merge", "paths": ["port.md", "port-again.md"]}
    return text(json.dumps([merged] if "port-again.md" in asked else []))


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """Serve the model of Claude Code."""
    with messages_server(answer) as serving:
        yield serving


@pytest.fixture
def home(server: MessagesServer) -> Iterator[Home]:
    """Run a daemon whose model is Claude Code, in a home where that has hooks and instructions."""
    with throw_away_home() as made:
        _prepare(made, server.url, Path(program("claude")))
        with daemon_process(made):
            yield made


def _prepare(home: Home, url: str, program: Path) -> None:
    place = Path(home.path)
    (place / ".local/bin").mkdir(parents=True)
    (place / ".local/bin/claude").symlink_to(program)
    (place / ".claude").mkdir()
    touch = {"type": "command", "command": f"touch {place}/{CANARY}"}
    events = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "PreToolUse")
    hooks = {event: [{"hooks": [touch]}] for event in events}
    (place / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    (place / ".claude/CLAUDE.md").write_text("# PERSONAL-INSTRUCTIONS\n")
    config = Path(home.places.config)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[model]\nprovider = "command"\npreset = "claude-code"\n')
    env = Path(home.places.env_file)
    env.write_text(f"ANTHROPIC_API_KEY=sk-ant-dummy\nANTHROPIC_BASE_URL={url}\n")
    for path in (config, env):
        path.chmod(0o600)


def _clean(home: Home, server: MessagesServer) -> None:
    """See that the program did nothing but answer, and that nothing of it is left."""
    place = Path(home.path)
    assert not (place / CANARY).exists()
    assert list(place.glob(".claude/projects/**/*.jsonl")) == []
    assert not list(Path(home.places.state_dir).glob("model"))
    for request in server.messages:
        assert not request.json.get("tools")
        assert "PERSONAL-INSTRUCTIONS" not in request.body.decode()
    left = [p for p in psutil.process_iter() if f"{place}/.local/bin/claude" in _command(p)]
    assert left == []


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_it_learns_from_a_conversation(home: Home, server: MessagesServer) -> None:
    """One request, one run: the rule stands with its proof, the tokens are booked, no money is."""
    said = [
        {"role": "user", "content": SAID},
        {"role": "assistant", "content": [{"type": "text", "text": "Understood."}]},
    ]
    with client(home) as caller:
        cwd = home.project()
        params = {"cwd": cwd, "session_id": "s", "messages": said, "wait": True}
        done = caller.call("extract", params)
        assert (done["saved"], done["engine"]) == (["no-friday-deploys.md"], "claude-code")
        memory = caller.call("memory.read", {"cwd": cwd, "path": "no-friday-deploys.md"})
        assert re.search(r'\*\*Said:\*\* "Remember: never deploy on a Friday."', memory["content"])
        today = caller.call("status", {})["spend"]
        assert today["used"]["requests"] == 1
        assert sum(today["used"][name] for name in ("input", "cache_created", "cache_read")) > 0
        assert (today["used"]["dollars"], today["runs_per_day"]) == (0.0, 30)
        checks = {c["name"]: c for c in caller.call("doctor", {"cwd": cwd})["checks"]}
        assert checks["model"]["state"] == "ok"
    assert len(server.messages) == 1
    _clean(home, server)


def test_it_dreams(home: Home, server: MessagesServer) -> None:
    """A memory that says what another says is gone after one run, and comes back with undo."""
    with client(home) as caller:
        cwd = home.project()
        for name in ("port", "port-again"):
            parts = {"name": name, "description": "the staging port", "type": "project"}
            body = {"body": "Staging listens on port 8080.\n"}
            caller.call("memory.write", {"cwd": cwd, "path": f"{name}.md", **parts, **body})
        done = caller.call("dream", {"cwd": cwd, "force": True, "wait": True})
        listed = caller.call("memory.list", {"cwd": cwd})["memories"]
        assert [memory["path"] for memory in listed] == ["port.md"], done
        caller.call("memory.undo", {"cwd": cwd, "change": done["change"]})
        assert caller.call("memory.read", {"cwd": cwd, "path": "port-again.md"})["name"]
    assert len(server.messages) == 1
    _clean(home, server)
