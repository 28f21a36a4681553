"""``memctl mcp`` with the real daemon."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.client.launch import Client, connect
from memd.projects.project import slug
from tests.api.transcripts import answer, user, write
from tests.cli.home import Home
from tests.mcp.program import McpProgram, words

_PARTS = {
    "name": "Tests hit a database",
    "description": "Integration tests run against a real database",
    "type": "feedback",
    "body": "Never mock the database.",
}


def _daemon(home: Home) -> Client:
    return connect(home.places, home.environ, name="test", start=False)


@pytest.fixture(name="mcp")
def _mcp(home: Home) -> Iterator[McpProgram]:
    with McpProgram(home.environ, home.cwd) as program:
        yield program
    with _daemon(home) as client:
        client.call("shutdown")
        with pytest.raises(Exception, match="hung up"):
            list(client.notifications(60))


def _save(mcp: McpProgram, **changes: Any) -> dict[str, Any]:
    result: dict[str, Any] = mcp.tool("save", **_PARTS | changes)
    return result


def test_a_memory_lives_its_life(home: Home, mcp: McpProgram) -> None:
    """The first call starts a daemon; saved, found, read, replaced, forgotten and brought back."""
    mcp.request("initialize", clientInfo={"name": "editor"})
    saved = _save(mcp)
    path = "feedback_tests-hit-a-database.md"
    assert saved["structuredContent"] == {
        "path": path,
        "status": "created",
        "change": "c1",
        "origin": "assistant",
        "note": words(saved).partition(". ")[2],
    }
    assert "your conclusion" in words(saved)
    again = _save(mcp)
    assert (again["isError"], f"a memory {path} already" in words(again)) == (True, True)
    assert "Never mock" in words(mcp.tool("search", query="database mocks"))
    assert "Never mock the database." in words(mcp.tool("read", path=path))
    assert path in words(mcp.tool("read", path="MEMORY.md"))
    said = "never ever mock the database"
    folder = Path(home.path, ".claude", "projects", slug(home.cwd))
    write(folder / "s.jsonl", user(f"Please {said}, it hides bugs."), answer("s"))
    proven = _save(mcp, path=path, said=said)
    assert (proven["structuredContent"]["origin"], words(proven)) == ("user", f"updated {path}.")
    claimed = _save(mcp, name="other", said="a thing that nobody said")
    assert "counts as yours" in words(claimed)
    forgotten = mcp.tool("forget", path=path)
    assert mcp.tool("read", path=path)["isError"] is True
    change = forgotten["structuredContent"]["change"]
    assert words(mcp.tool("undo", change=change)) == f"Took {change} back: created {path}."
    history = mcp.tool("history", path=path, limit=2)
    assert [entry["actor"] for entry in history["structuredContent"]["changes"]] == [
        "undo",
        "client",
    ]
    assert "mcp editor" in words(history)
    assert "c99" in words(mcp.tool("undo", change="c99"))
    assert words(mcp.tool("suggestions")) == "Nothing waits."


def test_memories_are_resources_and_prompts(mcp: McpProgram) -> None:
    """The index and each memory can be read, paths complete, and the system prompt is a prompt."""
    _save(mcp)
    _save(mcp, name="Zürich", type="project")
    listed = mcp.modern("resources/list")["result"]["resources"]
    assert [each["name"] for each in listed] == [
        "index",
        "notes",
        "project_z-rich.md",
        "feedback_tests-hit-a-database.md",
    ]
    for each in listed:
        (content,) = mcp.modern("resources/read", uri=each["uri"])["result"]["contents"]
        word = "notes yet" if each["name"] == "notes" else "database"
        assert (word in content["text"], content["uri"]) == (True, each["uri"])
    _, template = mcp.request("resources/templates/list")["result"]["resourceTemplates"]
    reference = {"type": "ref/resource", "uri": template["uriTemplate"]}
    argument = {"name": "path", "value": "Z-"}
    done = mcp.request("completion/complete", ref=reference, argument=argument)["result"]
    assert done["completion"] == {"values": ["project_z-rich.md"], "total": 1, "hasMore": False}
    error = mcp.request("resources/read", uri="memory://memories/..%2f..%2fetc%2fpasswd")["error"]
    assert error["code"] == -32002
    (message,) = mcp.request("prompts/get", name="load_prompt")["result"]["messages"]
    assert "feedback_tests-hit-a-database.md" in message["content"]["text"]
    arguments = {"statement": "tabs {x}"}
    result = mcp.request("prompts/get", name="remember", arguments=arguments)["result"]
    assert "tabs {x}" in result["messages"][0]["content"]["text"]


def test_a_killed_daemon_is_found_again(home: Home, mcp: McpProgram) -> None:
    """After kill -9 in mid-session the next call works, and nothing that was saved is gone."""
    _save(mcp)
    for _ in range(3):
        with _daemon(home) as client:
            os.kill(client.call("status")["pid"], signal.SIGKILL)
            with pytest.raises(Exception, match="hung up"):
                list(client.notifications(60))
        assert "Never mock" in words(mcp.tool("search", query="database"))


def test_changes_of_others_are_told(home: Home, mcp: McpProgram) -> None:
    """Who lists resources hears that the list changed, by whomever."""
    assert mcp.request("resources/list")["result"]["resources"]
    with _daemon(home) as client:
        parts = _PARTS | {"cwd": home.cwd, "path": "a.md"}
        for number in range(200):  # until the bridge has subscribed
            client.call("memory.write", parts | {"body": f"version {number}"})
            if mcp.arrived:
                break
    assert mcp.next()["method"] == "notifications/resources/list_changed"
