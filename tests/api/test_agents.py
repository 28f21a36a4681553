"""agent.* through the socket."""

import pytest

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
