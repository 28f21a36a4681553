"""A recorder of the Messages API on loopback: it keeps each request and plays an answer."""

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

Json = Any  # a decoded JSON value
Blocks = Sequence[dict[str, Json]]
_numbers = count(1)


def text(words: str) -> dict[str, Json]:
    """Return a block of text."""
    return {"type": "text", "text": words}


def tool(name: str, **arguments: Json) -> dict[str, Json]:
    """Return a call of a tool with an id of its own."""
    identity = f"toolu_{next(_numbers):06d}"
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


class Recorder:
    """The API: ``script(request)`` returns the blocks of each answer, or the status of an error.

    ``requests`` are the bodies of what was asked, oldest first, ``raw`` the same as bytes;
    ``usage`` is what each answer says that it cost, and ``gate`` holds answers until it is set.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Json]] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []  # in lower case
        self.usage: dict[str, int] = {}
        self.gate: threading.Event | None = None
        self.script: Callable[[dict[str, Json]], Blocks | int] = lambda _: [text("Nothing to do.")]
        handler = type("Handler", (_Handler,), {"recorder": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def play(self, *answers: Blocks) -> None:
        """Answer the next requests with these blocks, one list each, then with a plain text."""
        remaining = list(answers)
        self.script = lambda _: remaining.pop(0) if remaining else [text("Nothing to do.")]

    def settings(self, more: str = "") -> str:
        """Return memd.toml with this model; ``more`` are further lines of ``[model]``."""
        model = f'[model]\nbase_url = "{self.url}"\napi_key = "sk-recorded"\n{more}\n'
        return f"{model}[spend]\ndollars_per_day = 500.0\n"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    recorder: Recorder
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Json) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._send(200, {"data": [], "has_more": False})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("count_tokens"):
            return self._send(200, {"input_tokens": len(body) // 4})
        request = json.loads(body)
        recorder = self.recorder
        recorder.requests.append(request)
        recorder.raw.append(body)
        recorder.headers.append({key.lower(): value for key, value in self.headers.items()})
        if recorder.gate is not None:
            recorder.gate.wait(60)
        blocks = recorder.script(request)
        if isinstance(blocks, int):
            return self._send(blocks, {"type": "error", "error": {"type": "x", "message": "no"}})
        cache = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        usage = {"input_tokens": len(body) // 4, "output_tokens": 20, **cache, **recorder.usage}
        is_tool = any(block["type"] == "tool_use" for block in blocks)
        head = {"id": f"msg_{next(_numbers):06d}", "type": "message", "role": "assistant"}
        stop = {"stop_reason": "tool_use" if is_tool else "end_turn", "stop_sequence": None}
        message = {**head, "model": request.get("model"), "content": blocks, "usage": usage, **stop}
        if not request.get("stream"):
            return self._send(200, message)
        stream = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events(message)]
        return self._send(200, "".join(stream).encode())

    def _send(self, status: int, content: Json | bytes) -> None:
        is_stream = isinstance(content, bytes)
        data = content if is_stream else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Retry-After", "0")
        with suppress(OSError):  # the program that asked may have gone
            self.end_headers()
            self.wfile.write(data)


def events(message: dict[str, Json]) -> list[dict[str, Json]]:
    """Return a message as the events of a stream."""
    begun = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Json]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(message["content"]):
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block.get("text")}
        if block["type"] == "tool_use":
            empty = {**block, "input": dict[str, Json]()}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    stop = {"type": "message_stop"}
    return [*events, {"type": "message_delta", "delta": end, "usage": usage}, stop]
