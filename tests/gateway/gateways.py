"""A gateway as a process, and an upstream that answers with bytes as they are given."""

import contextlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.daemon import Home

SECONDS = 60.0


@dataclass
class RawUpstream:
    """Answers the n-th request with the n-th list of pieces, the last one again and again.

    A piece is sent as it is; ``None`` hangs up and ``WAIT`` waits until the client does.
    ``heard`` are the requests as they came, ``left`` is set when a client hung up.
    """

    replies: list[Sequence[bytes | None]] = field(default_factory=list)
    heard: list[bytes] = field(default_factory=list)
    port: int = 0
    left: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}"

    def serve(self, plain: socket.socket, context: ssl.SSLContext | None) -> None:
        """Answer on one connection until it ends."""
        with contextlib.suppress(OSError), plain, _wrapped(plain, context) as connection:
            connection.settimeout(SECONDS)
            while request := read_message(connection):
                self.heard.append(request)
                for piece in self.replies[min(len(self.heard), len(self.replies)) - 1]:
                    if piece is None:
                        return
                    if piece == WAIT:
                        connection.recv(1)
                        break
                    connection.sendall(piece)
        self.left.set()


WAIT = b"wait"


@contextlib.contextmanager
def raw_upstream(context: ssl.SSLContext | None = None) -> Iterator[RawUpstream]:
    """Serve raw bytes on loopback while the block runs, over TLS where a context is given."""
    upstream = RawUpstream()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        upstream.port = listener.getsockname()[1]

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(
                        target=upstream.serve, args=(connection, context), daemon=True
                    ).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield upstream
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(SECONDS)


def _wrapped(plain: socket.socket, context: ssl.SSLContext | None) -> socket.socket:
    return context.wrap_socket(plain, server_side=True) if context else plain


@dataclass
class RunningGateway:
    """A gateway's process, its base URL, and what it wrote."""

    process: "subprocess.Popen[bytes]"
    url: str
    output: Path

    @property
    def port(self) -> int:
        """Where it listens."""
        return urlsplit(self.url).port or 0

    @property
    def secret(self) -> str:
        """What the paths of its requests begin with."""
        return urlsplit(self.url).path.strip("/")

    def connect(self) -> socket.socket:
        """Return a connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), SECONDS)

    def head(self, method: str = "POST", path: str = "/v1/messages", *lines: str) -> bytes:
        """Return the head of a request that it lets in."""
        first = (f"{method} /{self.secret}{path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}")
        return "\r\n".join((*first, *lines, "", "")).encode()

    def reply(self, request: bytes) -> bytes:
        """Return all that comes for a request on a connection of its own, until it ends."""
        with self.connect() as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))


@contextlib.contextmanager
def gateway(home: Home, upstream: str, *options: str, **environ: str) -> Iterator[RunningGateway]:
    """Run ``memd gateway`` in front of an upstream while the block runs."""
    command = (sys.executable, "-m", "memd", "gateway", "--upstream", upstream, *options)
    output = Path(home.path) / "gateway.out"
    with output.open("ab") as file:
        process = subprocess.Popen(
            command,
            env={**home.environ, **environ},
            cwd=home.path,
            stdout=subprocess.PIPE,
            stderr=file,
        )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url, output.read_text()
        yield RunningGateway(process, url, output)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)


def read_message(connection: socket.socket) -> bytes:
    """Return one request as its bytes, with its body."""
    data = bytearray()
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(65536)):
            return b""
        data += piece
    head = bytes(data).partition(b"\r\n\r\n")[0]
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    if b"chunked" in head:
        while not re.search(rb"\r\n0\r\n([^\r]+\r\n)*\r\n\Z", data[-200:]):
            data += connection.recv(1 << 20)
    elif length:
        while len(data) < len(head) + 4 + int(length[1]):
            data += connection.recv(1 << 20)
    return bytes(data)


def arguments_of(process: "subprocess.Popen[bytes]") -> bytes:
    """Return what every user of the machine may read of a process."""
    return Path(f"/proc/{process.pid}/cmdline").read_bytes()
