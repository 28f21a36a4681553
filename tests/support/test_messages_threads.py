"""Sockets and threads of the server."""

import socket
import threading
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.support.messages import messages_server, text
from tests.support.messages_request import ReceivedMessage
from tests.support.messages_steps import Step


def test_nothing_is_left() -> None:
    """With the block end the port, all connections and all threads, idle ones too."""
    before = set(threading.enumerate())
    with messages_server(text("fine")) as server:
        idle = HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        idle.request("GET", "/v1/models")
        assert idle.getresponse().read()
        where = urlsplit(server.url)
        silent = socket.create_connection((where.hostname, where.port))
    idle.close()
    silent.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((where.hostname, where.port))


class ScriptFailedError(Exception):
    """What a script's own function raises."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_script_that_fails_is_heard_of() -> None:
    """An error in a script's function ends its connection and comes out of its thread."""

    def broken(_: ReceivedMessage) -> Step:
        raise ScriptFailedError

    with messages_server(broken) as server:
        connection = HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        body = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
        connection.request("POST", "/v1/messages", body)
        with pytest.raises(ConnectionError):
            connection.getresponse()
        connection.close()
    assert server.messages[0].end_of == "failed"
