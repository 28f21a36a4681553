"""What the API does about a long conversation, through its own SDK: compaction, edits, threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import beta_tool

from tests.support.clock import FakeClock
from tests.support.messages import (
    Failure,
    MessagesServer,
    messages_server,
    text,
    thinking,
    too_long,
    tools,
)
from tests.support.messages_checks import BETAS
from tests.support.messages_edits import BINDING_BETA, CLEARED
from tests.support.messages_request import ReceivedMessage
from tests.support.messages_steps import Script, Step

MODEL = "claude-opus-5-5"
ASK: dict[str, Any] = {"model": MODEL, "max_tokens": 2000, "betas": [*BETAS.values(), BINDING_BETA]}
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
SUMMARIZE = {"type": "summarize"}


@pytest.fixture(autouse=True)
def _no_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))


@contextmanager
def served(script: Script, **options: Any) -> Iterator[tuple[MessagesServer, Any]]:
    """Open a server and the messages of the SDK's client for it, which does not repeat."""
    with (
        messages_server(script, **options) as server,
        anthropic.Anthropic(
            api_key="secret", base_url=server.url, max_retries=0, timeout=60
        ) as client,
    ):
        yield server, client.beta.messages


def user(words: str) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": words}


def talk(messages: Any, turns: int, **more: Any) -> list[Any]:
    """Return a conversation of some turns, each with thinking."""
    history: list[Any] = []
    for turn in range(turns):
        history.append(user(f"turn {turn}"))
        history.append(messages.create(**ASK, messages=history, **more).to_param())
    return history


THINKS = thinking("let me see", text("answer"))


def test_thinking_is_bound_to_all_before_it() -> None:
    """A changed, added or missing block before thinking is refused, and so are other tools."""
    with served(THINKS) as (server, messages):
        history = talk(messages, 3)
        end = user("end")
        without = [*history[:1], {**history[1], "content": history[1]["content"][1:]}, *history[2:]]
        for changed in ([user("other"), *history[1:]], [user("more"), *history], without):
            with pytest.raises(anthropic.BadRequestError, match="prefix_binding_mismatch") as error:
                messages.create(**ASK, messages=[*changed, end])
            assert "messages." in str(error.value)
        with pytest.raises(anthropic.BadRequestError, match="prefix_binding_mismatch"):
            messages.create(**ASK, messages=[*history, end], system="new")
        unbound = {**ASK, "model": "claude-sonnet-4-6"}
        messages.create(**unbound, messages=[user("other"), *history[1:], end])
        bare = [{**m, "content": m["content"][1:]} if m["role"] != "user" else m for m in history]
        assert messages.create(**ASK, messages=[user("other"), *bare[1:], end])
        marked = [*history, {"role": "user", "content": [{"type": "text", "text": "end"}]}]
        marked[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
        assert messages.create(**ASK, messages=marked).input_transformations == []
        assert server.messages[-1].status == 200


def test_unbound_thinking_is_dropped_where_that_is_wanted() -> None:
    """Thinking behind a change is dropped, reported and not counted; what comes then is valid."""
    with served(THINKS) as (_, messages):
        history = talk(messages, 3)
        changed = [*history[:2], user("other"), *history[3:], user("end")]
        reply = messages.create(**ASK, messages=changed, thinking=DROP)
        dropped = [(item.reason, item.path) for item in reply.input_transformations]
        expected = [("prefix_binding_mismatch", f"messages.{n}.content.0") for n in (3, 5)]
        assert dropped == expected
        counted = {name: value for name, value in ASK.items() if name != "max_tokens"}
        tokens = messages.count_tokens(**counted, messages=changed, thinking=DROP).input_tokens
        assert tokens == reply.usage.input_tokens
        again = messages.create(
            **ASK, messages=[*changed, reply.to_param(), user("end")], thinking=DROP
        )
        assert len(again.input_transformations) == len(expected)


def test_a_compaction_stands_for_what_it_was_made_of() -> None:
    """The block comes alone and signed, whole or streamed; thinking in kept turns stays valid."""
    with served(THINKS) as (server, messages):
        history = talk(messages, 4)
    with served([text("summary"), text("summary"), THINKS, THINKS, THINKS]) as (server, messages):
        asked = {**ASK, "compaction": SUMMARIZE, "messages": history[:4]}
        whole = messages.create(**asked)
        with messages.stream(**asked) as stream:
            assert stream.get_final_message().content == whole.content
        assert (whole.stop_reason, len(whole.content)) == ("compaction", 1)
        assert whole.usage.output_tokens == 0
        assert [i.type for i in whole.usage.iterations] == ["compaction"]
        first = whole.to_param()
        later = [first, *history[4:], user("end")]
        reply = messages.create(**ASK, messages=later)
        assert [i.type for i in reply.usage.iterations] == ["message"]
        assert messages.create(**ASK, messages=[*later, reply.to_param(), user("end")])
        with pytest.raises(anthropic.BadRequestError, match="prefix_binding_mismatch"):
            messages.create(**ASK, messages=[first, *history[6:], user("end")])
        with pytest.raises(anthropic.BadRequestError, match="prefix_binding_mismatch"):
            messages.create(**ASK, messages=[first, *history[5:], user("end")])
        assert server.messages[0].usage["iterations"][0]["input_tokens"] > 0


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("compaction_block_misplaced", lambda block: [user("hi"), block]),
        ("compaction_block_ambiguous", lambda block: [block, block]),
        ("compaction_signature_invalid", lambda block: [_other(block, signature="x")]),
        ("compaction_content_mismatch", lambda block: [_other(block, content="x")]),
    ],
)
def test_a_compaction_block_that_stands_wrong_is_refused(code: str, change: Any) -> None:
    """Another place, another block beside it, another signature or content is a 400 by name."""
    with served(text("summary")) as (_, messages):
        block = messages.create(**ASK, compaction=SUMMARIZE, messages=[user("hi")]).to_param()
        block["content"] = [part.to_dict() for part in block["content"]]
        with pytest.raises(anthropic.BadRequestError) as error:
            messages.create(**ASK, messages=[*change(block), user("end")])
    assert error.value.body["error"]["details"] == {"error_code": code}  # type: ignore[index]


def _other(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**message, "content": [{**message["content"][0], **more}]}


def test_a_prompt_is_too_long_with_figures_or_without() -> None:
    """The failure names tokens and window, or nothing; a compaction can be unavailable."""
    busy = Failure(529, code="compaction_unavailable")
    with served([too_long(), too_long(300), busy], window=1000) as (_, messages):
        with pytest.raises(anthropic.BadRequestError, match=r"1\d{3} tokens > 1000 maximum"):
            messages.create(**ASK, messages=[user("x" * 5000)])
        with pytest.raises(anthropic.BadRequestError, match="too long'"):
            messages.create(**ASK, messages=[user("x")])
        with pytest.raises(anthropic.BadRequestError, match="300 tokens > 200000 maximum"):
            messages.create(**ASK, messages=[user("x")])
        with pytest.raises(anthropic.APIStatusError) as error:
            messages.create(**ASK, messages=[user("x")], compaction=SUMMARIZE)
    assert error.value.body["error"]["details"] == {"error_code": "compaction_unavailable"}  # type: ignore[index]


def agent(messages: Any, turns: int, **more: Any) -> tuple[list[Any], list[Any]]:
    """Return a history of calls with results of 1,000 tokens, and the replies."""
    history, replies = [user("go")], []
    for _ in range(turns):
        replies.append(messages.create(**ASK, messages=history, **more))
        history.append(replies[-1].to_param())
        calls = [block for block in replies[-1].content if block.type == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": "x" * 4000} for call in calls
        ]
        history.append({"role": "user", "content": results})
    return history, replies


def test_old_results_are_cleared_in_the_prompt_alone() -> None:
    """Past the trigger old results go at once and stay gone, so the cache breaks rarely."""
    edit = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 10_000},
        "clear_at_least": {"type": "input_tokens", "value": 4_000},
        "keep": {"type": "tool_uses", "value": 3},
        "exclude_tools": ["Keep"],
    }
    script = thinking("hm", tools(("Read", {}), ("Keep", {})))
    more = {"context_management": {"edits": [edit]}, "cache_control": {"type": "ephemeral"}}
    with served(script, least=100) as (server, messages):
        history, replies = agent(messages, 12, **more)
        usages = [reply.usage for reply in replies]
        edits = [reply.context_management.applied_edits for reply in replies]
        cleared = [sum(e.cleared_tool_uses for e in applied) for applied in edits]
        assert cleared == sorted(cleared)
        assert 0 < len(set(cleared) - {0}) < len(cleared) / 2
        broken = [
            number
            for number in range(1, len(usages))
            if usages[number].cache_read_input_tokens < usages[number - 1].cache_read_input_tokens
        ]
        assert broken == [n for n in range(1, len(cleared)) if cleared[n] > cleared[n - 1]]
        assert CLEARED not in str(server.messages[-1].json)
        counted = {name: value for name, value in ASK.items() if name != "max_tokens"}
        sizes = messages.count_tokens(
            **counted, messages=history, context_management=more["context_management"]
        )
        saved = sizes.context_management.original_input_tokens - sizes.input_tokens
        assert saved > 4_000
        with messages.stream(**ASK, messages=history, **more) as stream:
            streamed = stream.get_final_message().context_management
        assert streamed.applied_edits[0].cleared_input_tokens == saved


def test_old_thinking_is_cleared_by_turns() -> None:
    """All thinking stays with ``all``; with a number, that of so many turns of a person."""
    with served(THINKS) as (_, messages):
        history = [*talk(messages, 4), user("end")]
        for keep, gone in (("all", None), ({"type": "thinking_turns", "value": 1}, 3)):
            edits = {"edits": [{"type": "clear_thinking_20251015", "keep": keep}]}
            reply = messages.create(**ASK, messages=history, context_management=edits)
            applied = reply.context_management.applied_edits
            assert [edit.cleared_thinking_turns for edit in applied] == ([gone] if gone else [])
        inputs = {"type": "clear_tool_uses_20250919", "clear_tool_inputs": True}
        inputs["trigger"] = {"type": "tool_uses", "value": 0}
        inputs["keep"] = {"type": "tool_uses", "value": 0}
        call = {"type": "tool_use", "id": "t", "name": "Read", "input": {"path": "x" * 400}}
        result = {"type": "tool_result", "tool_use_id": "t", "content": "x" * 400}
        asked = [user("hi"), {"role": "assistant", "content": [call]}]
        asked.append({"role": "user", "content": [result]})
        reply = messages.create(**ASK, messages=asked, context_management={"edits": [inputs]})
        assert reply.context_management.applied_edits[0].cleared_input_tokens > 190


def test_diagnostics_name_what_changed() -> None:
    """A reply says which part of the prompt differs from the request that is named."""
    same: dict[str, Any] = {"system": "s", "tools": [{"name": "T", "input_schema": {}}]}
    hi, other = [user("hi")], [user("other")]
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({}, None),
        ({"messages": [*hi, {"role": "assistant", "content": "x"}, *hi]}, None),
        ({"model": "claude-haiku-5-5", "system": "t"}, "model_changed"),
        ({"system": "t", "messages": other}, "system_changed"),
        ({"tools": [], "system": "t"}, "tools_changed"),
        ({"messages": other}, "messages_changed"),
        ({"tool_choice": {"type": "any"}}, "unavailable"),
    ]
    with served(text("fine")) as (_, messages):
        named: dict[str, Any] = {"diagnostics": {"previous_message_id": None}}
        first = messages.create(**ASK, messages=hi, **same, **named)
        assert first.diagnostics is None
        named = {"diagnostics": {"previous_message_id": first.id}}
        for more, reason in cases:
            reply = messages.create(**{**ASK, "messages": hi, **same, **named, **more})
            told = reply.diagnostics and reply.diagnostics.cache_miss_reason.type
            assert told == reason
            if (reason or "").endswith("_changed"):
                assert reply.diagnostics.cache_miss_reason.cache_missed_input_tokens > 0
        named = {"diagnostics": {"previous_message_id": "msg_other"}}
        reply = messages.create(**ASK, messages=hi, **named)
        assert reply.diagnostics.cache_miss_reason.type == "previous_message_not_found"


@beta_tool
def read(path: str) -> str:
    """Return a file.

    Args:
        path: where it lies
    """
    return f"the text of {path}"


def _steps(request: ReceivedMessage) -> Step:
    if "text of" in request.last_text or "compaction" in request.members:
        return THINKS
    return thinking("hm", tools(("read", {"path": "a"})))


@pytest.mark.parametrize("threads", [False, True])
def test_the_tool_runner_works_with_and_without_a_thread(*, threads: bool) -> None:
    """The SDK's own loop runs tools and compacts, its history here or on the server."""
    options: dict[str, Any] = {} if threads else {"thread": False}
    with served(_steps) as (server, messages):
        runner = messages.tool_runner(**ASK, messages=[user("go")], tools=[read], **options)
        stops: list[str] = []
        for message in runner:
            if not stops:
                runner.compact_before_next_turn()
            stops.append(message.stop_reason)
        sent = [len(request.members["messages"]) for request in server.messages]
        assert [request.status for request in server.messages] == [200] * len(sent)
    assert "compaction" in stops
    assert stops[-1] == "end_turn"
    if threads:
        assert "thread" in server.messages[0].json


def test_a_thread_goes_on_from_its_last_reply_for_five_minutes() -> None:
    """A thread that is old, unknown, continued already or asked with other tools is refused."""
    clock = FakeClock()
    with served(THINKS, now=clock.now) as (server, messages):
        asked: dict[str, Any] = {**ASK, "messages": [user("hi")]}
        first = messages.create(**asked, system="s", thread={"type": "create"})
        after = {"type": "continue", "previous_message_id": first.id}
        with pytest.raises(anthropic.BadRequestError, match="differs"):
            messages.create(**asked, system="t", thread=after)
        second = messages.create(**asked, thread=after)
        assert second.usage.input_tokens > first.usage.input_tokens
        assert len(server.messages[-1].whole["messages"]) == 3
        with pytest.raises(anthropic.BadRequestError, match="once"):
            messages.create(**asked, thread=after)
        clock.advance(300)
        for name in (second.id, "msg_other"):
            thread = {"type": "continue", "previous_message_id": name}
            with pytest.raises(anthropic.NotFoundError):
                messages.create(**asked, thread=thread)


def test_models_tell_what_they_can() -> None:
    """GET /v1/models has the capabilities that a plan depends on."""
    with (
        messages_server(text("fine"), models=(MODEL, "claude-sonnet-4-6")) as server,
        anthropic.Anthropic(api_key="secret", base_url=server.url) as client,
    ):
        able, older = [model.capabilities for model in client.beta.models.list()]
    assert able is not None
    assert older is not None
    assert able.compaction is not None
    assert older.compaction is not None
    assert (able.compaction.supported, older.compaction.supported) == (True, False)
    assert able.context_management.clear_tool_uses_20250919 is not None
