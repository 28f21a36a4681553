"""HTTP as the server speaks it, seen without any SDK."""

import socket
from http.client import HTTPConnection, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.messages import Cut, Hang, MessagesServer, Raw, messages_server, text

BODY = b'{ "model":"m", "max_tokens":9,\n "messages":[{"role":"user","content":"h\\u0069"}] }'


def ask(
    server: MessagesServer, body: bytes = BODY, path: str = "/v1/messages", **more: Any
) -> tuple[int, dict[str, str], bytes]:
    """Post a body and return status, headers and body of the answer."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    try:
        connection.request("POST", path, body, **more)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def raw(server: MessagesServer, *sent: bytes) -> bytes:
    """Send bytes as they are and return all that comes back."""
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), timeout=60) as connection:
        for part in sent:
            connection.sendall(part)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_chunked_bodies_are_read() -> None:
    """A body without a length is put together from its chunks."""
    with messages_server(text("fine")) as server:
        status, _, _ = ask(server, iter([BODY[:10], BODY[10:]]), encode_chunked=True)  # type: ignore[arg-type]
        assert (status, server.messages[0].body) == (200, BODY)


def test_half_a_request_is_none() -> None:
    """A client that leaves before its body ends, or talks no HTTP, gets no scripted answer."""
    with messages_server(text("fine")) as server:
        head = b"POST /v1/messages HTTP/1.1\r\nContent-Length: 99\r\n\r\n"
        assert raw(server, head, BODY[:20]) == b""
        assert b"400" in raw(server, b"rubbish and more rubbish\r\n\r\n")
        assert b"501" in raw(server, b"PUT / HTTP/1.1\r\n\r\n")
        assert ask(server, path="/v2")[0] == 404
        assert server.messages == []


@pytest.mark.parametrize(("at", "size"), [(0, 0), (7, 7), (0.5, None)])
def test_a_cut_body_has_the_bytes_that_were_asked_for(at: float, size: int | None) -> None:
    """So many bytes of the body come, less than its length promises."""
    with (
        messages_server(Cut(text("x" * 90), at)) as server,
        pytest.raises(IncompleteRead) as caught,
    ):
        ask(server)
    results = len(caught.value.partial)
    assert results == (caught.value.expected or 0 if size is None else size) or size is None
    assert (caught.value.expected or 0) > 0


def test_a_server_that_ends_leaves_nobody_waiting() -> None:
    """A hanging request ends with the server and is told as closed."""
    with messages_server(Hang(text("never"), at=5)) as server:
        where = urlsplit(server.url)
        client = socket.create_connection((where.hostname, where.port), timeout=60)
        head = b"POST /v1/messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(BODY)
        client.sendall(head + BODY)
        received = b""
        while not (results := received.partition(b"\r\n\r\n"))[2]:
            received += client.recv(65536)
        assert results[0].startswith(b"HTTP/1.1 200")
    with client:
        assert len(results[2] + b"".join(iter(lambda: client.recv(65536), b""))) == 5
    assert server.messages[0].end_of == "closed"


def test_a_client_that_leaves_during_the_answer_is_gone() -> None:
    """Writing to somebody who has left ends the request as gone."""
    with messages_server(Raw(b"x" * (64 << 20))) as server:
        where = urlsplit(server.url)
        with socket.create_connection((where.hostname, where.port), timeout=60) as client:
            head = b"POST /v1/messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(BODY)
            client.sendall(head + BODY)
            client.recv(12)
        assert server.messages[0].wait() == "gone"
