"""Who is on the other end."""

import socket
import subprocess
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


def test_another_system_is_told_apart_when_it_is_imported() -> None:
    """On a platform that does not report hang-ups nobody is called gone."""
    code = (
        "import sys, socket; sys.platform = 'other'\n"
        "from memd.rpc.peer import is_gone\n"
        "left, right = socket.socketpair(); right.close(); print(is_gone(left))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
