"""The client's end of the wire, back to back with the server's."""

import json

from hypothesis import given
from hypothesis import strategies as st

from memd.client import wire
from memd.rpc.conversation import Conversation, RpcRequest, Work
from memd.rpc.framing import FrameReader, Framing, encode


def test_the_two_ends_understand_each_other() -> None:
    """What the client writes is work for the server, and its answer is read by the client."""
    frames = FrameReader()
    (frame,) = frames.feed(wire.request(3, "m", {"text": "ü\n\u2028"}))
    assert frames.framing is Framing.LINES
    (work,) = Conversation().receive(frame)
    assert work == Work((RpcRequest("m", {"text": "ü\n\u2028"}, 3),))
    reply = {"jsonrpc": "2.0", "id": 3, "result": ["ü"]}
    (line,) = wire.LineBuffer().feed(encode(frames.framing, json.dumps(reply).encode()))
    assert wire.read(line) == wire.RpcAnswer(3, ["ü"], None)


def test_notifications_are_told_apart() -> None:
    """A message with a method is a notification, with or without parameters."""
    assert wire.read(wire.notification("x", {"a": 1})) == wire.Notification("x", {"a": 1})
    assert wire.read(b'{"method":"x","params":null}') == wire.Notification("x", {})
    assert wire.read(b"[]") == wire.RpcAnswer(None, None, None)


@given(st.lists(st.binary(min_size=1, max_size=20)), st.integers(1, 9))
def test_lines_survive_any_cutting(bodies: list[bytes], size: int) -> None:
    """However the bytes are cut, the same lines come out."""
    lines = [b"x" + body.replace(b"\n", b"") for body in bodies]
    data = b"".join(line + b"\n" for line in lines)
    buffer = wire.LineBuffer()
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    assert [line for chunk in chunks for line in buffer.feed(chunk)] == lines
    assert buffer.feed(b"\n \n") == []
