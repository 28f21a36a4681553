"""message.* through the socket."""

import os
from typing import Any

import anyio
import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def register(caller: Caller, name: str, **more: Any) -> str:
    """Register an agent and return its key."""
    return str((await caller.call("agent.register", name=name, **more))["key"])


async def test_a_message_arrives_once_it_is_acknowledged(caller: Caller) -> None:
    """A message waits, is leased, read, and does not come again."""
    ann, ben = await register(caller, "ann"), await register(caller, "ben")
    sent = await caller.call("message.send", cwd=None, key=ann, to="ben", body="Tests are green.")
    assert (sent["id"], sent["state"]) == ("m1", "queued")
    got = await caller.call("message.receive", cwd=None, key=ben)
    (message,) = got["messages"]
    assert (message["from"], message["body"], message["delivery"]) == ("ann", "Tests are green.", 1)
    assert "Message from ann" in got["block"]
    assert (await caller.call("message.status", cwd=None, id="m1"))["state"] == "leased"
    assert (await caller.call("message.receive", cwd=None, key=ben))["messages"] == []
    assert (await caller.call("message.ack", cwd=None, key=ben, ids=["m1"])) == {"acked": 1}
    assert (await caller.call("message.ack", cwd=None, key=ben, ids=["m1"])) == {"acked": 0}
    assert (await caller.call("message.status", cwd=None, id="m1"))["state"] == "read"
    (logged,) = (await caller.call("message.log"))["messages"]
    assert (logged["from"], logged["state"], "body" in logged) == ("ann", "read", False)


async def test_who_is_not_registered_waits_for_the_person(caller: Caller) -> None:
    """A message of nobody known is held until the person accepts it, and is listed."""
    ben = await register(caller, "ben")
    assert (await caller.call("message.send", to="ben", body="hello"))["state"] == "held"
    (waiting,) = (await caller.call("message.log", state="held"))["messages"]
    assert (await caller.call("message.receive", cwd=None, key=ben))["messages"] == []
    held = (await caller.call("message.held"))["messages"]
    assert held == [waiting | {"client": held[0]["client"], "project": "project", "body": "hello"}]
    assert (await caller.call("message.held", cwd=None, id=waiting["id"]))["messages"] == held
    done = await caller.call("message.decide", cwd=None, id=waiting["id"], accept=True)
    assert done["state"] == "queued"
    assert (await caller.call("message.held"))["messages"] == []
    for method, more in (("message.held", {}), ("message.decide", {"accept": False})):
        error = await caller.refused(method, cwd=None, id=waiting["id"], **more)
        assert (error.kind, "it is queued" in str(error)) == ("message_not_held", True)
    (message,) = (await caller.call("message.receive", cwd=None, key=ben))["messages"]
    assert message["from"] == "unregistered"


async def test_held_messages_are_those_of_a_project_or_of_all(caller: Caller) -> None:
    """Messages are counted, not their receivers; another project's come without ``cwd`` alone."""
    for name in ("ben", "ann"):
        await register(caller, name)
    for text in ("one", "two"):
        await caller.call("message.send", to="*", body=text)
    assert (await caller.plain("status"))["held"] == 2
    other = caller.home.project("other")
    assert (await caller.call("message.held", cwd=other))["messages"] == []
    every = (await caller.call("message.held", cwd=None))["messages"]
    assert [each["body"] for each in every] == ["two", "one"]


async def test_a_reply_names_a_message_that_is_there(caller: Caller) -> None:
    """A reply to a message that nobody sent is refused."""
    ann = await register(caller, "ann")
    await register(caller, "ben")
    sent = {"cwd": None, "key": ann, "to": "ben", "body": "x"}
    error = await caller.refused("message.send", reply_to="m999", **sent)
    assert error.kind == "message_not_found"
    first = await caller.call("message.send", **sent)
    assert await caller.call("message.send", reply_to=first["id"], **sent)


async def test_an_unknown_address_is_an_error(caller: Caller) -> None:
    """A message to a name that nobody has is refused with the nearest names."""
    ann = await register(caller, "ann")
    error = await caller.refused("message.send", cwd=None, key=ann, to="anne", body="x")
    assert (error.code, error.data["nearest"]) == (1001, "ann")


async def test_an_assistant_s_program_decides_nothing_for_the_person(caller: Caller) -> None:
    """What an assistant runs reads and accepts no message that waits for the person."""
    await register(caller, "ben")
    waiting = await caller.call("message.send", to="ben", body="hello")
    assistant = await register(caller, "ann", kind="session", session_id="s", pid=os.getppid())
    error = await caller.refused("message.decide", cwd=None, id=waiting["id"], accept=True)
    assert error.kind == "message_refused"
    assert (await caller.refused("message.held")).kind == "message_refused"
    await caller.call("agent.end", cwd=None, key=assistant)
    done = await caller.call("message.decide", cwd=None, id=waiting["id"], accept=False)
    assert done["state"] == "refused"


async def test_a_held_message_keeps_the_time_that_its_sender_gave_it(caller: Caller) -> None:
    """Once a person accepted a message it waits as long as was asked for, and no longer."""
    ben = await register(caller, "ben")
    waiting = await caller.call("message.send", to="ben", body="soon", ttl=60)
    caller.clock.advance(20 * 3600)
    await caller.call("message.decide", cwd=None, id=waiting["id"], accept=True)
    caller.clock.advance(61)
    assert (await caller.call("message.receive", cwd=None, key=ben))["messages"] == []
    assert (await caller.call("message.status", cwd=None, id=waiting["id"]))["state"] == "expired"


async def test_who_waits_hears_that_its_agent_ended(caller: Caller) -> None:
    """The end of an agent ends a call that waits for its messages, at once."""
    ben = await register(caller, "ben")
    errors: list[str] = []
    before = caller.clock.sleepers

    async def wait() -> None:
        errors.append((await caller.refused("message.receive", cwd=None, key=ben, wait=60)).kind)

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        while caller.clock.sleepers == before:
            await anyio.lowlevel.checkpoint()
        await caller.call("agent.end", cwd=None, key=ben)
    assert errors == ["agent_ended"]
