"""context.*: planning, storing, observing, restoring and forgetting over the socket."""

from pathlib import Path
from typing import Any

import pytest

from memd.client.aio import AsyncClient
from memd.client.errors import DaemonUnavailableError
from tests.api.caller import Caller
from tests.api.test_spending import configure

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


async def test_what_is_no_message_is_not_counted(caller: Caller) -> None:
    """Also where memd has other messages than the client says."""
    for place in (0, 7):
        params = {"from": place, "messages": [*TALK, 5]}
        assert (await caller.refused("context.count", session_id="s", **params)).kind == (
            "invalid_messages"
        )


def call(number: int, text: str) -> list[dict[str, Any]]:
    """Return a call of a shell, and its result."""
    use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


LARGE = [*TALK, *call(1, "a line of a log\n" * 4_000)]


async def test_a_large_result_is_stored(caller: Caller) -> None:
    """Only where the client has a tool to read it; memctl and status tell of it."""
    kept = await ask(caller, "context.plan", messages=LARGE, conversation="without")
    assert (kept["edits"], kept["decisions"][0]["action"]) == ([], "keep")
    planned = await caller.call("context.plan", session_id="r", messages=LARGE, reader="read")
    (edit,) = planned["edits"]
    assert edit["content"].startswith("<persisted-output>\n64000 bytes, 4000 lines, whole at: /")
    totals = (await caller.plain("status"))["contexts"]
    expected = {"conversations": 2, "results": 1, "bytes": 64_000, "breaks": 0, "missed": 0}
    assert totals == expected


async def test_nothing_is_stored_while_memory_is_off(caller: Caller) -> None:
    """What is switched off as a whole writes nothing into anybody's folders."""
    configure(caller, "enabled = false\n")
    planned = await ask(caller, "context.plan", messages=LARGE, reader="read")
    assert (planned["status"], planned["edits"]) == ("ok", [])
    spilled = await ask(
        caller, "context.spill", tool_use_id="t", tool="Bash", content="x" * 60_000, reader="read"
    )
    assert spilled["spilled"] is False


async def test_limits_and_switches_are_settings(caller: Caller) -> None:
    """By the tool's own name; off, nothing is stored."""
    configure(caller, "[context.limits]\nBash = 100000\n")
    assert (await ask(caller, "context.plan", messages=LARGE, reader="read"))["edits"] == []
    configure(caller, "[context]\nspill = false\n")
    other = {"conversation": "other", "messages": [*TALK, *call(2, "x\n" * 90_000)]}
    assert (await ask(caller, "context.plan", **other, reader="read"))["edits"] == []


async def test_the_window_is_the_client_s(caller: Caller) -> None:
    """As it says, by its model's name, by its environment, else 200,000."""
    plan = {"messages": TALK}
    usual = await ask(caller, "context.plan", **plan)
    assert usual["thresholds"]["auto"] == 167_000
    named = await ask(caller, "context.plan", **plan, model="claude-x[1m]")
    assert named["thresholds"]["window"] == 1_000_000
    assert (await ask(caller, "context.plan", **plan, window=8_000))["thresholds"]["auto"] == 6_680
    async with AsyncClient(
        caller.home.places.socket, environment={"MEMD_CONTEXT_WINDOW": "50000"}
    ) as client:
        params = {"cwd": caller.cwd, "session_id": "s", **plan}
        told = await client.call("context.plan", params)
    assert told["thresholds"]["window"] == 50_000


async def test_compaction_is_due_at_auto(caller: Caller) -> None:
    """Never for a sub-agent, and not where it is off."""
    usage = {"input_tokens": 168_000, "output_tokens": 1}
    reply = [*TALK, {"role": "assistant", "content": "Done."}, *TALK]
    about = {"messages": reply, "usage": usage}
    planned = await ask(caller, "context.plan", **about)
    assert (planned["level"], planned["compact"]["due"]) == ("auto", True)
    assert planned["count"]["source"] == "usage"
    assert (await ask(caller, "context.count", **about))["level"] == "auto"
    agent = await ask(caller, "context.plan", **about, conversation="agent")
    assert (agent["level"], agent["compact"]["due"]) == ("auto", False)


async def test_a_fork_goes_on_with_what_was_sent(caller: Caller) -> None:
    """Another session of the same working directory."""
    about = {"messages": LARGE, "reader": "read"}
    first = await ask(caller, "context.plan", **about)
    restored = {"session_id": "fork", "decisions": [], "fork_of": "s"}
    assert (await caller.call("context.restore", **restored))["restored"] == 1
    forked = await caller.call("context.plan", session_id="fork", **about)
    assert forked["edits"] == first["edits"]


async def test_a_result_comes_as_text_or_as_a_file(caller: Caller) -> None:
    """Not both, not neither, and no file that is not there."""
    about = {"session_id": "s", "tool_use_id": "t", "tool": "Bash", "reader": "read"}
    assert "give content or source_path" in str(await caller.refused("context.spill", **about))
    missing = await caller.refused("context.spill", **about, source_path=f"{caller.cwd}/none")
    assert missing.kind == "path_refused"
    source = Path(caller.cwd, "result")
    source.write_text("a line\n" * 10_000)
    stored = await caller.call("context.spill", **about, source_path=str(source))
    assert Path(stored["path"]).read_text() == source.read_text()


MALFORMED = {
    "messages.0.role": [{"role": "assistant", "content": "x"}],
    "messages.1.content.0": [*TALK, call(1, "x")[1]],
    "messages": [{"role": "user", "content": "x"}] * 100_001,
    "messages.1.content.0.id": [
        *TALK,
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a/b", "name": "Bash", "input": {}}],
        },
    ],
}


@pytest.mark.parametrize("place", MALFORMED)
async def test_malformed_messages_name_their_place(caller: Caller, place: str) -> None:
    """And leave what memd knows as it was."""
    first = await ask(caller, "context.plan", messages=TALK)
    refused = await caller.refused("context.plan", session_id="s", messages=MALFORMED[place])
    assert refused.kind == "invalid_messages"
    assert refused.data["place"] == place
    again = await ask(caller, "context.plan", messages=[], **{"from": 1, "hash": first["hash"]})
    assert (again["status"], again["have"]) == ("ok", 1)


async def test_a_frame_that_is_too_large_says_so(caller: Caller) -> None:
    """5 MiB: the result comes by a file instead, and the daemon goes on."""
    huge = [*TALK, *call(1, "x" * (5 * 2**20))]
    with pytest.raises(DaemonUnavailableError, match="a frame may have at most 4194304 bytes"):
        await ask(caller, "context.plan", messages=huge)
    async with AsyncClient(caller.home.places.socket) as client:
        assert (await client.call("status", {}))["contexts"]["conversations"] == 0


@pytest.mark.parametrize("session", ["", "a/b", "..", "memory", "x" * 129])
async def test_a_session_is_a_plain_name(caller: Caller, session: str) -> None:
    """It is the name of a folder."""
    refused = await caller.refused("context.plan", session_id=session, messages=TALK)
    assert refused.kind == "invalid_params"
    fork = {"decisions": [], "fork_of": "../x"}
    assert (await caller.refused("context.restore", session_id="s", **fork)).code == -32602
