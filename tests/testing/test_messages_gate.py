"""Where replies wait."""

import socket
import threading
from collections.abc import Iterator

import pytest

from memd.testing.messages_gate import Gate, Passage


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return the server's and the client's end of a connection."""
    server, client = socket.socketpair()
    with server, client:
        yield server, client


def test_a_release_before_its_wait_is_kept(pair: tuple[socket.socket, socket.socket]) -> None:
    """Each release lets one wait pass, whichever comes first."""
    gate = Gate()
    gate.release(2)
    assert [gate.wait(pair[0], seconds) for seconds in (None, None, 0)] == [Passage.RELEASED] * 3
    passed: list[Passage] = []
    waiting = threading.Thread(target=lambda: passed.append(gate.wait(pair[0])))
    waiting.start()
    gate.release()
    waiting.join()
    assert passed == [Passage.RELEASED]


def test_who_hangs_up_is_noticed(pair: tuple[socket.socket, socket.socket]) -> None:
    """A wait ends when its client goes away, and takes no release with it."""
    server, client = pair
    client.close()
    gate = Gate()
    assert gate.wait(server) is Passage.GONE
    gate.release()
    with socket.socket() as other:
        assert gate.wait(other, 0) is Passage.RELEASED


def test_a_reset_connection_is_gone() -> None:
    """A client that resets its connection has gone away."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with server:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
            assert Gate().wait(server) is Passage.GONE


def test_a_client_that_talks_on_has_not_gone(pair: tuple[socket.socket, socket.socket]) -> None:
    """Bytes of a next request do not end the wait."""
    server, client = pair
    client.send(b"GET")
    assert Gate().wait(server, 0.01) is Passage.RELEASED
    assert server.recv(3) == b"GET"


def test_a_shut_gate_ends_every_wait(pair: tuple[socket.socket, socket.socket]) -> None:
    """Waits now and later end as closed."""
    gate = Gate()
    passed: list[Passage] = []
    waiting = threading.Thread(target=lambda: passed.append(gate.wait(pair[0])))
    waiting.start()
    gate.shut()
    waiting.join()
    assert [*passed, gate.wait(pair[0])] == [Passage.CLOSED] * 2
