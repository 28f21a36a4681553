"""``memctl mcp`` as a client runs it: a process, lines in, lines out."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

COMMAND = (sys.executable, "-c", "import sys; from memd.cli.main import main; sys.exit(main())")
META = "io.modelcontextprotocol/"
_SECONDS = 60.0


class McpProgram:
    """The program until the end of the block; what it writes on standard error is kept."""

    def __init__(self, environ: Mapping[str, str], cwd: str, *options: str) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, *options, "mcp"],
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._ids = 0
        self.errors = ""

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        status = self.leave()
        assert (status, self.errors) == (0, "") or kind is not None

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The process."""
        return self._process

    @property
    def arrived(self) -> bool:
        """Whether a message waits to be taken."""
        return not self._lines.empty()

    def leave(self) -> int:
        """Close its input; return its status."""
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        if not stdin.closed:
            stdin.close()
        status = self._process.wait(_SECONDS)
        self._reader.join(_SECONDS)
        if not stderr.closed:
            self.errors = stderr.read().decode()
            stderr.close()
            stdout.close()
        return status

    def write(self, line: bytes) -> None:
        """Send bytes as they are."""
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def send(self, **message: Any) -> None:
        """Send one message."""
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def next(self) -> Any:
        """Return the next message that it writes."""
        return json.loads(self._lines.get(timeout=_SECONDS))

    def request(self, method: str, **params: Any) -> Any:
        """Ask in the handshake's era; return the whole answer."""
        self._ids += 1
        self.send(id=self._ids, method=method, params=params)
        return self._answer(self._ids)

    def modern(
        self, method: str, capabilities: Mapping[str, Any] | None = None, **params: Any
    ) -> Any:
        """Ask in the era without a handshake; return the whole answer."""
        self._ids += 1
        self.send(id=self._ids, method=method, params=params | modern_meta(capabilities))
        return self._answer(self._ids)

    def tool(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool; return the result."""
        return self.request("tools/call", name=name, arguments=arguments)["result"]

    def _answer(self, id_: int) -> Any:
        while (message := self.next()).get("id") != id_ or "method" in message:
            pass
        return message

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)


def modern_meta(capabilities: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the member of parameters that makes a request one of 2026-07-28."""
    return {
        "_meta": {
            f"{META}protocolVersion": "2026-07-28",
            f"{META}clientCapabilities": dict(capabilities or {}),
            f"{META}clientInfo": {"name": "test", "version": "1"},
        }
    }


def words(result: Mapping[str, Any]) -> str:
    """Return what a model reads of a tool's result."""
    (block,) = result["content"]
    assert block["type"] == "text"
    return str(block["text"])
