"""The relay of the team's tests loses, halves, doubles and delays what it is told to."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.team.relay import Relay, relay


@contextmanager
def counting() -> Iterator[tuple[str, list[bytes]]]:
    """Serve a program that notes each body and answers with their number."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        """Answers each PUT."""

        def do_PUT(self) -> None:
            """Note the body."""
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"%010d" % len(bodies))

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def put(through: Relay, body: bytes) -> tuple[int, bytes]:
    """Send a body; a status of 0 stands for no whole answer."""
    connection = http.client.HTTPConnection(through.url.removeprefix("http://"), timeout=60)
    try:
        connection.request("PUT", "/x", body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("word", "arrives", "status"),
    [("pass", 1, 200), ("lose", 0, 0), ("mute", 1, 0), ("half", 1, 0), ("double", 2, 200),
     ("503", 0, 503), ("keep", 0, 0)],
)  # fmt: skip
def test_each_word_does_what_it_says(word: str, arrives: int, status: int) -> None:
    """So often a request arrives, and this is what the client gets; the next one passes."""
    with counting() as (address, bodies), relay(address) as between:
        between.plan.append(word)
        assert put(between, b"one")[0] == status
        assert bodies == [b"one"] * arrives
        assert put(between, b"two") == (200, b"%010d" % (arrives + 1))
        between.release()
        assert bodies.count(b"one") == arrives + (word == "keep")
        between.gone = True
        assert put(between, b"three") == (0, b"")
        assert [status for _, status in between.seen][1:] == [200, 0]
