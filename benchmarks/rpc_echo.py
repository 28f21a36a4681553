"""What a plain server of this kind can do: anyio's own loop and jsonrpcserver, one method, no work.

It has none of memd's limits, turns and checks; its answers are the parameters that came.
"""

import sys
from typing import Any

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream
from jsonrpcserver import Result, Success, async_dispatch, method

_MOST_BYTES = 4 * 1024 * 1024


@method
async def echo(**params: Any) -> Result:
    """Return what came."""
    return Success(params)


async def serve(path: str) -> None:
    """Serve lines on a Unix socket until killed."""
    listener = await anyio.create_unix_listener(path)
    await listener.serve(_answer)


async def _answer(stream: SocketStream) -> None:
    async with stream:
        lines = BufferedByteReceiveStream(stream)
        while True:
            try:
                line = await lines.receive_until(b"\n", _MOST_BYTES)
            except anyio.IncompleteRead:
                return
            await stream.send((await async_dispatch(line.decode())).encode() + b"\n")


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1])
