"""A relay between a client and a server of HTTP that loses, cuts, doubles and delays messages.

It reads each request whole and each answer whole, so that everything it does happens at the border
of a message. What it does with the next requests is its ``plan``, one word a request:

- ``pass``: as if it was not there;
- ``lose``: the request never arrives;
- ``keep``: the client gives up, and the request arrives when ``release`` is called;
- ``mute``: the request arrives, the answer is lost;
- ``unheard``: the answer to the next request that changes something is lost;
- ``half``: the request arrives, half of the answer's body does;
- ``double``: the request arrives twice, the first answer is lost;
- a number: the relay answers with this status itself.
"""

import gzip
import http.client
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FAULTS = ("lose", "keep", "mute", "unheard", "half", "double", "429", "503")
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as it came, without what belongs to one connection."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def changes(self) -> bool:
        """Whether it is one that may change something."""
        return self.method not in {"GET", "HEAD"}


@dataclass(slots=True)
class Answer:
    """One answer as it came."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        """What the body says."""
        zipped = ("content-encoding", "gzip") in {(n.lower(), v) for n, v in self.headers}
        return json.loads(gzip.decompress(self.body) if zipped else self.body)


@dataclass
class Relay:
    """What it does next, what it has seen, and where it sends it: a host with port.

    ``seen`` has each request with its status, 0 where no answer came. ``gone`` refuses all.
    ``before`` is called with each request before anything is done with it, ``after`` with each
    answer that went to the client whole.
    """

    upstream: str
    plan: deque[str] = field(default_factory=deque)
    seen: list[tuple[Sent, int]] = field(default_factory=list)
    kept: list[Sent] = field(default_factory=list)
    gone: bool = False
    before: Callable[[Sent], None] | None = None
    after: Callable[[Sent, Answer], None] | None = None
    url: str = ""

    def ask(self, request: Sent) -> Answer:
        """Send a request to the server and return its answer. Raises OSError."""
        connection = http.client.HTTPConnection(self.upstream, timeout=_SECONDS)
        try:
            headers = {**request.headers, "Host": self.upstream}
            connection.request(request.method, request.path, request.body, headers)
            answer = connection.getresponse()
            body = answer.read()
        except http.client.HTTPException as error:
            raise OSError(repr(error)) from error
        else:
            pairs = [(n, v) for n, v in answer.getheaders() if n.lower() not in _HOP]
            return Answer(answer.status, pairs, body)
        finally:
            connection.close()

    def release(self) -> list[int]:
        """Let what was kept arrive, the last first; return the statuses."""
        kept, self.kept = self.kept, []
        statuses = []
        for request in reversed(kept):
            with suppress(OSError):
                statuses.append(self.ask(request).status)
        return statuses

    def deal(self, request: Sent) -> tuple[Answer | None, bool]:
        """Do with a request what the plan says; return the answer and whether half of it goes."""
        if self.before is not None:
            self.before(request)
        if self.gone:
            return None, False
        word = self.plan.popleft() if self.plan else "pass"
        if word == "unheard":
            word = "mute" if request.changes else "pass"
            self.plan.extendleft(["unheard"] * (word == "pass"))
        if word.isdigit():
            return _own(int(word)), False
        if word == "keep":
            self.kept.append(request)
        if word in {"keep", "lose"}:
            return None, False
        try:
            answer = self.ask(request)
            if word == "double":
                answer = self.ask(request)
        except OSError:
            return None, False
        return (None if word == "mute" else answer), word == "half"


def _own(status: int) -> Answer:
    error = {"kind": "slow_down", "message": "from the relay", "retryable": True}
    headers = [("Content-Type", "application/json"), ("Retry-After", "1")]
    return Answer(status, headers, json.dumps({"error": error}).encode())


@contextmanager
def relay(upstream: str) -> Iterator[Relay]:
    """Relay to a host with port until the end of the block."""
    made = Relay(upstream)

    class Handler(BaseHTTPRequestHandler):
        """Reads one request, and writes what the relay lets through."""

        protocol_version = "HTTP/1.1"
        timeout = _SECONDS

        def handle_one_request(self) -> None:
            """Read a request of any method; a connection that breaks is nobody's error."""
            with suppress(OSError):
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                self._pass_on()
                return
            self.close_connection = True

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {n: v for n, v in self.headers.items() if n.lower() not in {*_HOP, "host"}}
            request = Sent(self.command, self.path, headers, body)
            answer, half = made.deal(request)
            made.seen.append((request, answer.status if answer else 0))
            self.close_connection = True  # what comes next is looked at on its own
            if answer is not None:
                body = answer.body[: len(answer.body) // 2] if half else answer.body
                if made.after is not None and not half:
                    made.after(request, answer)
                self.wfile.write(_head(answer) + body)
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="relay")
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _head(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {http.client.responses.get(answer.status, '')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines += [f"Content-Length: {len(answer.body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")
