"""A recorder of the Messages API on loopback that also fails in every way, for tests beside memd.

    with messages_server([text("hello"), Failure(529)]) as server:
        ...  # give server.url to a client as its base URL
        assert server.messages[0].json["model"] == "claude-haiku-5-5"

``tests/net/recorder.py`` is the one for tests at the doors; this one has its blocks and streams.
"""

import json
import select
import socket
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct

from tests.net.recorder import events
from tests.support.api_rules import broken
from tests.support.steps import (
    Cut,
    Drip,
    Failure,
    Hang,
    Raw,
    ReceivedMessage,
    Script,
    ScriptedReply,
    Step,
    Whole,
)
from tests.support.steps import structured as structured
from tests.support.steps import text as text
from tests.support.steps import tools as tools

MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
STREAM = "text/event-stream"
CUT, GONE, CLOSED = "cut", "gone", "closed"  # how a reply ends before its time
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class ReplyBody(Struct, frozen=True):
    """What a step comes to: a status, headers, and the body or the pieces of a stream."""

    status: int
    headers: Mapping[str, str]
    pieces: tuple[bytes, ...]


class MessagesServer:
    """The recorder; ``messages_server`` makes one that listens.

    ``script`` is one answer for ever, or a list of answers in order of arrival; an answer is a step
    or a function of the request that returns one. ``without`` names members that it does not know,
    and ``models`` where it lists none. ``keys`` are the credentials that are let in.
    """

    def __init__(
        self, script: Script, *, without: Collection[str] = (), keys: Collection[str] | None = None
    ) -> None:
        self.url = ""  # set once it listens
        self.requests: list[ReceivedMessage] = []  # in order of arrival
        self.without = without
        self.permits = threading.Semaphore(0)
        self._script = script
        self.keys = keys
        self._used_steps = 0  # of a script that is a list
        self._changed = threading.Condition()  # guards the requests and the used steps

    @property
    def messages(self) -> list[ReceivedMessage]:
        """The requests to POST /v1/messages, in order of arrival."""
        return [r for r in self.requests if (r.method, r.route) == ("POST", "/v1/messages")]

    def release(self) -> None:
        """Let one wait of a ``Hang`` or ``Drip`` go on, now or when it comes."""
        self.permits.release()

    def wait_for(self, requests: int, seconds: float = 60.0) -> bool:
        """Return whether so many requests of any kind have come in so many seconds. Blocks."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= requests, seconds)

    def receive(self, method: str, path: str, headers: Any, body: bytes) -> ReceivedMessage:
        """Record a request."""
        with self._changed:
            lower = {name.lower(): value for name, value in headers.items()}
            request = ReceivedMessage(len(self.requests) + 1, method, path, lower, body)
            self.requests.append(request)
            self._changed.notify_all()
        return request

    def decide(self, request: ReceivedMessage) -> Step:
        """Return what a request gets."""
        if self.keys is not None and request.key not in self.keys:
            return Failure(401)
        if request.method == "GET" and "models" not in self.without:
            return _models(request.route)
        if not request.route.startswith("/v1/messages"):
            return Failure(404)
        body = request.json
        unknown = [name for name in self.without if f'"{name}":' in request.body.decode()]
        fault = f"{unknown[0]}: Extra inputs are not permitted" if unknown else ""
        if fault := fault or broken(body, request.betas if "thread" not in body else None):
            return Failure(400, fault)
        if request.route.endswith("count_tokens"):
            return Raw(json.dumps({"input_tokens": len(request.body) // 4}).encode())
        return self.next_step(request)

    def next_step(self, request: ReceivedMessage) -> Step:
        """Return the script's next step."""
        answer = self._script
        if isinstance(answer, Sequence):
            with self._changed:
                index, self._used_steps = self._used_steps, self._used_steps + 1
            answer = answer[index] if index < len(answer) else Failure(418, "the script is over")
        return answer(request) if callable(answer) else answer

    def render(self, request: ReceivedMessage, step: Whole) -> ReplyBody:
        """Return a step as bytes."""
        if isinstance(step, Raw):
            return ReplyBody(
                step.status, {"Content-Type": step.content_type, **step.headers}, (step.body,)
            )
        if isinstance(step, Failure):
            after = {} if step.retry_after is None else {"Retry-After": f"{step.retry_after:g}"}
            error = {"type": _ERRORS.get(step.status, "api_error"), "message": step.message}
            body = json.dumps({"type": "error", "error": error}).encode()
            return ReplyBody(step.status, {"Content-Type": "application/json", **after}, (body,))
        message = _message(request, step)
        if not request.json.get("stream"):
            body = json.dumps(message).encode()
            return ReplyBody(200, {"Content-Type": "application/json"}, (body,))
        pieces = (
            f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events(message)
        )
        return ReplyBody(200, {"Content-Type": STREAM}, tuple(pieces))


@contextmanager
def messages_server(
    script: Script, *, kind: type[MessagesServer] = MessagesServer, **options: Any
) -> Iterator[MessagesServer]:
    """Serve a script on loopback while the block runs; ``kind`` is a recorder in another form."""
    server = kind(script, **options)
    closing = threading.Event()
    handler = type("Handler", (_Connection,), {"recorder": server, "closing": closing})
    listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    listener.daemon_threads = True
    server.url = f"http://127.0.0.1:{listener.server_port}"
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        closing.set()
        listener.shutdown()
        listener.server_close()


class _LeftError(ConnectionError):
    """A connection ended before its reply did; the argument says how."""


class _Connection(BaseHTTPRequestHandler):
    recorder: MessagesServer
    closing: threading.Event
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def handle(self) -> None:
        with suppress(OSError):
            super().handle()

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self._serve(self.rfile.read(int(self.headers.get("content-length") or 0)))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return self._serve(b"".join(pieces))

    def _serve(self, body: bytes) -> None:
        request = self.recorder.receive(self.command, self.path, self.headers, body)
        try:
            self._follow(request, self.recorder.decide(request))
            request.end("answered")
        except OSError as error:
            self.close_connection = True
            request.end(str(error) if isinstance(error, _LeftError) else GONE)
        finally:
            request.end("failed")  # a script's function raised: its error ends the thread

    def _follow(self, request: ReceivedMessage, step: Step) -> None:
        hang = step if isinstance(step, Hang) else None
        if isinstance(step, Hang):
            step = step.then
        if hang and hang.at is None:
            self._wait(hang.seconds)
        reply = self.recorder.render(request, step.step if isinstance(step, Drip | Cut) else step)
        request.status = reply.status
        if isinstance(step, Cut) and step.at is None:
            raise _LeftError(CUT)
        content = b"".join(reply.pieces)
        is_stream = reply.headers.get("Content-Type") == STREAM
        self.send_response(reply.status)
        length = (
            ("Transfer-Encoding", "chunked") if is_stream else ("Content-Length", f"{len(content)}")
        )
        for name, value in (*reply.headers.items(), length):
            self.send_header(name, value)
        self.end_headers()
        for number, piece in enumerate(_cut(reply.pieces, content, step, hang)):
            if isinstance(step, Drip):
                self._wait(step.seconds)
            elif hang and hang.at is not None and number:
                self._wait(hang.seconds)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if is_stream else piece)
        if isinstance(step, Cut):
            raise _LeftError(CUT)
        if is_stream:
            self.wfile.write(b"0\r\n\r\n")

    def _wait(self, seconds: float | None) -> None:
        """Wait for a release or so many seconds. Raises _LeftError if the client leaves."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self.recorder.permits.acquire(timeout=0.0 if seconds == 0 else 0.01):
            if self.closing.is_set():
                raise _LeftError(CLOSED)
            if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(
                1, socket.MSG_PEEK
            ):
                raise _LeftError(GONE)
            if until is not None and time.monotonic() >= until:
                return


def _cut(pieces: Sequence[bytes], content: bytes, step: Step, hang: Hang | None) -> Sequence[bytes]:
    """Return a body in the pieces in which it goes out."""
    if isinstance(step, Cut):
        return [content[: int(len(content) * (step.at or 0))]]
    if isinstance(step, Drip):
        return [content[at : at + step.size] for at in range(0, len(content), step.size)]
    if hang and hang.at is not None:
        return [content[: hang.at], content[hang.at :]]
    return [piece for piece in pieces if piece]


def _message(request: ReceivedMessage, reply: ScriptedReply) -> dict[str, Any]:
    used = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    used |= {"input_tokens": len(request.body) // 4, "output_tokens": 1 + len(str(reply)) // 4}
    content = [
        {**block, "id": f"toolu_{request.number:06}_{number}"}
        if block["type"] == "tool_use"
        else dict(block)
        for number, block in enumerate(reply.content)
    ]
    return {
        "id": f"msg_{request.number:06}",
        "type": "message",
        "role": "assistant",
        "model": request.json["model"],
        "content": content,
        "stop_reason": reply.stop,
        "stop_sequence": None,
        "usage": {**used, **reply.usage},
    }


def _models(route: str) -> Raw:
    """Return the answer to a request for all models or for one."""
    yes = {"supported": True}
    edits = ("clear_thinking_20251015", "clear_tool_uses_20250919")
    able = {
        "compaction": {**yes, "summarize": yes},
        "context_management": {**yes, **dict.fromkeys(edits, yes)},
        "structured_outputs": yes,
    }
    facts: dict[str, Any] = {"type": "model", "created_at": "2026-01-01T00:00:00Z"}
    facts |= {"max_input_tokens": 200_000, "max_tokens": 64_000, "capabilities": able}
    models = {name: {**facts, "id": name, "display_name": name} for name in MODELS}
    one = models.get(route.rpartition("/")[2])
    listed = {"data": list(models.values()), "has_more": False, "first_id": None, "last_id": None}
    return Raw(json.dumps(one or listed).encode())
