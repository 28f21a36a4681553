"""The scripted Messages server against the API's own SDK."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import pytest

from tests.support.clock import FakeClock
from tests.support.messages import (
    MODELS,
    Cut,
    Drip,
    Failure,
    Hang,
    Interrupt,
    MessagesServer,
    ScriptedReply,
    error_with_200,
    html,
    messages_server,
    refusal,
    structured,
    text,
    tools,
)
from tests.support.messages_steps import Script, Step

ASK: dict[str, Any] = {
    "model": "claude-haiku-5-5",
    "max_tokens": 200,
    "messages": [{"role": "user", "content": "hi"}],
}
MARK = {"type": "ephemeral"}
LONG = {"type": "text", "text": "x" * 20_000, "cache_control": MARK}


@pytest.fixture(autouse=True)
def _no_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))


@contextmanager
def served(script: Script, **options: Any) -> Iterator[tuple[MessagesServer, anthropic.Anthropic]]:
    """Open a server and the SDK's client for it, which does not repeat a request."""
    with (
        messages_server(script, **options) as server,
        anthropic.Anthropic(
            api_key="secret", base_url=server.url, max_retries=0, timeout=60
        ) as client,
    ):
        yield server, client


def test_replies_reach_the_sdk_whole() -> None:
    """Text, parallel tool calls, JSON and a refusal are what the SDK makes of the same reply."""
    calls = tools(("Read", {"path": "a"}), ("Grep", {}), say="both")
    with served([text("hello"), calls, structured({"a": "é"}), refusal("bio", "no")]) as (
        _,
        client,
    ):
        said, called, shaped, refused = [client.messages.create(**ASK) for _ in range(4)]
    assert [block.model_dump()["text"] for block in (*said.content, *shaped.content)] == [
        "hello",
        '{"a": "é"}',
    ]
    wanted = [block for block in called.content if block.type == "tool_use"]
    assert [(block.name, block.input) for block in wanted] == [
        ("Read", {"path": "a"}),
        ("Grep", {}),
    ]
    assert (called.stop_reason, wanted[0].id == wanted[1].id) == ("tool_use", False)
    assert (refused.stop_reason, refused.content) == ("refusal", [])
    assert refused.stop_details is not None
    assert refused.stop_details.category == "bio"


def test_a_stream_comes_to_the_same_message() -> None:
    """What the SDK puts together from the events is the message that comes without a stream."""
    thought = {"type": "thinking", "thinking": "hm " * 20, "signature": "s"}
    calls = tools(("Read", {"path": "long " * 20}), ("Grep", {}), say="both of them, please")
    odd = {"type": "redacted_thinking", "data": "d"}
    script = ScriptedReply((thought, odd, *calls.content), "tool_use")
    with served(script) as (_, client):
        whole = client.messages.create(**ASK)
        with client.messages.stream(**ASK) as stream:
            kinds = [event.type for event in stream]
            put_together = stream.get_final_message()
    assert [b.model_dump(exclude={"id", "parsed_output"}) for b in put_together.content] == [
        b.model_dump(exclude={"id"}) for b in whole.content
    ]
    assert put_together.usage.output_tokens == whole.usage.output_tokens
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    assert {"input_json", "thinking", "signature"} <= set(kinds)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (403, anthropic.PermissionDeniedError),
        (404, anthropic.NotFoundError),
        (413, anthropic.APIStatusError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.APIStatusError),
    ],
)
def test_failures_are_the_sdks_errors(status: int, error: type[anthropic.APIStatusError]) -> None:
    """Each status becomes the SDK's error with the API's shape and its retry-after."""
    failure = Failure(status, "my words", retry_after=1.5)
    with served(failure) as (_, client), pytest.raises(error) as caught:
        client.messages.create(**ASK)
    assert caught.value.status_code == status
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["message"] == "my words"
    assert caught.value.response.headers["retry-after"] == "1.5"


@pytest.mark.parametrize("step", [Cut(text("x" * 500)), Cut(text("x"), None), Cut(text("x"), 10)])
def test_a_cut_reply_is_a_broken_connection(step: Step) -> None:
    """A reply that ends in the middle is never taken for a whole one."""
    with served(step) as (server, client), pytest.raises(anthropic.APIConnectionError):
        client.messages.create(**ASK)
    assert server.messages[0].end_of == "cut"


def test_streams_break_in_the_middle() -> None:
    """A stream that is cut or interrupted fails after its first pieces; without one it fails."""
    with served([Interrupt(text("words " * 20), events=5), Interrupt(text("w"))]) as (_, client):
        with client.messages.stream(**ASK) as stream:
            assert next(iter(stream.text_stream)).startswith("words")
            with pytest.raises(anthropic.APIStatusError, match="overloaded"):
                list(stream)
        with pytest.raises(anthropic.APIStatusError) as caught:
            client.messages.create(**ASK)
        assert caught.value.status_code == 529


def test_other_bodies_are_passed_on() -> None:
    """A proxy's page is an error; an error with the status of a success comes through as it is."""
    with served([html(), error_with_200("no")]) as (server, client):
        with pytest.raises(anthropic.InternalServerError):
            client.messages.create(**ASK)
        assert client.messages.create(**ASK).model_dump()["error"]["message"] == "no"
        assert [r.status for r in server.messages] == [502, 200]


def test_a_hang_ends_with_a_release_or_with_the_client() -> None:
    """A reply is held until it is released; a client that gives up is noticed."""
    script = [Hang(text("late")), Hang(text("never")), Hang(text("halves " * 30), at=300)]
    with served(script) as (server, client):
        results: list[str] = []
        asking = threading.Thread(
            target=lambda: results.append(str(client.messages.create(**ASK).stop_reason))
        )
        asking.start()
        assert server.wait_for(1)
        assert results == []
        server.release()
        asking.join()
        assert results == ["end_turn"]
        with pytest.raises(anthropic.APITimeoutError):
            client.with_options(timeout=0.05).messages.create(**ASK)
        assert server.wait_for(2)
        assert server.messages[1].wait() == "gone"
        server.release()
        with client.messages.stream(**ASK) as stream:
            assert "".join(stream.text_stream) == "halves " * 30


def test_a_growing_conversation_is_read_from_the_cache() -> None:
    """Each turn reads what the one before created, and an entry ends with its time."""
    clock = FakeClock()
    history = [{"role": "user", "content": "start"}]
    with served(text("answer"), now=clock.now) as (server, client):
        for turn in range(10):
            requested = {"messages": history, "system": [LONG], "cache_control": MARK}
            client.messages.create(**{**ASK, **requested})
            history += [
                {"role": "assistant", "content": "answer"},
                {"role": "user", "content": f"turn {turn}"},
            ]
            clock.advance(200)
        usages = [request.usage for request in server.messages]
        assert [u["cache_read_input_tokens"] > 0 for u in usages] == [False] + [True] * 9
        assert server.hit_rate >= 0.89
        clock.advance(300)
        overdue = client.messages.create(**{**ASK, "system": [LONG]})
        assert overdue.usage.cache_read_input_tokens == 0


def test_a_server_without_a_member_refuses_it() -> None:
    """What a local server does not know is answered with 400, wherever it stands."""
    without = ("output_config", "cache_control", "stream", "count_tokens", "models")
    shape = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    with served(text("fine"), without=without) as (server, client):
        for more in ({"output_config": shape}, {"system": [LONG]}, {"stream": True}):
            with pytest.raises(anthropic.BadRequestError, match="not permitted"):
                client.messages.create(**ASK, **more)
        for call in (client.models.list, lambda: client.messages.count_tokens(**_counted())):
            with pytest.raises(anthropic.NotFoundError):
                call()
        assert client.messages.create(**ASK).stop_reason == "end_turn"
        assert server.requests[-1].usage["input_tokens"] > 0


def test_tokens_are_counted_and_models_listed() -> None:
    """count_tokens agrees with the usage of the same request, and models are found by name."""
    with served(text("fine")) as (_, client):
        counted = client.messages.count_tokens(**_counted()).input_tokens
        assert counted == client.messages.create(**ASK).usage.input_tokens
        assert [model.id for model in client.models.list()] == list(MODELS)
        assert client.models.retrieve(MODELS[0]).id == MODELS[0]
        with pytest.raises(anthropic.NotFoundError):
            client.models.retrieve("other")
    with served(text("fine"), counting=error_with_200()) as (_, client):
        assert client.messages.count_tokens(**_counted()).input_tokens is None
    with (
        served(text("fine"), counting=lambda _: Failure(500)) as (_, client),
        pytest.raises(anthropic.InternalServerError),
    ):
        client.messages.count_tokens(**_counted())


def test_only_known_keys_are_let_in() -> None:
    """Another key, or a key shown in another way, is refused; the one that came is kept."""
    with served(text("fine"), keys=("secret",)) as (server, client):
        client.messages.create(**ASK)
        assert server.messages[0].key == "secret"
        with pytest.raises(anthropic.AuthenticationError):
            client.with_options(api_key="other").messages.create(**ASK)
    with (
        served(text("fine"), keys=("secret",), schemes=("x-api-key",)) as (_, client),
        pytest.raises(anthropic.AuthenticationError),
    ):
        client.messages.create(**ASK)


def test_what_is_too_long_is_refused_or_cut() -> None:
    """A prompt above the window and a body above 32 MB are refused; a reply ends at max_tokens."""
    with served(text("word " * 1000), window=1000) as (_, client):
        reply = client.messages.create(**ASK)
        assert (reply.stop_reason, reply.usage.output_tokens < 230) == ("max_tokens", True)
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
            client.messages.create(**ASK, system="x" * 5000)
        with pytest.raises(anthropic.APIStatusError) as caught:
            client.messages.create(**ASK, system="x" * (33 << 20))
        assert caught.value.status_code == 413


def _counted() -> dict[str, Any]:
    return {name: value for name, value in ASK.items() if name != "max_tokens"}


def test_a_drip_comes_piece_by_piece() -> None:
    """Each piece of a body waits for its release."""
    with served(Drip(text("drop " * 30), size=100)) as (server, client):
        server.release(1000)
        with client.messages.stream(**ASK) as stream:
            assert "".join(stream.text_stream) == "drop " * 30
