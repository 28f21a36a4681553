"""Clients of the doors that speak JSON-RPC: the Unix socket and MCP on standard input."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

BIN = os.path.abspath(os.environ.get("MEMD_BIN") or os.path.dirname(sys.executable))
SECONDS = 60.0  # the longest wait for anything
Json = Any  # a decoded JSON value


class RpcError(Exception):
    """An error that the daemon answered."""

    def __init__(self, error: dict[str, Json]) -> None:
        super().__init__(json.dumps(error)[:1000])
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: dict[str, Json] = error.get("data") or {}
        self.kind: str = self.data.get("kind", "")


def connect(path: str) -> socket.socket:
    """Return a connection to a Unix socket."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


class Client(AbstractContextManager["Client"]):
    """One connection to the socket; ``framing`` is "line" or "header"."""

    def __init__(self, connected: socket.socket, framing: str = "line") -> None:
        connected.settimeout(SECONDS)
        self.socket = connected
        self.framing = framing
        self.events: list[dict[str, Json]] = []  # notifications that came, oldest first
        self._stream = connected.makefile("rb")
        self._ids = 0
        self._answers: dict[Json, dict[str, Json]] = {}

    def call(self, method: str, **params: Json) -> Any:
        """Return the result of a method; raise ``RpcError`` for an error."""
        return self.answer(self.ask(method, **params))

    def ask(self, method: str, **params: Json) -> int:
        """Send a request; return its id for ``answer``."""
        self._ids += 1
        self.send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return self._ids

    def notify(self, method: str, **params: Json) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, message: Json) -> None:
        body = json.dumps(message).encode()
        header = b"Content-Length: %d\r\n\r\n" % len(body)
        self.socket.sendall(header + body if self.framing == "header" else body + b"\n")

    def answer(self, identity: Json) -> Any:
        """Wait for the answer to a request and return its result; raise ``RpcError``."""
        while identity not in self._answers:
            self._take()
        found = self._answers.pop(identity)
        if "error" in found:
            raise RpcError(found["error"])
        return found["result"]

    def event(self, topic: str, matches: Callable[[Json], bool] = bool) -> Json:
        """Wait for a notification of a method name whose parameters match; return these."""
        seen = 0
        while True:
            while len(self.events) <= seen:
                self._take()
            message, seen = self.events[seen], seen + 1
            if message["method"] == topic and matches(message["params"]):
                return message["params"]

    def _take(self) -> None:
        message = self.read()
        if "method" in message:
            self.events.append(message)
        else:
            self._answers[message["id"]] = message

    def read(self) -> Any:
        """Return the next JSON text; raise ``ConnectionError`` at the end of the stream."""
        line = self._stream.readline()
        if self.framing == "header":
            size = 0
            while line.strip():
                name, _, value = line.partition(b":")
                size = int(value) if name.lower() == b"content-length" else size
                line = self._stream.readline()
            line = self._stream.read(size)
        if not line:
            raise ConnectionError
        return json.loads(line)

    def close(self) -> None:
        self._stream.close()
        self.socket.close()

    def __exit__(self, *_: object) -> None:
        self.close()


class Mcp(Client):
    """``memctl mcp`` as a client runs it; its standard input and output are one end of a pair."""

    def __init__(self, environ: Mapping[str, str], cwd: str) -> None:
        ours, theirs = socket.socketpair()
        pair: dict[str, Any] = {"stdin": theirs.fileno(), "stdout": theirs.fileno()}
        self.process = subprocess.Popen([f"{BIN}/memctl", "mcp"], env=environ, cwd=cwd, **pair)
        theirs.close()
        super().__init__(ours)

    def initialize(self, version: str = "2025-11-25", name: str = "net") -> Json:
        """Shake hands; return the server's result."""
        info = {"name": name, "version": "1"}
        result = self.call("initialize", protocolVersion=version, capabilities={}, clientInfo=info)
        self.notify("notifications/initialized")
        return result

    def tool(self, tool_name: str, **arguments: Json) -> Json:
        """Call a tool; return its result (``content``, ``isError``)."""
        return self.call("tools/call", name=tool_name, arguments=arguments)

    def close(self) -> None:
        """Close its input; it must end with status 0."""
        super().close()
        try:
            assert self.process.wait(SECONDS) == 0
        finally:
            self.process.kill()
