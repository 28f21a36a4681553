"""Serve one client: read lines from standard input, write answers to standard output.

Rules of this file
- The thread that reads never waits for the daemon, so a ping is answered and a request cancelled
  while another one runs. One thread calls the daemon, in the order of the requests.
- Every message gets an answer or is a notification; no message of a client ends the server.
- It ends with its input, with SIGTERM, or when its output is closed.
"""

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.places import Places
from memd.base.text import read_json
from memd.client.errors import DaemonUnavailableError
from memd.mcp import protocol, resources, tools
from memd.mcp.link import DaemonLink
from memd.mcp.messages import MessageTools
from memd.mcp.protocol import McpReply, McpRequest, ProtocolError
from memd.mcp.roots import WorkingDirectory

_MAX_QUEUED = 100  # requests; while the queue is full, nothing is read
_ROOTS_SECONDS = 2.0  # to wait for the client's roots
_END_SECONDS = 30.0  # for open requests after the input ended
_NO_JSON = "a line must be JSON in UTF-8"
_TOO_LONG = f"a line may have at most {limits.FRAME_BYTES:,} bytes"
_EMPTY_BATCH = "a batch needs a message"
_NOT_JSON_VALUES = "a text has half of a character, or a number is none"
_NO_TOOL = "there is no such tool; tools/list has those that there are"
_NO_METHOD = "there is no method {method}"
_BAD_ANSWER = "the daemon's answer was not understood ({error}); restart it with: memctl stop"
# Notifications after which the client can be asked for its roots.
_ROOTS_NEWS = ("notifications/initialized", "notifications/roots/list_changed")
# Methods whose result may ask the client for its roots first.
_MAY_NEED_ROOTS = ("tools/call", "resources/read", "prompts/get")
_ROOTS_REQUEST = {"method": "roots/list"}
_DAEMON_METHODS = (*_MAY_NEED_ROOTS, "resources/list")
Send = Callable[[Mapping[str, Any]], None]


class McpServer:
    """Answers the messages of one client. ``send`` writes one message."""

    def __init__(self, link: DaemonLink, directory: WorkingDirectory, send: Send) -> None:
        self._link = link
        self._directory = directory
        self._send = send
        # Requests for the thread that calls the daemon; ``None`` ends that thread.
        self._queue: queue.Queue[McpRequest | None] = queue.Queue(_MAX_QUEUED)
        self._unanswered: set[protocol.Id | None] = set()  # ids of requests that are not cancelled
        # What ``initialize`` said: whether the client has roots, and its name.
        self._has_roots, self._client = False, ""
        self._messages = MessageTools(self._call_daemon)
        self._worker = threading.Thread(target=self._work, daemon=True)

    def run(self, stream: BinaryIO) -> None:
        """Serve until the input ends, then finish the open requests."""
        self._worker.start()
        for line in _lines(stream):
            message = read_json(line)
            if message is None:
                self._send_error(protocol.PARSE, _NO_JSON if line else _TOO_LONG)
            elif message == []:
                self._send_error(protocol.INVALID, _EMPTY_BATCH)
            else:  # 2025-03-26 alone has batches; their answers come one by one
                for single_message in message if isinstance(message, list) else [message]:
                    self._handle(single_message)
        self._queue.put(None)
        self._worker.join(_END_SECONDS)

    def _send_error(self, code: int, sentence: str) -> None:
        """Send an error about a message that has no readable id."""
        self._send(protocol.error_answer(ProtocolError(code, sentence)))

    def _handle(self, message: Any) -> None:
        """Answer a message at once, or queue it for the thread that calls the daemon."""
        id_ = None
        try:
            request = protocol.parse(message)
            id_ = request.id
            if isinstance(request, McpReply):
                self._directory.adopt(request.result)
            elif request.id is None:
                self._handle_notification(request)
            elif request.method in _DAEMON_METHODS:
                self._unanswered.add(request.id)
                self._queue.put(request)
            else:
                self._send(protocol.result_answer(request, self._immediate_result(request)))
        except ProtocolError as error:
            self._send(protocol.error_answer(error, id_))

    def _handle_notification(self, request: McpRequest) -> None:
        """Handle a notification: a cancellation, or news about the client's roots."""
        if request.method == "notifications/cancelled":
            id_ = request.params.get("requestId")
            if isinstance(id_, str | int):
                self._unanswered.discard(id_)
            return
        needs_roots = self._has_roots and not self._directory.fixed
        if needs_roots and request.method in _ROOTS_NEWS:
            self._send(self._directory.roots_request())

    def _immediate_result(self, request: McpRequest) -> Mapping[str, Any]:
        """Return the result of a request that needs no daemon. Raises ProtocolError."""
        match request.method, request.modern:
            case "initialize", _:
                self._has_roots, self._client = "roots" in request.capabilities, request.client
                return protocol.server_description(request)
            case "ping", False:
                return {}
            case "server/discover", True:
                return protocol.server_description(request)
            case "tools/list", _:
                return {"tools": protocol.declaration("tool")}
            case "prompts/list", _:
                return {"prompts": protocol.declaration("prompt")}
            case "resources/templates/list", _:
                return {"resourceTemplates": protocol.declaration("template")}
        raise ProtocolError(protocol.UNKNOWN, _NO_METHOD.format(method=request.method))

    def _work(self) -> None:
        """Answer queued requests until ``None`` is queued. Runs in a thread of its own."""
        while (request := self._queue.get()) is not None:
            if request.id not in self._unanswered:  # cancelled while it waited
                continue
            self._directory.is_known.wait(_ROOTS_SECONDS)
            try:
                answer = protocol.result_answer(request, self._daemon_result(request))
            except ProtocolError as error:
                answer = protocol.error_answer(error, request.id)
            if request.id in self._unanswered:  # not cancelled meanwhile
                self._unanswered.discard(request.id)
                self._send(answer)
                self._messages.acknowledge_written()
            self._messages.forget_unwritten()

    def _daemon_result(self, request: McpRequest) -> Mapping[str, Any]:
        """Return the result of a request that needs the daemon. Raises ProtocolError."""
        client_answers = request.params.get("inputResponses")
        if isinstance(client_answers, dict) and not self._directory.fixed:
            self._directory.adopt(client_answers.get("roots"))
        elif self._directory.vague and request.modern and _may_ask_for_roots(request):
            # A modern server sends no requests: this result asks for roots, and the client repeats.
            return {"resultType": "input_required", "inputRequests": {"roots": _ROOTS_REQUEST}}
        self._link.introduce(request.client or self._client)
        code = protocol.INTERNAL
        try:
            return self._call_by_method(request)
        except MemdError as error:
            # Clients list the resources when they start, which must not fail without a daemon.
            if request.method == "resources/list" and isinstance(error, DaemonUnavailableError):
                return {"resources": protocol.declaration("resource")}
            sentence = f"{error}. {error.hint}." if error.hint else f"{error}."
            missing = error.kind in ("not_found", "name_refused")
            if missing and request.method == "resources/read":
                code = protocol.PARAMS if request.modern else protocol.NO_RESOURCE
        except (ValueError, RecursionError):
            sentence = _NOT_JSON_VALUES
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge: a daemon of another version answered
            sentence = _BAD_ANSWER.format(error=type(error).__name__)
        if request.method == "tools/call":
            return tools.error_result(sentence)
        raise ProtocolError(code, sentence)

    def _call_by_method(self, request: McpRequest) -> Mapping[str, Any]:
        """Return the result of a request by its method. Raises ProtocolError and MemdError."""
        params, ask = request.params, self._call_daemon
        match request.method:
            case "tools/call":
                name = protocol.text_of(params.get("name"))
                arguments = params.get("arguments") or {}
                result = None
                if isinstance(arguments, dict):
                    result = tools.call(ask, name, arguments, self._messages.tools)
                if result is None:
                    raise ProtocolError(protocol.PARAMS, _NO_TOOL)
                return result
            case "resources/list":
                return resources.list_page(ask, params)
            case "resources/read":
                uri = protocol.text_of(params.get("uri"))
                return resources.read(ask, uri, modern=request.modern)
        return resources.prompt_messages(ask, params)

    def _call_daemon(self, method: str, **params: Any) -> Any:
        """Call a method of the daemon for the client's working directory."""
        return self._link.call(method, {"cwd": self._directory.path, **params})


def serve(
    places: Places, environ: Mapping[str, str], cwd: str, *, fixed: bool, start: bool
) -> None:
    """Serve the client at this process's standard input and output until it closes them.

    ``cwd`` is the working directory; with ``fixed`` the client's roots are ignored. With ``start``
    a daemon is started where none runs.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    directory = WorkingDirectory(cwd, places.home, fixed=fixed)
    write_lock = threading.Lock()  # held while a line is written, so that lines do not mix
    for descriptor in (0, 1):
        os.set_blocking(descriptor, True)  # a client may have made its pipes non-blocking

    def send(message: Mapping[str, Any]) -> None:
        """Write one message as a line; end the process if the output is closed."""
        data = memoryview(json.dumps(message).encode() + b"\n")
        try:
            with write_lock:
                while data:
                    data = data[os.write(1, data) :]
        except OSError:  # the output is closed; only a signal ends the thread that reads
            os.kill(os.getpid(), signal.SIGTERM)

    with open(0, "rb", closefd=False) as stream:
        McpServer(DaemonLink(places, environ, start=start), directory, send).run(stream)


def _may_ask_for_roots(request: McpRequest) -> bool:
    """Return whether the server may answer a request with a question for the client's roots."""
    return request.method in _MAY_NEED_ROOTS and "roots" in request.capabilities


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a stream without blank ones; b"" stands for one that is too long."""
    while line := stream.readline(limits.FRAME_BYTES + 1):
        if len(line) <= limits.FRAME_BYTES or line.endswith(b"\n"):
            if line.strip():
                yield line
            continue
        while line and not line.endswith(b"\n"):  # skip the rest of the line
            line = stream.readline(limits.FRAME_BYTES)
        yield b""
