"""Pass lines between a client of the Model Context Protocol and the daemon, which speaks it.

Rules of this file
- Until the first answer it imports nothing but the hook, since a client waits: with the hook's
  functions it finds the daemon. ``client/launch`` is imported where none runs, and starts one.
  Lines are read as JSON only after they were passed on.
- One thread passes the client's lines on. Each connection has a thread that passes the daemon's
  lines back, so neither direction waits for the other.
- When a connection is lost, its requests without an answer get an error. The next line connects
  again, and the client's handshake is repeated there without the client.
- A line of which no byte was sent is sent again, any other never: nothing is done twice.
- It ends with status 0: with its input, with SIGTERM, or when its output is closed.
"""

import _signal  # type: ignore[import-not-found]  # built in; no stub names it
import _socket
import _thread
import os
import sys
import time

from memd import __version__
from memd.cli import hook

TYPE_CHECKING = False  # typing would be one more import, and collections.abc two
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_ANSWER_SECONDS = 20  # for the daemon to answer the handshake
_END_SECONDS = 30.0  # for open requests after the input ended
# Seconds before each attempt to send a line: a daemon that is being killed may still accept one.
_PAUSES = (0.0, 0.1, 0.5)
_NO_ANSWER = "memd runs and does not answer; look at it with memctl status"
_LOST = "memd ended before it answered, and may have done this. Ask again."
_TOO_LONG = f"a line may have at most {hook.FRAME_BYTES:,} bytes"


class McpBridge:
    """Serves the client at standard input and output. ``cwd`` is its working directory.

    With ``fixed`` the daemon ignores the client's roots. With ``start`` a daemon is started where
    none runs.
    """

    def __init__(self, environ: "Mapping[str, str]", cwd: str, *, fixed: bool, start: bool) -> None:
        self._environ = environ
        self._cwd = cwd
        self._fixed = fixed
        self._start = start
        self._handshake: list[bytes] = []  # the lines initialize and notifications/initialized
        self._input_ended = False
        self._lock = _thread.allocate_lock()  # of the members below and of the output
        self._sock: _socket.socket | None = None
        self._sent: list[tuple[_socket.socket, bytes]] = []  # lines that are not read as JSON yet
        # The connection and method of each request in other lines, by its id, until the answer.
        self._requests: dict[object, tuple[_socket.socket, str]] = {}

    def run(self) -> None:
        """Pass lines on until the input ends, and the answers that are open then."""
        _signal.signal(_signal.SIGTERM, _end)
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        _signal.signal(_signal.SIGALRM, _raise_no_answer)
        try:
            for descriptor in (0, 1):
                os.set_blocking(descriptor, True)  # a client may have made its pipes non-blocking
        except OSError:  # the process was started with one of them closed
            _end()
        with open(0, "rb", closefd=False) as stream:
            while line := stream.readline(hook.FRAME_BYTES + 1):
                if len(line) > hook.FRAME_BYTES:
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(hook.FRAME_BYTES)
                    self._fail({None: ""}, _TOO_LONG)
                elif line.strip():
                    self._pass_on(line)
        with self._lock:
            self._input_ended, sock = True, self._sock
        if sock is not None:
            try:  # noqa: SIM105 - contextlib would be one more import
                sock.shutdown(_socket.SHUT_WR)
            except OSError:  # it is lost
                pass
            time.sleep(_END_SECONDS)  # ``_pass_back`` ends the process
        _end()

    def _pass_on(self, line: bytes) -> None:
        """Send a line of the client to the daemon, or answer its requests with an error."""
        for pause in _PAUSES:
            time.sleep(pause)
            sock, sent = None, 0
            try:
                sock = self._connected()
                with self._lock:
                    self._sent.append((sock, line))
                while sent < len(line):
                    sent += sock.send(memoryview(line)[sent:])
            except ConnectionError:
                pass
            except Exception as error:  # noqa: BLE001 - the edge: the client gets a sentence
                hint = getattr(error, "hint", "")
                self._fail(_requests(line), f"{error}. {hint}." if hint else f"{error}.")
                return
            else:
                if self._sock is sock:
                    return  # else ``_pass_back`` has ended, perhaps before the line was sent
            requests = _requests(line)
            with self._lock:
                self._sock = None
                unanswered = self._unanswered()
                still_open = {id_: requests[id_] for id_ in requests if unanswered.pop(id_, None)}
            if sock is not None and (sent or still_open != requests):
                self._fail(still_open, _LOST)
                return
        self._fail(_requests(line), _LOST)

    def _unanswered(self) -> "dict[object, tuple[_socket.socket, str]]":
        """Return the requests without an answer, after reading what was sent; needs the lock.

        The lines of the client's handshake are stored, for the connections that follow.
        """
        lines, self._sent = self._sent, []
        for sock, line in lines:
            for message in _messages(line):
                method = message.get("method")
                if method == "initialize":
                    self._handshake = [line]
                elif method == "notifications/initialized" and self._handshake:
                    self._handshake[1:] = [line]
            self._requests |= {id_: (sock, name) for id_, name in _requests(line).items()}
        return self._requests

    def _connected(self) -> _socket.socket:
        """Return the connection; where there is none, connect and repeat the client's handshake."""
        sock = self._sock
        if sock is None:
            with self._lock:
                self._unanswered()
            sock = self._connect()
            stream = open(sock.fileno(), "rb", closefd=False)  # noqa: SIM115 - read by the thread
            first, *rest = *self._handshake, b""
            _signal.alarm(_ANSWER_SECONDS)
            try:
                sock.sendall(self._greeting() + first)
                for _ in range(2 if first else 1):  # answers that are not for the client
                    if not stream.readline():
                        raise ConnectionError(_LOST)
                sock.sendall(b"".join(rest))
            finally:
                _signal.alarm(0)
            self._sock = sock
            _thread.start_new_thread(self._pass_back, (sock, stream))
        return sock

    def _connect(self) -> _socket.socket:
        """Return a connection to the daemon. Raises OSError and errors of ``client/launch``."""
        environ = {os.fsencode(name): os.fsencode(text) for name, text in self._environ.items()}
        path, _ = hook.places(environ, hook.home_directory(environ), sys.platform)
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            if path and hook.connect(sock, path):
                return sock
        except OSError:
            pass
        from memd.base import places  # noqa: PLC0415 - not needed where a daemon listens
        from memd.client import launch  # noqa: PLC0415

        of_user = places.find(self._environ, os.path.expanduser("~"))
        with launch.connect(of_user, self._environ, name="mcp", start=self._start) as client:
            sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            hook.connect(sock, os.fsencode(client.socket_path))
            return sock

    def _greeting(self) -> bytes:
        """Return the lines with which the daemon knows who calls, and from which directory."""
        environ = ",".join(
            f"{hook.quote(name)}:{hook.quote(self._environ[name])}"
            for name in (name.decode() for name in hook.FORWARDED)
            if name in self._environ
        )
        hello = (
            f'{{"jsonrpc":"2.0","id":0,"method":"hello","params":{{"client":"mcp",'
            f'"version":"{__version__}","environment":{{{environ}}}}}}}\n'
        )
        directory = (
            f'{{"jsonrpc":"2.0","method":"notifications/memd/directory","params":'
            f'{{"path":{hook.quote(self._cwd)},"fixed":{str(self._fixed).lower()}}}}}\n'
        )
        return f"{hello}{directory}".encode(errors="replace")

    def _pass_back(self, sock: _socket.socket, lines: "Iterable[bytes]") -> None:
        """Pass the daemon's lines to the client; at their end fail what has no answer."""
        try:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                with self._lock:
                    _write(line)
                    unanswered = self._unanswered()
                    for message in _messages(line):
                        if "method" not in message:
                            unanswered.pop(message.get("id"), None)
        except OSError:  # the connection was reset
            pass
        with self._lock:
            if self._sock is sock:
                self._sock = None
            rows = self._unanswered().items()
            lost = {id_: method for id_, (used, method) in rows if used is sock}
            for id_ in lost:
                del self._requests[id_]
        self._fail(lost, _LOST)
        if self._input_ended:
            _end()

    def _fail(self, requests: "Mapping[Any, str]", sentence: str) -> None:
        """Answer requests with an error; a tool's failure is a result that the model reads."""
        import json  # noqa: PLC0415 - not before the first answer

        for id_, method in requests.items():
            answer: dict[str, object] = {"error": {"code": -32603, "message": sentence}}
            if method == "tools/call":
                content = [{"type": "text", "text": sentence}]
                result = {"content": content, "isError": True, "resultType": "complete"}
                answer = {"result": result}
            with self._lock:
                _write(json.dumps({"jsonrpc": "2.0", "id": id_, **answer}).encode() + b"\n")


def main() -> bool:
    """Serve a client that gave no options; return ``False`` where the directory has no name."""
    try:
        cwd = os.getcwd()
        cwd.encode()
    except (OSError, UnicodeError):
        return False
    McpBridge(os.environ, cwd, fixed=False, start=True).run()
    return True


def _messages(line: bytes) -> "list[dict[str, Any]]":
    """Return the messages in a line, [] where it has none that can be read."""
    import json  # noqa: PLC0415 - not before the first answer

    try:
        message = json.loads(line)
    except (ValueError, RecursionError):  # the daemon says what is wrong
        return []
    messages = message if isinstance(message, list) else [message]
    return [each for each in messages if isinstance(each, dict)]


def _requests(line: bytes) -> dict[object, str]:
    """Return the method of each request in a line by its id."""
    return {
        each["id"]: str(each["method"])
        for each in _messages(line)
        if "method" in each and isinstance(each.get("id"), str | int | float)
    }


def _write(line: bytes) -> None:
    """Write a line to the client; end the process where the client has gone."""
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[os.write(1, rest) :]
    except OSError:
        _end()


def _raise_no_answer(*_: object) -> None:  # the handler of the timer's signal
    raise TimeoutError(_NO_ANSWER)


def _end(*_: object) -> None:
    """End the process with status 0, without waiting for its threads."""
    os._exit(0)
