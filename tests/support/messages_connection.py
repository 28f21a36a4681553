"""HTTP connections to a scripted Messages server: requests in, scripted bytes out."""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol, Self

from msgspec import Struct

from tests.support.messages_gate import Passage, ReplyGate
from tests.support.messages_request import ReceivedMessage
from tests.support.messages_steps import Cut, Deliverable, Drip, Hang, Step, Whole

_CUT = "cut"
_HOST = "127.0.0.1"


class ReplyBody(Struct, frozen=True):
    """What a step comes to: a status, headers, and the body or the pieces of a stream."""

    status: int
    headers: Mapping[str, str]
    pieces: tuple[bytes, ...]
    streamed: bool = False


class Answering(Protocol):
    """What a connection needs of its server."""

    gate: ReplyGate
    on_end: Callable[[ReceivedMessage], None]

    def receive(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> ReceivedMessage:
        """Record a request."""
        ...

    def decide(self, request: ReceivedMessage) -> Step:
        """Return what it gets."""
        ...

    def render(self, request: ReceivedMessage, step: Whole) -> ReplyBody:
        """Return a step as bytes."""
        ...


class _LeftError(ConnectionError):
    """A connection ended before its reply did; ``end_of`` is what the request records of that."""

    def __init__(self, end_of: str) -> None:
        super().__init__(end_of)
        self.end_of = end_of


class MessagesConnection(BaseHTTPRequestHandler):
    """Serves one connection until either side ends it. Made by the server, in a thread."""

    protocol_version = "HTTP/1.1"
    server_version = "memd-testing"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = 0

    def __init__(self, connection: socket.socket, address: Any, server: Answering) -> None:
        self._server = server
        # BaseHTTPRequestHandler only hands its server through.
        super().__init__(connection, address, server)  # type: ignore[arg-type]

    def handle(self) -> None:
        """Serve requests until the connection ends."""
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def do_POST(self) -> None:
        """Answer a POST by the script."""
        self._serve(self._read())

    def do_GET(self) -> None:
        """Answer a GET by the script."""
        self._serve(b"")

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return the time of the answer for its header."""
        return super().date_time_string(time.time() if timestamp is None else timestamp)

    def log_message(self, *_: Any) -> None:
        """Say nothing: the requests are kept for the test."""

    def _read(self) -> bytes:
        """Return the body of a request. Raises _LeftError if the client left."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(iter(self._chunk, b""))
        size = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(size)
        if len(body) < size:
            raise _LeftError(Passage.GONE)
        return body

    def _chunk(self) -> bytes:
        """Return the next chunk of a body, empty at its end."""
        size = int(self.rfile.readline().split(b";")[0], 16)
        piece = self.rfile.read(size)
        self.rfile.readline()
        return piece

    def _serve(self, body: bytes) -> None:
        """Receive a request, follow its script, and note how it ended."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = self._server.receive(self.command, self.path, headers, body)
        try:
            self._follow(request, self._server.decide(request))
            request.end("answered")
        except _LeftError as left:
            self.close_connection = True
            request.end(left.end_of)
        except OSError:
            self.close_connection = True
            request.end("gone")
        finally:
            request.end("failed")  # a script's function raised: its error ends the thread
            self._server.on_end(request)

    def _follow(self, request: ReceivedMessage, step: Step) -> None:
        """Send what a step says, with its pause."""
        if not isinstance(step, Hang):
            self._deliver(request, step, _without_pause)
        elif step.at is None:
            self._wait(step.seconds)
            self._deliver(request, step.then, _without_pause)
        else:
            self._deliver(request, step.then, _pausing(step.at, lambda: self._wait(step.seconds)))

    def _deliver(self, request: ReceivedMessage, step: Deliverable, pace: "_Pace") -> None:
        """Send a reply whole, in drops or cut off, in the pieces that ``pace`` yields."""
        body = self._server.render(request, step.step if isinstance(step, Drip | Cut) else step)
        request.status = body.status
        pieces: Iterable[bytes] = body.pieces
        if isinstance(step, Drip):
            pieces = self._dripping(body, step)
        elif isinstance(step, Cut):
            if step.at is None:
                raise _LeftError(_CUT)
            content = b"".join(body.pieces)
            length = step.at if step.at >= 1 else step.at * len(content)
            pieces = (content[: int(length)],)
        self._send_head(body)
        for piece in pace(pieces):
            self._send(piece, chunked=body.streamed)
        if isinstance(step, Cut):
            raise _LeftError(_CUT)
        if body.streamed:
            self.wfile.write(b"0\r\n\r\n")

    def _dripping(self, body: ReplyBody, step: Drip) -> Iterable[bytes]:
        """Yield a reply in small pieces, with a pause before each."""
        content = b"".join(body.pieces)
        for start in range(0, len(content), step.size):
            self._wait(step.seconds)
            yield content[start : start + step.size]

    def _send_head(self, body: ReplyBody) -> None:
        """Send the status line and the headers."""
        self.send_response(body.status)
        for name, value in body.headers.items():
            self.send_header(name, value)
        if body.streamed:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(sum(map(len, body.pieces))))
        self.end_headers()

    def _send(self, piece: bytes, *, chunked: bool) -> None:
        """Send a piece of the body, as a chunk if the body is streamed."""
        if piece:  # an empty chunk would end the body
            chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
            self.wfile.write(chunk if chunked else piece)

    def _wait(self, seconds: float | None) -> None:
        """Wait until the test releases the reply. Raises _LeftError if the client left."""
        passage = self._server.gate.wait(self.connection, seconds)
        if passage is not Passage.RELEASED:
            raise _LeftError(passage)


_Pace = Callable[[Iterable[bytes]], Iterable[bytes]]


def _without_pause(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """Return the pieces of a reply as they are."""
    return pieces


def _pausing(at: int, wait: Callable[[], None]) -> _Pace:
    """Return a pace that waits once, after so many bytes."""

    def pace(pieces: Iterable[bytes]) -> Iterable[bytes]:
        """Yield a reply in two pieces, with a pause between."""
        content = b"".join(pieces)
        yield content[:at]
        wait()
        yield content[at:]

    return pace


class MessagesListener:
    """A context manager that listens on loopback; port 0 takes a free one.

    Nothing is left at its end: waits are ended, connections closed, threads joined.
    """

    def __init__(self, server: Answering, port: int = 0) -> None:
        self._server = server
        self._listener = socket.create_server((_HOST, port), backlog=128)
        self.url = f"http://{_HOST}:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()  # guards the open connections
        self._open: dict[threading.Thread, socket.socket] = {}  # connections by their threads
        self._closing = False
        self._accepting = threading.Thread(target=self._accept, name="messages accept", daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        self._server.gate.shut()
        # close() alone does not wake a thread that waits in accept; a connection does, everywhere.
        with suppress(OSError), socket.create_connection(self._listener.getsockname()):
            pass
        self._accepting.join()
        self._listener.close()
        with self._lock:
            still_open = dict(self._open)
            for connection in still_open.values():
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in still_open:
            thread.join()

    def _accept(self) -> None:
        """Accept connections until closed, each with a thread of its own."""
        while not self._closing:
            connection, address = self._listener.accept()
            thread = threading.Thread(
                target=self._serve,
                args=(connection, address),
                name=f"messages {address[1]}",
                daemon=True,
            )
            with self._lock:
                self._open = {t: c for t, c in self._open.items() if t.is_alive()}
                self._open[thread] = connection
                thread.start()

    def _serve(self, connection: socket.socket, address: tuple[str, int]) -> None:
        """Serve one connection, and close it."""
        try:
            MessagesConnection(connection, address, self._server)
        finally:
            with self._lock:
                connection.close()
