"""The connection as a handler sees it."""

import json
from typing import Any

import pytest

from memd.core import limits
from memd.core.events import Event
from memd.core.values import Caller
from memd.rpc.connection import Call, Connection
from memd.rpc.conversation import Token
from memd.rpc.framing import Framing


def made() -> tuple[Connection, list[str]]:
    """Return a connection and the list of what it asked its session to do."""
    asked: list[str] = []
    caller = Caller(connection=1, uid=0, pid=1)
    return Connection(caller, lambda: asked.append("wake"), lambda: asked.append("drop")), asked


def sent(connection: Connection) -> list[Any]:
    """Return the messages that wait to be sent, as JSON values."""
    return [json.loads(frame.split(b"\r\n\r\n")[-1]) for frame in connection.outbox.drain()]


def test_a_subscription_names_topics_and_a_directory() -> None:
    """Events of a topic come for one directory, for several, or for all."""
    connection, _ = made()
    event = Event("memory.changed", "/a", {})
    assert not connection.wants(event)
    connection.subscribe(["memory.changed"], "/b")
    assert not connection.wants(event)
    connection.subscribe(["memory.changed"], "/a")
    assert connection.wants(event)
    connection.subscribe(["job.done"])
    assert connection.wants(Event("job.done", "/anywhere", {}))
    assert connection.topics == {"memory.changed", "job.done"}


def test_a_subscription_ends_by_directory_or_as_a_whole() -> None:
    """Unsubscribing one directory leaves the others; without one the topic is over."""
    connection, _ = made()
    connection.subscribe(["t"], "/a")
    connection.subscribe(["t"], "/b")
    connection.unsubscribe(["t", "never"], "/a")
    assert not connection.wants(Event("t", "/a", {}))
    assert connection.wants(Event("t", "/b", {}))
    connection.unsubscribe(["t", "never"])
    assert connection.topics == frozenset()


def test_messages_go_in_the_peers_framing() -> None:
    """A notification is framed as the peer frames, and wakes the session."""
    connection, asked = made()
    connection.framing = Framing.HEADERS
    connection.notify("x", {"a": 1})
    (frame,) = connection.outbox.drain()
    assert frame == b'Content-Length: 47\r\n\r\n{"jsonrpc":"2.0","method":"x","params":{"a":1}}'
    assert asked == ["wake"]


def test_a_peer_that_does_not_read_is_dropped_once() -> None:
    """Beyond the reply queue nothing is queued any more and the session is told once."""
    connection, asked = made()
    for _ in range(6):
        connection.send(b"x" * (limits.REPLY_QUEUE_BYTES // 4))
    assert connection.outbox.dropped
    assert asked == ["wake", "wake", "wake", "drop"]
    assert connection.outbox.bytes == 0


@pytest.mark.anyio
async def test_progress_goes_to_the_token_that_was_given() -> None:
    """With a token a handler's progress is a notification, without one it is nothing."""
    connection, _ = made()
    await Call(connection).progress({"done": 1})
    assert sent(connection) == []
    await Call(connection, 1, Token("t", mcp=False)).progress({"done": 1})
    assert sent(connection) == [
        {"jsonrpc": "2.0", "method": "$/progress", "params": {"token": "t", "value": {"done": 1}}}
    ]
