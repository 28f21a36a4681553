"""A connected socket on the event loop.

anyio has streams for this, but when their receive is cancelled at the moment at which bytes arrive,
it sets a result on a cancelled future, which the loop reports as an error. Waiting for the socket
itself does not have this problem.
"""

import socket

import anyio

_MEMORY_RETRY_SECONDS = 0.05


class Stream:
    """The bytes of one peer; owns the socket. One task reads, one writes."""

    def __init__(self, connected: socket.socket) -> None:
        connected.settimeout(0)
        self.socket = connected

    async def receive(self, size: int) -> bytes:
        """Return at most ``size`` bytes, b"" at the end of the peer's bytes. Raises OSError.

        Other tasks always run first, so that one fast peer does not occupy the loop.
        """
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                return self.socket.recv(size)
            except BlockingIOError:
                await anyio.wait_readable(self.socket)
            except MemoryError:  # the bytes stay in the kernel until memory is free again
                await anyio.sleep(_MEMORY_RETRY_SECONDS)

    async def send(self, data: bytes) -> None:
        """Send all of it, waiting for a slow peer. Raises OSError."""
        unsent = memoryview(data)
        while unsent:
            try:
                size = self.socket.send(unsent)
                unsent = unsent[size:]
            except BlockingIOError:
                await anyio.wait_writable(self.socket)

    def send_eof(self) -> None:
        """End our side; the peer may still send. Raises OSError."""
        self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the socket; nobody may be waiting on it."""
        self.socket.close()
