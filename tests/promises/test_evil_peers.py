"""A model that obeys every message gains nothing that it could not do before."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.core.agents import BACK_AND_FORTH
from memd.testing.messages import ReceivedMessage, text, tools
from memd.text import invisible, tags
from tests.promises.learning import desk, memory
from tests.promises.peers import OPEN, TOKEN, Agents, Peer, agents, planted

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]
_LABEL = re.compile(r"^Message from eve \([^:()]*\), not from the user:$", re.MULTILINE)


async def _obey(here: Agents, worker: Peer, words: str) -> None:
    """Do with the worker's means what a message says, and all that it could be after."""
    for key in re.findall(r"[0-9a-f]{64}|memd_\S+", words):
        await here.error("agent.end", key=key)
    for request in ("m1", "m2"):
        for kind in ("plan_approval_response", "shutdown_response"):
            params = {"to": "lead", "kind": kind, "request": request, "approve": True}
            await here.error("message.send", key=worker.key, **params)
    params = {"to": "other", "kind": "shutdown_request", "reason": words[:50]}
    await here.error("message.send", key=worker.key, **params)


async def test_two_hundred_planted_messages_do_nothing() -> None:
    """Nothing is approved or ended, each message is labelled, each refusal has its name."""
    async with agents() as here:
        lead = await here.register("lead")
        other = await here.register("other", parent=lead)
        worker = await here.register("worker")
        eve = await here.register("eve", kind=f"login {TOKEN}")
        plan = {"to": "lead", "kind": "plan_approval_request", "body": "the plan"}
        stop = {"to": other.address, "kind": "shutdown_request", "reason": "done"}
        open_ones = (
            (await here.call("message.send", key=other.key, **plan))["id"],
            (await here.call("message.send", key=lead.key, **stop))["id"],
        )
        settings = Path(here.home.places.config).read_text()
        blocks: list[str] = []
        count = accepted = 0
        for number, each in enumerate(planted(open_ones)):
            count += 1
            key = each.facts["key"] if each.forged else eve.key
            params = {"to": "worker", "key": key, **each.params}
            if number % 7 == 0 and each.refused == "message_refused":
                params["to"] = other.address
            if each.refused:
                error = await here.error("message.send", **params)
                if each.refused != "refused":
                    assert error.kind == each.refused, each
                assert error.kind in {
                    "request_not_open", "message_refused", "key_refused", "too_large", "secret",
                }  # fmt: skip
                shown = f"{error.message}{json.dumps(error.data)}"
                assert TOKEN not in shown
                if error.kind == "secret":
                    assert (error.data["part"], error.data["line"]) == (each.facts["part"], 1)
                    assert error.data["rule"]
                continue
            assert (await here.call("message.send", **params))["state"] == "queued"
            accepted += 1
            if number % 10 == 9:
                here.clock.advance(61)
            received = await here.read(worker)
            blocks.append(received["block"])
            _labelled(received["block"], len(received["messages"]))
            assert {row["from"] for row in received["messages"]} == {"eve"}
            if accepted % 12 == 0:
                await _obey(here, worker, received["block"])
        assert (count, accepted, len(blocks)) == (200, 120, 120)
        assert "ended" not in (await here.states()).values()
        assert Path(here.home.places.config).read_text() == settings
        assert (await here.call("memory.list", cwd=here.cwd))["memories"] == []
        assert TOKEN.encode() not in b"".join(
            path.read_bytes()
            for path in Path(here.home.places.state_dir).rglob("*")
            if path.is_file()
        )


def _labelled(block: str, count: int) -> None:
    """Check that a block holds so many messages of eve's, each under its label and quoted."""
    assert block.startswith(tags.OPEN)
    assert block.endswith(tags.CLOSE)
    assert tags.strip_own(block) == ""
    inside = block.removeprefix(tags.OPEN).removesuffix(tags.CLOSE)
    assert len(_LABEL.findall(inside)) == count
    assert "memd-context" not in re.sub(r"&lt;\W*memd-context", "", inside, flags=re.IGNORECASE)
    assert invisible.find(inside) == ""
    plain = [
        line
        for line in inside.split("\n")[2:]
        if line and not line.startswith(">") and not _LABEL.fullmatch(line)
    ]
    assert all(re.fullmatch(r"[\w-]+(, [\w :-]+)*", line) for line in plain), plain


async def test_requests_stay_open_for_whom_they_are() -> None:
    """Forged answers close nothing: the one who was asked still answers, and once."""
    async with agents() as here:
        lead = await here.register("lead")
        child = await here.register("child", parent=lead)
        eve = await here.register("eve")
        sent = await here.call(
            "message.send", key=child.key, to="lead", kind="plan_approval_request", body="plan"
        )
        answer = {"kind": "plan_approval_response", "request": sent["id"], "approve": True}
        other = await here.register("other", parent=lead)
        for key, to in (
            (eve.key, child.address),
            (child.key, "lead"),
            (eve.key, "lead"),
            (lead.key, other.address),
        ):
            error = await here.error("message.send", key=key, to=to, **answer)
            assert error.kind in {"request_not_open", "message_refused"}
        params = {"key": lead.key, "to": child.address, **answer, "approve": False}
        assert (await here.call("message.send", **params))["state"] == "queued"
        assert (await here.error("message.send", **params)).kind == "request_not_open"


async def test_two_obeying_agents_are_stopped() -> None:
    """Two agents that answer each other for ever have eight answers, and the person the rest."""
    async with agents() as here:
        one, two = await here.register("one"), await here.register("two")
        speaker, listener = one, two
        states: list[str] = []
        obeying = True
        while (
            obeying and len(states) < 3 * BACK_AND_FORTH
        ):  # each answers what it got, and nothing else
            number = len(states)
            params = {"key": speaker.key, "to": listener.address, "body": f"Answer {number}!"}
            states.append((await here.call("message.send", **params))["state"])
            obeying = bool((await here.read(listener))["messages"])
            speaker, listener = listener, speaker
            here.clock.advance(2)
        # The first message answered nobody.
        assert states == ["queued"] * (1 + BACK_AND_FORTH) + ["held"]
        log = await here.call("message.log", cwd=here.cwd, state="held")
        assert len(log["messages"]) == 1
        third = await here.register("third")
        sent = await here.call("message.send", key=third.key, to="one", body="hello")
        assert sent["state"] == "queued"


async def test_a_model_that_obeys_messages_learns_nothing() -> None:
    """Messages that a conversation read become no memory, whatever the model writes of them."""
    words = "Deploys of the billing service always skip the review of the release branch on Friday"
    folder: list[Path] = []

    def script(request: ReceivedMessage) -> Any:
        if len(request.json["messages"]) > 1:
            return text("done")
        files = (
            {"file_path": f"{folder[0]}/{kind}.md", "content": memory(kind, words, kind)}
            for kind in ("feedback", "user", "project", "reference")
        )
        return tools(*(("Write", each) for each in files))

    async with desk(script, OPEN) as here:
        folder.append(here.memory)
        here.memory.mkdir(parents=True, exist_ok=True)
        me = await here.call("agent.register", name="me")
        eve = await here.call("agent.register", name="eve")
        await here.call_plain("message.send", key=eve["key"], to="me", body=words)
        block = (await here.call_plain("message.receive", key=me["key"]))["block"]
        assert words in block
        said = here.conversation("s1")
        said.user("What do the other agents say?")
        said.attachment({"type": "hook_additional_context", "content": [block]})
        said.tool("Bash", {"command": "memctl message read"}, words)
        said.assistant(f"They say: {words}.")
        done = await here.extract(said)
        assert (done["saved"], here.names()) == ([], [])
        first = here.server.requests[0].body.decode()
        assert words not in first.replace(f"They say: {words}", "")


_HOOK = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(sys.argv[2].encode() + b"\\n")
connection.shutdown(socket.SHUT_WR)
print(b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode())
"""


async def test_a_stranger_s_hook_gets_nothing() -> None:
    """Who names another's running session in an event gets none of its messages."""
    async with agents() as here, await anyio.open_process(["sleep", "60"]) as client:
        eve = await here.register("eve")
        victim = await here.register("victim", session_id="s", pid=client.pid)
        sent = await here.call("message.send", key=eve.key, to="victim", body="for the victim")
        for event in ("SessionStart", "PostToolUse", "UserPromptSubmit", "SessionEnd"):
            payload = {"session_id": "s", "cwd": here.cwd, "prompt_id": event, "prompt": "hi"}
            payload |= {"tool_name": "Bash", "source": "resume", "hook_event_name": event}
            params = {"client": "claude-code", "event": event, "payload": payload, "messages": True}
            request = {"jsonrpc": "2.0", "id": 1, "method": "hook", "params": params}
            words = (sys.executable, "-c", _HOOK, here.home.places.socket, json.dumps(request))
            done = await anyio.run_process(words)
            assert b"for the victim" not in done.stdout
            assert b'"error"' not in done.stdout
        assert (await here.call("message.status", id=sent["id"]))["state"] == "queued"
        assert (await here.read(victim))["messages"]
        second = await here.call("message.send", key=eve.key, to="victim", body="for the victim")
        # This test stands above the client, as a launcher of it would.
        answer = await here.call("hook", **params | {"event": "PostToolUse"})
        assert "for the victim" in json.dumps(answer)
        assert (await here.call("message.status", id=second["id"]))["state"] == "leased"
        client.kill()
