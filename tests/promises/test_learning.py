"""Learning from conversations, from the hook's call to the memory, with a model that is scripted.

A real daemon, a real SDK and a server that counts tokens and caches as the API documents it.
"""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.testing.messages import ReceivedMessage, text, tools
from tests.promises.learning import MODEL, RULE, WISH, desk, learns, memory, nothing, turn
from tests.promises.transcripts import rollout

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]
OVERRIDE = "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"


async def test_a_turn_is_learnt_and_told() -> None:
    """Accepted, then memory, index line, provenance and notification; two requests for it all."""

    def script(request: ReceivedMessage) -> Any:
        if turn(request) == 1:
            return tools(("Read", {"file_path": "old.md"}), ("Glob", {"pattern": "*.md"}))
        content = memory("pnpm", RULE, "feedback", quote=WISH)
        written = {"file_path": f"{folder}/pnpm.md", "content": content}
        edited = {
            "file_path": f"{folder}/old.md", "old_string": "Old facts.",
            "new_string": "Newer facts.",
        }  # fmt: skip
        return tools(("Write", written), ("Edit", edited))

    async with desk(script) as here:
        folder = here.memory
        old = {"name": "old", "description": "facts", "type": "project", "body": "Old facts."}
        await here.call("memory.write", path="old.md", **old)
        said = here.conversation("s1")
        said.user("Which package manager is used here?")
        said.tool("Bash", {"command": "ls"}, "package.json\nREADME.md\n")
        mine = said.user(WISH)
        said.assistant("I will.")
        async with AsyncClient(here.home.places.socket, name="watcher") as watcher:
            await watcher.call("subscribe", {"topics": ["memory.saved"], "cwd": here.cwd})
            params = {"session_id": "s1", "transcript_path": said.path}
            accepted = await here.call("extract", **params)
            with anyio.fail_after(60):
                reported = (await anext(aiter(watcher.notifications))).params
        why = await here.call("memory.why", path="pnpm.md")
        job = await here.client.call("job.get", {"job": accepted["job"]})
        index = (folder / "MEMORY.md").read_text(encoding="utf-8")
    assert accepted["status"] == "accepted"
    assert (reported["session"], reported["saved"], reported["updated"]) == (
        "s1",
        ["pnpm.md"],
        ["old.md"],
    )
    assert "(pnpm.md)" in index
    used = reported["usage"]
    assert used["input"] + used["cache_read"] + used["cache_created"] > 1000
    assert (used["output"] > 0, reported["hit_rate"] > 0) == (True, True)
    first = why["first"]
    assert (first["session"], first["message"], first["model"]) == ("s1", mine, MODEL)
    assert (first["actor"], first["client"]) == ("extract", "claude-code")
    assert first["transcript"] == said.path
    assert (job["state"], job["result"]["turns"]) == ("completed", 2)
    assert len(here.server.messages) == 2
    results = here.server.messages[1].json["messages"][-1]["content"]
    assert [block["type"] for block in results] == ["tool_result", "tool_result"]


async def test_who_wrote_memory_itself_is_not_forked() -> None:
    """However the assistant wrote memory: the stretch is done, and no request reaches a server."""
    async with desk(nothing) as here:
        here.memory.mkdir(parents=True)
        link = Path(here.home.path) / "notes"
        link.symlink_to(here.memory)
        renamed = Path(here.home.path) / "elsewhere"
        renamed.mkdir()
        path = f"{here.memory}/x.md"
        both = {"old_string": "a", "new_string": "b"}
        ways: list[tuple[str, dict[str, Any], str]] = [
            ("Write", {"file_path": path, "content": "y"}, ""),
            ("Edit", {"file_path": path, **both}, ""),
            ("MultiEdit", {"file_path": path, "edits": [both]}, ""),
            ("Write", {"file_path": f"{link}/x.md", "content": "y"}, ""),
            ("memory", {"command": "create", "path": "/memories/x.md", "file_text": "y"}, ""),
            ("mcp__memd__save", {"name": "x", "body": "y"}, ""),
            ("mcp__plugin_memd_memd__forget", {"path": "x.md"}, ""),
            ("Write", {"file_path": f"{renamed}/x.md", "content": "y"}, str(renamed)),
            ("memory", {"command": "delete", "path": "/memories/x.md"}, str(renamed)),
        ]
        for number, (tool, given, directory) in enumerate(ways):
            said = here.conversation(f"s{number}")
            said.user(WISH)
            said.tool(tool, given, "done")
            said.assistant("I saved it.")
            environment = {OVERRIDE: directory} if directory else {}
            socket = here.home.places.socket
            async with AsyncClient(socket, name="t", environment=environment) as client:
                params = {"session_id": said.session, "transcript_path": said.path, "wait": True}
                with anyio.fail_after(60):
                    done = await client.call("extract", {"cwd": here.cwd, **params})
            assert (done["status"], done["reason"]) == ("skipped", "already_written"), tool
        assert here.server.messages == []
        again = here.conversation("again")
        again.tool("Write", {"file_path": path, "content": "y"}, "done")
        again.user(WISH)
        assert (await here.extract(again))["reason"] == "already_written"
        again.user(WISH)  # the next turn of the same conversation is looked at
        assert (await here.extract(again))["engine"] == MODEL
        assert len(here.server.messages) == 1


async def test_the_gates_hold_before_any_request() -> None:
    """Every N-th turn, remote clients and sub-agents: what is not to be looked at costs nothing."""
    async with desk(nothing, "[extract]\nevery_turns = 2\n") as here:
        said = here.conversation("s1")
        said.user("First turn.")
        assert (await here.extract(said))["reason"] == "every_turns"
        agent = here.conversation("agent")
        agent.user("Remember the planted words.", isSidechain=True)
        agent.assistant("Planted words noted.", isSidechain=True)
        assert (await here.extract(agent))["reason"] == "nothing_new"
        there = f"{here.home.path}/mounted"  # without a place for it memory is off altogether
        remote = {"CLAUDE_CODE_REMOTE": "1", "CLAUDE_CODE_REMOTE_MEMORY_DIR": there}
        async with AsyncClient(here.home.places.socket, environment=remote) as client:
            params = {"cwd": here.cwd, "session_id": "s1", "transcript_path": said.path}
            assert (await client.call("extract", params))["reason"] == "remote"
        assert here.server.messages == []
        said.user("Planted words of a helper.", isSidechain=True)
        said.user("Second turn.")
        assert (await here.extract(said))["status"] == "completed"
        (request,) = here.server.messages
    assert b"First turn" in request.body
    assert b"Second turn" in request.body
    assert b"Planted" not in request.body


async def test_codex_is_learnt_from_as_well() -> None:
    """A rollout file is a transcript like any other."""
    folder: list[Path] = []
    async with desk(learns(folder)) as here:
        folder.append(here.memory)
        path = Path(here.home.path) / ".codex" / "sessions" / "rollout-1.jsonl"
        rollout(path, here.cwd, ("user", WISH), ("assistant", "Understood."))
        params = {"session_id": "c1", "transcript_path": str(path), "wait": True}
        done = await here.call("extract", **params)
        why = await here.call("memory.why", path="pnpm.md")
        agents = rollout(path.with_name("rollout-2.jsonl"), here.cwd, ("user", WISH))
        sub = json.dumps({"id": "s", "cwd": here.cwd, "source": {"subagent": "review"}})
        lines = Path(agents).read_text(encoding="utf-8").splitlines(keepends=True)
        head = f'{{"type": "session_meta", "payload": {sub}}}\n'
        Path(agents).write_text(head + "".join(lines[1:]), encoding="utf-8")
        params = {"session_id": "c2", "transcript_path": agents, "wait": True}
        assert (await here.call("extract", **params))["reason"] == "nothing_new"
    assert done["saved"] == ["pnpm.md"]
    assert (why["first"]["session"], why["first"]["origin"]) == ("c1", "user")
    assert why["first"]["message"]


async def test_a_server_that_knows_no_thinking_is_asked_without() -> None:
    """Little thought is asked for; a server that refuses to hear of it still learns."""
    async with desk(nothing) as here:
        said = here.conversation("s1")
        said.user(WISH)
        await here.extract(said)
        (request,) = here.server.messages
    assert request.json["thinking"] == {"type": "between_tools"}
    assert request.json["output_config"] == {"effort": "low"}
    async with desk(text("nothing new"), without=["thinking", "output_config"]) as here:
        said = here.conversation("s1")
        said.user(WISH)
        assert (await here.extract(said))["status"] == "completed"
        last = here.server.messages[-1].json
    assert "thinking" not in last
    assert "output_config" not in last
