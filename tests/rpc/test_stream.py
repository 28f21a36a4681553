"""A connected socket on the loop."""

import socket

import anyio
import pytest

from memd.rpc.stream import Stream

pytestmark = pytest.mark.anyio


async def test_a_cancelled_receive_loses_nothing() -> None:
    """A reader that was cancelled while it waited finds what came afterwards."""
    left, right = (Stream(end) for end in socket.socketpair())
    with anyio.move_on_after(0) as scope:
        await right.receive(10)
    assert scope.cancelled_caught
    await left.send(b"late")
    assert await right.receive(10) == b"late"
    left.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        await left.send(b"x")
    assert await right.receive(10) == b""
    right.close()
