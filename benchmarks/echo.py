"""The floor of a round trip: a bare anyio server that sends each line back."""

import sys

import anyio
from anyio.abc import SocketStream


async def serve(path: str) -> None:
    """Serve lines on a Unix socket until killed."""
    listener = await anyio.create_unix_listener(path)
    await listener.serve(_echo)


async def _echo(stream: SocketStream) -> None:
    async with stream:
        async for data in stream:
            await stream.send(data)


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1])
