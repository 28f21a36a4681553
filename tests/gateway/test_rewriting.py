"""Which requests are changed, with a real daemon behind."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memd.gateway.rewriting import READERS, Rewriter, Rewritten
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.scripted_daemon import ScriptedDaemon, Silence

LINE = "a line of the log\n"
LARGE = LINE * 4_000
CREATE = b"/v1/messages"
COUNT = b"/v1/messages/count_tokens"
Messages = list[dict[str, Any]]


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """Run one daemon for all tests; each has conversations of its own."""
    with throw_away_home() as home, daemon_process(home):
        yield home


@pytest.fixture
def rewriter(home: Home) -> Rewriter:
    """Return a gateway's rewriter, which waits for a busy machine."""
    return _rewriter(home)


def _rewriter(home: Home, *, manage: bool = False) -> Rewriter:
    return Rewriter(home.places.socket, home.project(), READERS, manage=manage, seconds=20)


def tool(name: str, **more: Any) -> dict[str, Any]:
    """Return a tool of a program."""
    return {"name": name, "description": name, "input_schema": {"type": "object"}, **more}


def talk(name: str, *results: Any) -> Messages:
    """Return a conversation in which a tool was called for each of some results."""
    messages: Messages = [{"role": "user", "content": f"Look at {name}."}]
    for number, result in enumerate(results):
        call = f"toolu_{name}_{number}"
        used = {"type": "tool_use", "id": call, "name": "run", "input": {}}
        answered = {"type": "tool_result", "tool_use_id": call, "content": result}
        messages += [
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [answered]},
        ]
    return messages


def body(messages: Messages, **members: Any) -> bytes:
    """Return the bytes of a request, written as few programs write them."""
    given = {"model": "claude-haiku-5-5", "tools": [tool("run"), tool("Read")], **members}
    return json.dumps({**given, "messages": messages}, indent=1).encode()


def contents(data: bytes) -> list[str]:
    """Return what a request holds as results."""
    messages = json.loads(data)["messages"]
    blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def wait(rewriter: Rewriter) -> None:
    """Return once memd was told of everything."""
    planners = [each.planner for row in rewriter._sessions.values() for each in row]
    until = time.monotonic() + 20
    while any(planner.is_sending for planner in planners) and time.monotonic() < until:
        time.sleep(0)


def test_a_new_large_result_is_stored_and_shown(rewriter: Rewriter) -> None:
    """The model gets a result's beginning and a path; the file has all of it; the rest stays."""
    data = body(talk("stored", LARGE))
    result = rewriter.rewrite(CREATE, data)
    (shown,) = contents(result.body)
    assert shown.startswith("<persisted-output>")
    path = shown.splitlines()[1].rpartition(" ")[2]
    assert Path(path).read_text() == LARGE
    before, _, after = data.partition(json.dumps(LARGE).encode())
    assert result.body.startswith(before)
    assert result.body.endswith(after)
    assert result.fallback is not None


def test_what_was_sent_is_sent_again(rewriter: Rewriter, home: Home) -> None:
    """Each request begins with the bytes of the one before it, in another process too."""
    results = ["small", LARGE, LINE * 300, LARGE + "x", "small", "y" + LARGE]
    sent = b""
    for number in range(1, len(results) + 1):
        whole = body(talk("again", *results[:number]))
        result = rewriter.rewrite(CREATE, whole).body
        prefix = sent.rpartition(b"]")[0].rstrip()  # all but the end of the list of messages
        assert result.startswith(prefix)
        sent = result
    assert [text[:10] for text in contents(sent)].count("<persisted") == 3
    assert _rewriter(home).rewrite(CREATE, whole).body == sent
    assert _rewriter(home).rewrite(COUNT, whole).body == sent


def test_a_compaction_has_the_prefix_that_was_sent(home: Home) -> None:
    """A request for a summary begins as the one before it did, and has no context management."""
    rewriter = _rewriter(home, manage=True)
    messages = talk("whole", LARGE, "small")
    sent = rewriter.rewrite(CREATE, body(messages)).body
    assert b"context_management" in sent
    done = {"role": "assistant", "content": "done"}
    asked = body([*messages, done], compaction={"type": "summarize"})
    for each in (rewriter, _rewriter(home, manage=True)):
        result = each.rewrite(CREATE, asked).body
        assert contents(result) == contents(sent)
        assert b"context_management" not in result


UNTOUCHED: dict[str, dict[str, Any]] = {
    "no tools": {"tools": None},
    "no reader": {"tools": [tool("run"), tool("mcp__x__Read"), tool("reader")]},
    "a reader on the server": {"tools": [tool("run"), tool("Read", type="read_20260101")]},
    "a billed system": {"system": [{"type": "text", "text": "x-anthropic-billing-header: a=b"}]},
    "a billed text": {"system": "x-anthropic-billing-header: a=b"},
    "a thread of the server": {"thread": {"type": "create"}},
    "a name twice": {"metadata": "TWICE"},
    "half a pair": {"metadata": {"user_id": "x"}, "system": "\ud800"},
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_in_doubt_a_request_passes(name: str, rewriter: Rewriter) -> None:
    """What the gateway does not understand, or may not change, goes as it came."""
    data = body(talk(name, LARGE), **UNTOUCHED[name])
    data = data.replace(b'"metadata": "TWICE"', b'"model": "x"')
    assert rewriter.rewrite(CREATE, data) == Rewritten(data)


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "first"}],
        [{"role": "assistant", "content": LARGE}],
        [{"content": LARGE}, "text", None],
        {"role": "user"},
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text"}]}],
        talk("orphan", LARGE)[:1] + talk("orphan", LARGE)[2:],
        [*talk("failed", "small")[:2], {"role": "user", "content": LARGE}],
    ],
)
def test_odd_messages_pass(messages: Any, rewriter: Rewriter) -> None:
    """Whatever stands in the place of messages goes as it came."""
    data = body(messages)
    assert rewriter.rewrite(CREATE, data).body == data


def test_only_messages_are_read() -> None:
    """Nothing else than messages of a program that is not Claude Code is looked into."""
    rewriter = Rewriter("/nonexistent", "/")
    agent = {b"user-agent": b"agent/1", b"content-length": b"33554432"}
    assert rewriter.may_change(b"POST", CREATE, agent)
    assert rewriter.may_change(b"POST", COUNT, {})
    assert not rewriter.may_change(b"GET", CREATE, agent)
    assert not rewriter.may_change(b"POST", b"/v1/messages/batches", agent)
    for name, value in (
        (b"content-length", b"33554433"),
        (b"content-encoding", b"gzip"),
        (b"user-agent", b"claude-cli/2.1.329 (external, cli)"),
        (b"x-anthropic-billing-header", b"a=b"),
    ):
        assert not rewriter.may_change(b"POST", CREATE, {**agent, name: value})


def test_what_was_sent_whole_stays_whole(rewriter: Rewriter, home: Home) -> None:
    """Results that a reply followed before the gateway saw them are never exchanged."""
    messages = talk("before", LARGE, LARGE + "2", "small")
    data = body(messages)
    assert rewriter.rewrite(CREATE, data).body == data
    more = body(talk("before", LARGE, LARGE + "2", "small", LARGE + "4"))
    shown = contents(rewriter.rewrite(CREATE, more).body)
    assert [text[:10] for text in shown] == [LINE[:10], LINE[:10], "small", "<persisted"]
    assert contents(_rewriter(home).rewrite(CREATE, more).body) == shown


def test_a_refused_body_has_its_original_for_good(rewriter: Rewriter, home: Home) -> None:
    """After a refusal the new results go as they came, then and later; the older ones stay."""
    first = rewriter.rewrite(CREATE, body(talk("refused", LARGE))).body
    data = body(talk("refused", LARGE, LARGE + "2"))
    result = rewriter.rewrite(CREATE, data)
    assert len(contents(result.body)[1]) < len(LARGE)
    assert result.fallback is not None
    original = result.fallback()
    assert contents(original) == [contents(first)[0], LARGE + "2"]
    again = rewriter.rewrite(CREATE, data)
    assert again.body == original
    assert again.fallback is None
    wait(rewriter)
    assert _rewriter(home).rewrite(CREATE, data).body == original


def test_conversations_that_begin_alike_do_not_disturb_each_other() -> None:
    """Two that share their beginning are both followed: memd is sent what is new, once."""
    asked: list[dict[str, Any]] = []

    def plan(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"status": "ok", "decisions": [], "request": {}}

    with throw_away_home() as other, ScriptedDaemon(other.places.socket, {"context.plan": plan}):
        rewriter = Rewriter(other.places.socket, other.path, seconds=20)
        begin = talk("fork", "small", "small")
        both = [[*begin, *talk(name, *["small"] * 4)[1:]] for name in "ab"]
        for end in (3, 5, 7, 9, 11, 13):
            for each in both:
                rewriter.rewrite(CREATE, body(each[:end]))
                wait(rewriter)
    sizes: dict[str, list[tuple[int, int]]] = {}
    for call in asked:
        sizes.setdefault(call["conversation"], []).append((call["from"], len(call["messages"])))
    assert {call["session_id"] for call in asked} == {asked[0]["session_id"]}
    assert sorted(sizes.values()) == [
        [(0, 3), (3, 0), (3, 2), (5, 0), (5, 2), (7, 2), (9, 2), (11, 2)],
        [(0, 7), (7, 2), (9, 2), (11, 2)],
    ]


def test_what_memd_could_not_be_told_in_time_is_told_afterwards() -> None:
    """A daemon that is late once does not fall further behind with each request."""
    busy, asked = threading.Event(), []

    def plan(params: dict[str, Any]) -> dict[str, Any]:
        busy.wait(60)
        asked.append((params["from"], len(params["messages"])))
        return {"status": "ok", "decisions": [], "request": {}}

    answers = {"context.plan": plan, "context.restore": {"restored": 1}}
    with throw_away_home() as home, ScriptedDaemon(home.places.socket, answers):
        rewriter = Rewriter(home.places.socket, home.path, seconds=0.2)
        rewriter.rewrite(CREATE, body(talk("late", LARGE)))
        busy.set()
        wait(rewriter)
        rewriter.rewrite(CREATE, body(talk("late", LARGE, "small")))
        wait(rewriter)
    assert asked[-1] == (3, 2)


def test_a_mark_of_the_cache_stays_where_it_was(rewriter: Rewriter) -> None:
    """The mark of a part of a result is the block's when the result is exchanged."""
    mark = {"type": "ephemeral", "ttl": "1h"}
    parts = [{"type": "text", "text": LARGE, "cache_control": mark}]
    data = body(talk("marked", parts))
    block = json.loads(rewriter.rewrite(CREATE, data).body)["messages"][-1]["content"][0]
    assert block["cache_control"] == mark
    assert block["content"].startswith("<persisted-output>")
    moved = body(talk("marked", [{"type": "text", "text": LARGE}], "small"))
    shown = contents(rewriter.rewrite(CREATE, moved).body)
    assert shown[0] == block["content"]


def test_the_api_is_asked_to_clear_only_where_that_was_wanted(home: Home) -> None:
    """With --manage requests get context_management and its beta, unless they have their own."""
    rewriter = _rewriter(home, manage=True)
    data = body(talk("managed", "small"), model="claude-opus-5-5")
    result = rewriter.rewrite(CREATE, data)
    edits = json.loads(result.body)["context_management"]["edits"]
    assert [edit["type"] for edit in edits] == ["clear_tool_uses_20250919"]
    assert result.betas == ["context-management-2025-06-27"]
    assert result.body.endswith(data[1:])
    assert rewriter.rewrite(COUNT, data) == Rewritten(data)
    own = body(talk("own", "small"), context_management={"edits": []})
    assert rewriter.rewrite(CREATE, own) == Rewritten(own)
    assert _rewriter(home).rewrite(CREATE, data) == Rewritten(data)


def test_a_silent_daemon_costs_a_moment(home: Home) -> None:
    """Without an answer in time the known is sent; what is new goes whole, and stays so."""
    answers = {"context.plan": Silence(), "context.restore": {"restored": 1}}
    data = body(talk("silent", "small", LARGE))
    with throw_away_home() as other:
        rewriter = Rewriter(other.places.socket, home.project(), seconds=0.1)
        with ScriptedDaemon(other.places.socket, answers):
            assert rewriter.rewrite(CREATE, data).body == data
        assert rewriter.rewrite(CREATE, data).body == data
    awake = _rewriter(home)
    awake.socket = "/nonexistent"
    assert awake.rewrite(CREATE, data).body == data
    awake._sessions[next(iter(awake._sessions))][0].planner._socket = home.places.socket
    assert awake.rewrite(CREATE, data).body == data
    assert _rewriter(home).rewrite(CREATE, data).body == data
    session = next(iter(awake._sessions))
    with closing(client(home)) as caller:
        shown = caller.call("context.show", {"cwd": home.project(), "session_id": session})
    assert shown["decisions"] == {"keep": 1}
