"""Programs of the SDK's users, for tests of the middleware: every way to send a conversation."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import anyio
from anthropic import Anthropic, AsyncAnthropic

from memd.client.context import Keeper

MODEL = "claude-haiku-5-5"
Body = dict[str, Any]
Send = Callable[[str, Keeper | None, Body], str]
LINE = "a line of output of a tool\n"
LARGE = LINE * 4_000  # more than any tool's limit


def history(*results: str, tool: str = "report") -> list[dict[str, Any]]:
    """Return a conversation in which a tool was called for each of some results."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
    for number, result in enumerate(results):
        call = f"toolu_{number}"
        used = {"type": "tool_use", "id": call, "name": tool, "input": {}}
        answered = {"type": "tool_result", "tool_use_id": call, "content": result}
        messages += [
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [answered]},
        ]
    return messages


def body(messages: list[dict[str, Any]], *keepers: Keeper, **members: Any) -> Body:
    """Return a request for a conversation, with the reader tool of a keeper."""
    schema = {"type": "object", "properties": {}}
    tools: list[Any] = [{"name": "report", "description": "Report.", "input_schema": schema}]
    tools += [keeper.reader_tool().to_dict() for keeper in keepers]
    return {"model": MODEL, "max_tokens": 100, "messages": messages, "tools": tools, **members}


def blocking(url: str, keeper: Keeper | None, retries: int = 0) -> Any:
    """Return a blocking client of a server."""
    middleware = [] if keeper is None else [keeper]
    return Anthropic(base_url=url, api_key="k", middleware=middleware, max_retries=retries)


def asynchronous(url: str, keeper: Keeper | None, retries: int = 0) -> Any:
    """Return an async client of a server."""
    middleware = [] if keeper is None else [keeper]
    return AsyncAnthropic(base_url=url, api_key="k", middleware=middleware, max_retries=retries)


def _text(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def _create(url: str, keeper: Keeper | None, given: Body) -> str:
    with blocking(url, keeper) as client:
        return _text(client.messages.create(**given))


def _parse(url: str, keeper: Keeper | None, given: Body) -> str:
    with blocking(url, keeper) as client:
        return _text(client.beta.messages.parse(**given))


def _events(url: str, keeper: Keeper | None, given: Body) -> str:
    with blocking(url, keeper) as client:
        events = client.messages.create(**given, stream=True)
        return "".join(getattr(getattr(event, "delta", None), "text", "") for event in events)


def _stream(url: str, keeper: Keeper | None, given: Body) -> str:
    with blocking(url, keeper) as client, client.beta.messages.stream(**given) as stream:
        return str(stream.get_final_text())


def _raw(url: str, keeper: Keeper | None, given: Body) -> str:
    with blocking(url, keeper) as client:
        return _text(client.messages.with_raw_response.create(**given).parse())


def _unread(url: str, keeper: Keeper | None, given: Body) -> str:
    with (
        blocking(url, keeper) as client,
        client.messages.with_streaming_response.create(**given) as response,
    ):
        return _text(response.parse())


def _create_async(url: str, keeper: Keeper | None, given: Body) -> str:
    async def send() -> str:
        async with asynchronous(url, keeper) as client:
            return _text(await client.beta.messages.create(**given))

    return anyio.run(send)


def _stream_async(url: str, keeper: Keeper | None, given: Body) -> str:
    async def send() -> str:
        async with (
            asynchronous(url, keeper) as client,
            client.messages.stream(**given) as stream,
        ):
            return str(await stream.get_final_text())

    return anyio.run(send)


WAYS: Mapping[str, Send] = {
    "create": _create,
    "parse": _parse,
    "events": _events,
    "stream": _stream,
    "raw": _raw,
    "unread": _unread,
    "create_async": _create_async,
    "stream_async": _stream_async,
}


def sent_by(way: str, url: str, keeper: Keeper | None, given: Body) -> str:
    """Send a request in one of the ways and return the reply's text; it is not changed."""
    before = copy.deepcopy(given)
    result = WAYS[way](url, keeper, given)
    assert given == before
    return result
