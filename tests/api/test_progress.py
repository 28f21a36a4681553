"""Lines of progress through the socket: the topic ``agent.progress`` and the list of agents."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.testing.messages import messages_server, text
from tests.api.caller import Caller

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]
CACHE: dict[str, Any] = {
    "system": "You are a coder, and this stands at the beginning.",
    "tools": [{"name": "Bash", "description": "run", "input_schema": {"type": "object"}}],
    "model": "claude-opus-5-5",
    "messages": [{"role": "user", "content": "Please mend the loader."}],
}


async def crew(caller: Caller) -> Path:
    """Register a session and a sub-agent of its own; return the sub-agent's transcript."""
    path = Path(caller.home.path) / "helper.jsonl"
    lead = await caller.call("agent.register", name="lead", session_id="s")
    more = {"session_id": "s2", "parent": "lead", "key": lead["key"]}
    await caller.call("agent.register", name="helper", transcript_path=str(path), **more)
    return path


def does(path: Path, name: str, given: dict[str, Any]) -> None:
    """Have the sub-agent call a tool."""
    block = {"type": "tool_use", "id": "t", "name": name, "input": given}
    message = {"role": "assistant", "content": [block]}
    with path.open("a") as file:
        file.write(json.dumps({"type": "assistant", "uuid": "u", "message": message}) + "\n")


async def heard(watcher: AsyncClient) -> dict[str, Any]:
    """Return what the next line of progress tells."""
    with anyio.fail_after(60):
        async for told in watcher.notifications:
            if told.method == "agent.progress":
                return dict(told.params)
    raise EOFError


async def test_subscribers_hear_what_a_sub_agent_does(caller: Caller) -> None:
    """Who subscribed has its line from the table; who lists agents has it without that."""
    path = await crew(caller)
    does(path, "Read", {"file_path": "/p/parser.py"})
    rows = (await caller.call("agent.list"))["agents"]
    lines = {row["agent"]: row["progress"] for row in rows}
    assert lines == {"lead": "", "helper": "Reading parser.py"}
    async with AsyncClient(caller.home.places.socket) as watcher:
        await watcher.call("subscribe", {"topics": ["agent.progress"], "cwd": caller.cwd})
        told = await heard(watcher)
    assert (told["address"], told["line"]) == ("lead/helper", "Reading parser.py")
    assert (told["parent"], told["engine"]) == ("lead", "local")


async def test_a_model_writes_it_over_the_sessions_own_request(caller: Caller) -> None:
    """What the session gave with its last extraction is the beginning of the request."""
    path = await crew(caller)
    does(path, "Edit", {"file_path": "/p/loader.py"})
    with messages_server([text("Fixing empty index in loader.py")]) as server:
        config = Path(caller.home.places.config)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(
            f'[model]\nbase_url = "{server.url}"\nprogress = "claude-haiku-5-5"\n'
            "[extract]\nuse_model = false\n"
        )
        about = {"session_id": "s", "messages": CACHE["messages"], "cache": CACHE}
        async with AsyncClient(caller.home.places.socket) as watcher:
            await watcher.call("subscribe", {"topics": ["agent.progress"]})
            assert (await heard(watcher))["engine"] == "local"  # nothing was given yet
            await caller.call("extract", **about)
            does(path, "Edit", {"file_path": "/p/loader.py"})
            caller.clock.advance(30)
            told = await heard(watcher)
        assert (told["line"], told["engine"]) == (
            "Fixing empty index in loader.py",
            "claude-haiku-5-5",
        )
        (request,) = server.messages
    assert request.json["model"] == "claude-haiku-5-5"
    assert (request.json["max_tokens"], request.json["tools"]) == (30, CACHE["tools"])
    assert request.json["system"] == CACHE["system"]
    assert request.json["messages"][: len(CACHE["messages"])] == CACHE["messages"]
    spent = await caller.plain("spend", by="kind")
    assert "progress" in json.dumps(spent)
