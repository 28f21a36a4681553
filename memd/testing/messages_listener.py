"""The sockets and threads of a scripted Messages server."""

import socket
import threading
from contextlib import suppress
from typing import Self

from memd.testing.messages_connection import Answering, Connection

_HOST = "127.0.0.1"


class Listener:
    """A context manager that listens on loopback; port 0 takes a free one.

    Nothing is left at its end: waits are ended, connections closed, threads joined.
    """

    def __init__(self, server: Answering, port: int = 0) -> None:
        self._server = server
        self._listener = socket.create_server((_HOST, port), backlog=128)
        self.url = f"http://{_HOST}:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, socket.socket] = {}
        self._closing = False
        self._accepting = threading.Thread(target=self._accept, name="messages accept", daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        self._server.gate.shut()
        # close() alone does not wake a thread that waits in accept; a connection does, everywhere.
        with suppress(OSError), socket.create_connection(self._listener.getsockname()):
            pass
        self._accepting.join()
        self._listener.close()
        with self._lock:
            left = dict(self._open)
            for connection in left.values():
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in left:
            thread.join()

    def _accept(self) -> None:
        while not self._closing:
            connection, address = self._listener.accept()
            thread = threading.Thread(
                target=self._serve,
                args=(connection, address),
                name=f"messages {address[1]}",
                daemon=True,
            )
            with self._lock:
                self._open = {t: c for t, c in self._open.items() if t.is_alive()}
                self._open[thread] = connection
                thread.start()

    def _serve(self, connection: socket.socket, address: tuple[str, int]) -> None:
        try:
            Connection(connection, address, self._server)
        finally:
            with self._lock:
                connection.close()
