"""Who is on the other end."""

import socket
import sys

import pytest

from memd.rpc.peer import is_gone


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the two ends apart")
def test_a_closed_peer_is_gone_and_a_half_closed_one_is_not() -> None:
    """Ending one's sending side is not leaving."""
    left, right = socket.socketpair()
    with left:
        assert not is_gone(left)
        right.shutdown(socket.SHUT_WR)
        assert not is_gone(left)
        right.close()
        assert is_gone(left)
