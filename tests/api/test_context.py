"""context.*: planning, storing, observing, restoring and forgetting over the socket."""

from typing import Any

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio

TALK = [{"role": "user", "content": "Run the tests."}]


async def ask(caller: Caller, method: str, **params: Any) -> Any:
    """Call a method about the session s."""
    return await caller.call(method, session_id="s", **params)


async def test_a_conversation_goes_on_where_memd_left_it(caller: Caller) -> None:
    """Only what is new is sent; another hash makes the client send its messages again."""
    first = await ask(caller, "context.plan", messages=TALK)
    assert (first["status"], first["have"], first["edits"]) == ("ok", 1, [])
    more = {"from": 1, "hash": first["hash"], "messages": [{"role": "assistant", "content": "Ok."}]}
    second = await ask(caller, "context.plan", **more)
    assert (second["status"], second["have"]) == ("ok", 2)
    assert (await ask(caller, "context.plan", **{**more, "hash": "00"}))["status"] == "resync"
    assert [row["messages"] for row in (await caller.call("context.list"))["contexts"]] == [2]


async def test_every_method_answers(caller: Caller) -> None:
    """Each has a result for a session that nothing is known of."""
    assert (await ask(caller, "context.count", messages=TALK))["level"] == "ok"
    spilled = await ask(
        caller, "context.spill", tool_use_id="t", tool="Bash", content="x", reader="read"
    )
    assert spilled["spilled"] is False
    assert (await ask(caller, "context.observe", usage={}))["cache_break"] is None
    decision = {"tool_use_id": "t", "content_hash": "ab", "action": "keep"}
    assert (await ask(caller, "context.restore", decisions=[decision]))["restored"] == 1
    assert (await ask(caller, "context.show"))["decisions"] == {"keep": 1}
    assert (await caller.call("context.forget", session_id="s"))["forgotten"] is True
    assert (await caller.call("context.forget", session_id="s"))["forgotten"] is False
