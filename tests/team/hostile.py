"""A server that answers whatever a test wants, byte by byte: a table of attacks on a sync."""

import hashlib
import json
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

MEBIBYTE = 1024 * 1024
Answers = Callable[[str], Iterable[bytes]]


@dataclass
class HostileServer:
    """Its address, and the heads of all requests that came."""

    url: str
    heads: list[str] = field(default_factory=list)


@contextmanager
def hostile(answers: Answers, secure: ssl.SSLContext | None = None) -> Iterator[HostileServer]:
    """Answer each connection's first request with what ``answers`` makes of its first line."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = HostileServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.settimeout(60)
            if secure is not None:
                connection = secure.wrap_socket(connection, server_side=True)
            head = b""
            while b"\r\n\r\n" not in head and (part := connection.recv(65536)):
                head += part
            server.heads.append(head.decode("latin-1"))
            for part in answers(server.heads[-1].partition("\r\n")[0]):
                connection.sendall(part)

    def accept() -> None:
        with suppress(OSError):
            while True:
                thread = threading.Thread(target=serve, args=(listener.accept()[0],))
                thread.start()
                threads.append(thread)

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (accepting, *threads):
            thread.join()


def answer(body: bytes, status: str = "200 OK", *headers: str) -> list[bytes]:
    """Return an answer with a true length, behind which the server hangs up, as ``hostile`` does.

    It has to say so: the next request may be on its way while the end is.
    """
    head = ("HTTP/1.1 " + status, f"Content-Length: {len(body)}", "Connection: close", *headers)
    return ["\r\n".join((*head, "", "")).encode("latin-1"), body]


def entry(key: str, text: str = "", **members: Any) -> dict[str, Any]:
    """Return an entry of a page."""
    text = text or f"---\nname: x\ndescription: y\nmetadata:\n  type: project\n---\n\n{key}\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    facts = {"key": key, "revision": 1, "hash": digest, "size": len(text), "at": 1.0}
    return facts | {"member": "eve", "device": "d", "content": text} | members


def page(*entries: dict[str, Any], **members: Any) -> bytes:
    """Return a page's body."""
    facts = {"epoch": "e", "revision": 9, "entries": entries, "removed": [], "next": None}
    return json.dumps(facts | members).encode()


@cache
def bomb() -> bytes:
    """Return a megabyte that unpacks to a gigabyte."""
    packer = zlib.compressobj(9, wbits=31)
    head = packer.compress(b"[") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * MEBIBYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * 1024


def endless(_: str) -> Iterator[bytes]:
    """Yield a body that never ends."""
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    while True:
        yield b"10000\r\n" + b" " * 65536 + b"\r\n"
