"""Bytes for the socket as no client would send them, and what comes back."""

import json
import re
import socket
from contextlib import suppress
from typing import Any

from tests.net.kit import Home
from tests.net.wire import SECONDS, connect

GOOD = b'{"jsonrpc":"2.0","id":"good","method":"hello","params":{}}'
_STATUS = rb"HTTP/1\.1 200 OK\r\nContent-Type: application/json\r\n"
_HEADER = re.compile(rb"(?:%b)?Content-Length: (\d+)\r\n\r\n" % _STATUS)
_INSIDE = ("Traceback (most recent call last)", '.py", line ', '.py\\", line ')


def raw(home: Home) -> socket.socket:
    """Return a connection that has said nothing."""
    connection = connect(home.socket)
    connection.settimeout(SECONDS)
    return connection


def request(method: str, identity: Any = 1, **params: Any) -> bytes:
    """Return a request as one line without its end."""
    message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
    return json.dumps(message).encode()


def headed(body: bytes) -> bytes:
    """Return a frame with a header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def posted(body: bytes) -> bytes:
    """Return a request of HTTP as clients send it."""
    head = b"POST /any HTTP/1.1\r\nHost: memd\r\nAccept: */*\r\ncontent-length: %d\r\n\r\n%b"
    return head % (len(body), body)


def lined(body: bytes) -> bytes:
    """Return a frame that is a line."""
    return body + b"\n"


FRAMINGS = {"line": lined, "header": headed, "HTTP": posted}


def exchanged(home: Home, data: bytes) -> bytes:
    """Send bytes, end this side, and return what comes until the daemon ends its side."""
    with raw(home) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        return rest(connection)


def rest(connection: socket.socket) -> bytes:
    """Return what a connection brings until it is closed."""
    received = bytearray()
    with suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            received += part
    return bytes(received)


def answers(data: bytes) -> list[dict[str, Any]]:
    """Return the answers that some bytes are; nothing else may be among them."""
    return [answer for body in bodies(data) for answer in _checked(json.loads(body))]


def bodies(data: bytes) -> list[bytes]:
    """Return the bodies of frames; each is whole, and nothing stands between them."""
    result, at = [], 0
    while at < len(data):
        header = _HEADER.match(data, at)
        start = header.end() if header else at
        end = start + int(header[1]) if header else data.index(b"\n", at)
        assert end <= len(data)
        result.append(data[start:end])
        at = end if header else end + 1
    return result


def _checked(value: Any) -> list[dict[str, Any]]:
    assert value != []
    found: list[dict[str, Any]] = value if isinstance(value, list) else [value]
    for answer in found:
        assert set(answer) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), answer
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] is None or type(answer["id"]) in (str, int, float)
        if "error" in answer:
            assert type(answer["error"]["code"]) is int, answer
            assert answer["error"]["message"], answer
            assert not any(words in json.dumps(answer) for words in _INSIDE), answer
    return found
