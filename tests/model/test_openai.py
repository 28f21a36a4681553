"""A server of the OpenAI chat form as a model, over real HTTP."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from memd.base.settings import ModelSettings
from memd.model import errors
from memd.model.configured import Models
from memd.model.openai import ChatServer
from memd.model.port import Usage
from tests.model.asks import ask
from tests.support.clock import FakeClock
from tests.support.messages import MessagesServer, ReplyBody, messages_server, text
from tests.support.steps import (
    Cut,
    Failure,
    Hang,
    Raw,
    ReceivedMessage,
    Script,
    ScriptedReply,
    Step,
    Whole,
)

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
KEY = "sk-secret-1234567890"


class ChatRecorder(MessagesServer):
    """A recorder whose requests and replies have the OpenAI chat form."""

    @property
    def messages(self) -> list[ReceivedMessage]:
        """The requests for a completion, in order of arrival."""
        return [r for r in self.requests if r.route == "/v1/chat/completions"]

    def decide(self, request: ReceivedMessage) -> Step:
        """Return the step with which a request is answered."""
        if request not in self.messages or (self.keys and request.key not in self.keys):
            return super().decide(request)
        unknown = [name for name in request.json if name in self.without]
        if unknown:
            return Failure(400, f"Unsupported parameter: '{unknown[0]}'")
        return self.next_step(request)

    def render(self, request: ReceivedMessage, step: Whole) -> ReplyBody:
        """Return a step as bytes."""
        if not isinstance(step, ScriptedReply):
            return super().render(request, step)
        words = "".join(block["text"] for block in step.content)
        choice = {"message": {"role": "assistant", "content": words}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, **step.usage}
        return super().render(
            request, Raw(json.dumps({"choices": [choice], "usage": usage}).encode())
        )


@asynccontextmanager
async def serving(
    script: Script, *, path: str = "", **options: Any
) -> AsyncIterator[tuple[ChatServer, MessagesServer]]:
    """Serve a script; give the model that settings with its address name."""
    models = Models({}, FakeClock())
    with messages_server(script, kind=ChatRecorder, **options) as server:
        named = ModelSettings(provider="openai", base_url=f"{server.url}{path}", api_key=KEY)
        made = models._backend(named)  # without what tries again
        assert isinstance(made, ChatServer)
        yield made, server
        await models.aclose()


@pytest.mark.parametrize("path", ["", "/v1", "/v1/"])
async def test_a_request_is_plain_text(path: str) -> None:
    """The system text comes first, blocks are texts, and what was used comes back."""
    script = ScriptedReply(
        ({"type": "text", "text": "hi"},), usage={"prompt_tokens_details": {"cached_tokens": 3}}
    )
    heard: list[Usage] = []
    async with serving(script, path=path, keys=[KEY]) as (model, server):
        blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
        said = ({"role": "user", "content": blocks},)
        reply = await model.ask(ask(system="Be brief.", messages=said, model="q"), heard.append)
        assert await model.reach(5) is None
    sent = server.messages[0].json
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "one\n\ntwo"},
    ]
    assert (sent["model"], sent["max_tokens"], sent["stream"]) == ("q", 100, False)
    assert (reply.text, reply.stop, reply.usage.cache_read) == ("hi", "end_turn", 3)
    assert heard == [reply.usage]


async def test_what_a_server_refuses_is_left_out_once() -> None:
    """A form of JSON is asked for in words, a length by its other name; and so from then on."""
    async with serving(text("{}"), without=["response_format", "max_tokens"]) as (model, server):
        await model.ask(ask(schema=SCHEMA))
        await model.ask(ask(schema=SCHEMA))
    assert len(server.messages) == 4
    for request in server.messages[2:]:
        assert "properties" in request.json["messages"][-1]["content"]
        assert request.json["max_completion_tokens"] == 100
        assert "max_tokens" not in request.json


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (Failure(401, f"bad key {KEY}"), errors.ModelUnauthorisedError),
        (Failure(404, "no such model"), errors.ModelRefusedError),
        (Failure(400, "maximum context length is 8192 tokens"), errors.PromptTooLongError),
        (Failure(429, retry_after=3), errors.ModelBusyError),
        (Failure(500), errors.ModelUnavailableError),
        (Raw(b"<html>"), errors.ModelReplyError),
        (Raw(b"[" * 100_000), errors.ModelReplyError),
        (Raw(b'{"choices": []}'), errors.ModelReplyError),
        (Raw(b'{"choices": [{"message": {"content": null}}]}'), errors.ModelReplyError),
        (Raw(b'{"choices": {"0": 1}, "usage": [1]}'), errors.ModelReplyError),
        (Raw(b'{"error": {"message": "overloaded", "code": 5}}'), errors.ModelRefusedError),
        (Raw(b"x" * (4 * 1024 * 1024 + 1)), errors.ModelReplyError),
        (Raw(b"", status=302, headers={"Location": "http://127.0.0.1:1/"}), errors.ModelError),
        (Cut(text("hi"), at=0.5), errors.ModelUnavailableError),
        (Cut(text("hi")), errors.ModelUnavailableError),
        (Hang(text("hi")), errors.ModelUnavailableError),
    ],
)
async def test_a_bad_reply_is_one_known_error(step: object, error: type) -> None:
    """Whatever a server answers, the error has a class and no key in it."""
    async with serving([step]) as (model, server):  # type: ignore[list-item]
        with pytest.raises(error) as raised:
            await model.ask(ask(seconds=1.0 if isinstance(step, Hang) else 60.0))
        assert KEY not in str(raised.value)
        assert len(server.messages) == 1
