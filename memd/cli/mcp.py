"""Pass lines between a client of the Model Context Protocol and the daemon, which speaks it.

Rules of this file
- It imports little more than the hook: a client waits for the first answer. The daemon is found
  with the hook's functions; ``client/launch`` is imported where none runs, and starts one.
- One thread passes the client's lines to the daemon. Each connection has a thread that passes the
  daemon's lines to the client, so neither waits for the other.
- When the connection is lost, the requests without an answer get an error. The next line connects
  again, and the client's handshake is repeated there without the client.
- A line of which no byte was sent is sent again, any other never: nothing is done twice.
- It ends with status 0: with its input, with SIGTERM, or when its output is closed.
"""

import _signal  # type: ignore[import-not-found]  # built in; no stub names it
import _socket
import _thread
import json
import os
import sys
import time
from collections.abc import Mapping

from memd import __version__
from memd.cli import hook

_ANSWER_SECONDS = 20  # for the daemon to answer the handshake
_PAUSES = (0.0, 0.1, 0.5)  # seconds before each attempt to send a line
_END_SECONDS = 30.0  # for open requests after the input ended
_NO_ANSWER = "memd runs and does not answer; look at it with memctl status"
_LOST = "memd ended before it answered, and may have done this. Ask again."
_TOO_LONG = f"a line may have at most {hook.FRAME_BYTES:,} bytes"
Requests = dict[object, str]  # the method of each request by its id


class DaemonStream:
    """A connection to the daemon; ``unanswered`` are the requests that it was sent."""

    def __init__(self, sock: _socket.socket) -> None:
        self.sock = sock
        self.stream = open(sock.fileno(), "rb", closefd=False)  # noqa: SIM115 - while sock is open
        self.unanswered: Requests = {}
        self.ended = _thread.allocate_lock()  # free once all of the daemon's lines were passed on
        self.ended.acquire()


class McpBridge:
    """Serves the client at standard input and output. ``cwd`` is its working directory.

    With ``fixed`` the daemon ignores the client's roots. With ``start`` a daemon is started where
    none runs.
    """

    def __init__(self, environ: Mapping[str, str], cwd: str, *, fixed: bool, start: bool) -> None:
        self._environ = environ
        self._cwd = cwd
        self._fixed = fixed
        self._start = start
        self._link: DaemonStream | None = None
        # The client's lines of initialize and notifications/initialized.
        self._handshake: list[bytes] = []
        self._lock = _thread.allocate_lock()  # of the link, its requests, and the output

    def run(self) -> None:
        """Pass lines on until the input ends, then wait for the answers that are still open."""
        _signal.signal(_signal.SIGTERM, _end)
        _signal.signal(_signal.SIGALRM, _raise_no_answer)
        for descriptor in (0, 1):
            os.set_blocking(descriptor, True)  # a client may have made its pipes non-blocking
        with open(0, "rb", closefd=False) as stream:
            while line := stream.readline(hook.FRAME_BYTES + 1):
                if len(line) > hook.FRAME_BYTES:
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(hook.FRAME_BYTES)
                    self._fail({None: ""}, _TOO_LONG)
                elif line.strip():
                    self._pass_on(line)
        link = self._link
        if link is not None:
            try:  # noqa: SIM105 - contextlib would be one more import
                link.sock.shutdown(_socket.SHUT_WR)
            except OSError:  # it is lost
                pass
            link.ended.acquire(timeout=_END_SECONDS)
        _end()

    def _pass_on(self, line: bytes) -> None:
        """Send a line of the client to the daemon, or answer its requests with an error."""
        methods = _methods(line)
        requests = {id_: method for id_, method in methods if id_ is not None}
        for pause in _PAUSES:
            time.sleep(pause)
            try:
                link = self._connected()
            except ConnectionError:  # a daemon that is being killed may still accept one
                continue
            except Exception as error:  # noqa: BLE001 - the edge: the client gets a sentence
                hint = getattr(error, "hint", "")
                self._fail(requests, f"{error}. {hint}." if hint else f"{error}.")
                return
            with self._lock:
                link.unanswered |= requests
            if _sent(link.sock, line):
                self._note_handshake(methods, line)
                return
            with self._lock:
                self._link = None
                waiting = {id_ for id_ in requests if link.unanswered.pop(id_, None)}
            if waiting != requests.keys():  # the client has an error as the answer
                return
        self._fail(requests, _LOST)

    def _note_handshake(self, methods: list[tuple[object, str]], line: bytes) -> None:
        """Store the lines of the client's handshake, which each further connection repeats."""
        for _, method in methods:
            if method == "initialize":
                self._handshake = [line]
            elif method == "notifications/initialized":
                self._handshake[1:] = [line][: len(self._handshake)]

    def _connected(self) -> DaemonStream:
        """Return the connection; where there is none, connect and repeat the client's handshake."""
        link = self._link
        if link is None:
            link = DaemonStream(self._connect())
            first, *rest = *self._handshake, b""
            _signal.alarm(_ANSWER_SECONDS)
            try:
                link.sock.sendall(self._greeting() + first)
                for _ in range(2 if first else 1):  # answers that are not for the client
                    if not link.stream.readline():
                        raise ConnectionError(_LOST)
                link.sock.sendall(b"".join(rest))
            finally:
                _signal.alarm(0)
            self._link = link
            _thread.start_new_thread(self._pass_back, (link,))
        return link

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
        sock.close()
        from memd.base import places  # noqa: PLC0415 - not needed where a daemon listens
        from memd.client import launch  # noqa: PLC0415

        of_user = places.find(self._environ, os.path.expanduser("~"))
        with launch.connect(of_user, self._environ, name="mcp", start=self._start) as client:
            sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            hook.connect(sock, os.fsencode(client.socket_path))
            return sock

    def _greeting(self) -> bytes:
        """Return the lines with which the daemon knows who calls, and from which directory."""
        names = [name.decode() for name in hook.FORWARDED]
        environ = {name: self._environ[name] for name in names if name in self._environ}
        params = {"client": "mcp", "version": __version__, "environment": environ}
        hello = {"jsonrpc": "2.0", "id": 0, "method": "hello", "params": params}
        place = {"path": self._cwd, "fixed": self._fixed}
        directory = {"jsonrpc": "2.0", "method": "notifications/memd/directory", "params": place}
        return b"%s\n%s\n" % (json.dumps(hello).encode(), json.dumps(directory).encode())

    def _pass_back(self, link: DaemonStream) -> None:
        """Pass the daemon's lines to the client; at their end fail what has no answer."""
        try:
            for line in link.stream:
                if not line.endswith(b"\n"):
                    break
                with self._lock:
                    for id_ in _answered(line):
                        link.unanswered.pop(id_, None)
                    _write(line)
        except OSError:  # the connection was reset
            pass
        with self._lock:
            if self._link is link:
                self._link = None
            lost, link.unanswered = link.unanswered, {}
        self._fail(lost, _LOST)
        link.sock.close()
        link.ended.release()

    def _fail(self, requests: Requests, sentence: str) -> None:
        """Answer requests with an error; a tool's failure is a result that the model reads."""
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


def _methods(line: bytes) -> list[tuple[object, str]]:
    """Return id (``None`` for a notification) and method of each request in a line."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):  # the daemon says what is wrong
        return []
    requests: list[tuple[object, str]] = []
    for each in message if isinstance(message, list) else [message]:
        method = each.get("method") if isinstance(each, dict) else None
        if isinstance(method, str):
            id_ = each.get("id")
            requests.append((id_ if isinstance(id_, str | int | float) else None, method))
    return requests


def _answered(line: bytes) -> list[object]:
    """Return the ids of the answers in a line of the daemon."""
    message = json.loads(line)
    messages = message if isinstance(message, list) else [message]
    return [each.get("id") for each in messages if "method" not in each]


def _sent(sock: _socket.socket, line: bytes) -> bool:
    """Send a line; return ``False`` where no byte of it could be sent."""
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[sock.send(rest) :]
    except OSError:  # a part that was sent is nothing to the daemon, but its end may be unknown
        return len(rest) < len(line)
    return True


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
