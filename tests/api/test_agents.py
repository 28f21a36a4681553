"""agent.* through the socket."""

import os

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.core.agents import AGENT_NAME_CHARACTERS, SILENT_SECONDS
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def test_an_agent_is_registered_listed_and_ended(caller: Caller) -> None:
    """A name belongs to who lives, the same session is the same agent, an ended one is refused."""
    first = await caller.call("agent.register", name="ann", session_id="s1")
    assert (first["agent"], first["address"]) == ("ann", "ann")
    taken = await caller.refused("agent.register", name="ann", session_id="s2")
    assert (taken.code, taken.kind) == (1002, "name_taken")
    again = await caller.call("agent.register", name="ann", session_id="s1")
    assert again["key"] != first["key"]
    child = await caller.call("agent.register", name="kid", parent="ann", key=again["key"])
    assert child["address"] == "ann/kid"
    rows = (await caller.call("agent.list"))["agents"]
    assert [(row["address"], row["state"]) for row in rows] == [
        ("ann", "live"),
        ("ann/kid", "live"),
    ]
    assert (await caller.refused("agent.end", cwd=None, key=first["key"])).kind == "key_refused"
    assert (await caller.call("agent.end", cwd=None, key=again["key"])) == {
        "ended": True,
        "returned": 0,
    }
    assert {row["state"] for row in (await caller.call("agent.list"))["agents"]} == {"ended"}


async def test_who_has_no_process_goes_with_its_connection(caller: Caller) -> None:
    """An open connection is enough to be there; two minutes after its end the agent is gone."""
    async with AsyncClient(caller.home.places.socket, name="test") as other:
        await other.call("agent.register", {"cwd": caller.cwd, "name": "ann"})
        caller.clock.jump(2 * SILENT_SECONDS)
        caller.clock.advance(2 * SILENT_SECONDS)
        assert await _states(caller) == ["live"]
    caller.clock.advance(2 * SILENT_SECONDS)
    with anyio.fail_after(60):  # the daemon has yet to read that the connection ended
        while await _states(caller) != ["gone"]:
            pass


async def test_a_process_is_the_caller_s_to_name(caller: Caller) -> None:
    """A process of ours makes an agent live; one that is not there is a wrong parameter."""
    for pid in (-1, 2**31, 2**62):
        refused = await caller.refused("agent.register", name="ann", pid=pid)
        assert refused.code == -32602
    await caller.call("agent.register", name="ann", pid=os.getpid())
    caller.clock.advance(2 * SILENT_SECONDS)
    assert await _states(caller) == ["live"]


@pytest.mark.parametrize(
    "name",
    ["*", "all", "USER", "memd", "..", "a/b", "a@b", "-a", "a\0", "é", "con", "a#1",
     "x" * (AGENT_NAME_CHARACTERS + 1)],
)  # fmt: skip
async def test_a_hostile_name_is_refused_and_registers_nobody(caller: Caller, name: str) -> None:
    """A name that is reserved or no plain component is an error that says so."""
    assert (await caller.refused("agent.register", name=name)).kind == "name_refused"
    assert await _states(caller) == []


async def _states(caller: Caller) -> list[str]:
    return [row["state"] for row in (await caller.call("agent.list"))["agents"]]
