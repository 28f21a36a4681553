"""``memctl ui`` as a process in front of a daemon that is a process, and raw requests to it."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

from tests.support.daemon import Home, memctl_command

_END_SECONDS = 20


@dataclass
class Served:
    """A page that runs: its process, its address, and the session that was entered."""

    process: "subprocess.Popen[str]"
    address: str
    root: str = ""
    cookie: str = ""

    @property
    def host(self) -> str:
        """The value of the header Host."""
        return urlsplit(self.address).netloc

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return int(self.host.partition(":")[2])

    def connect(self) -> socket.socket:
        """Return a new connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def raw(self, data: bytes) -> bytes:
        """Send bytes on a connection of their own and return all that comes."""
        received = b""
        with self.connect() as connection, suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(data)
            while piece := connection.recv(65_536):
                received += piece
        return received

    def head(self, method: str, path: str, **headers: str) -> str:
        """Return the head of a request of the session; an empty header is left out."""
        named = {"host": self.host, "connection": "close", "cookie": self.cookie}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = (f"{name}: {value}\r\n" for name, value in named.items() if value)
        return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n"

    def request(self, method: str, path: str, **headers: str) -> bytes:
        """Send a request without a body and return the whole answer."""
        return self.raw(self.head(method, path, **headers).encode())

    def post(self, path: str, body: str = "", **headers: str) -> bytes:
        """Send a form of the session and return the whole answer."""
        form = {"origin": f"http://{self.host}", "content-length": str(len(body))}
        form["content-type"] = "application/x-www-form-urlencoded"
        form |= headers
        return self.raw((self.head("POST", path, **form) + body).encode())

    def enter(self) -> bytes:
        """Use the token up, and return the answer."""
        answer = self.request("GET", urlsplit(self.address).path)
        lines = dict(one.split(": ", 1) for one in answer.decode().split("\r\n") if ": " in one)
        self.root, self.cookie = lines["location"], lines["set-cookie"].partition(";")[0]
        return answer

    def quit(self) -> bytes:
        """Press the button that ends it, and return the answer."""
        page = self.request("GET", self.root).decode()
        token = page.split('name="form_token" value="')[1].split('"')[0]
        return self.post(f"{self.root}quit", f"form_token={token}")

    def ended(self) -> int:
        """Return the status with which it ends; its port is closed then, and no child is left."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        status = self.process.wait(_END_SECONDS)
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", self.port)) != 0
        assert [child for child in children if child.is_running()] == []
        return status


@contextmanager
def page_process(home: Home, *options: str) -> Iterator[Served]:
    """Run ``memctl ui`` until the block ends; its token was not used yet."""
    process = subprocess.Popen(
        memctl_command("ui", "--no-open", *options),
        env=dict(home.environ),
        cwd=home.project(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            yield Served(process, process.stdout.readline().strip())
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(_END_SECONDS)
