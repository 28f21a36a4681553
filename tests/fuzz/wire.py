"""The socket: bytes to frames, frames to requests, and a live dispatcher behind both."""

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import anyio.abc
import msgspec
from sniffio import current_async_library_cvar

from memd.base import limits, strict_json
from memd.base.values import Caller
from memd.rpc import messages
from memd.rpc.call import Call
from memd.rpc.connection import PeerConnection, refusal
from memd.rpc.dispatch import Dispatcher
from memd.rpc.framing import FrameReader, Framing, encode
from memd.rpc.hub import Hub
from tests.fuzz.target import Target, Use, plain
from tests.rpc.answers import assert_answers, assert_body
from tests.wire_server import RecordingLog

_CALL = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":[1,"x",null]}}'
_BATCH = b'[{"jsonrpc":"2.0","id":"b","method":"typed","params":{"count":3}},' + _CALL + b"]"
_CANCEL = b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}'
_TOKEN = b'{"jsonrpc":"2.0","id":2,"method":"echo","params":{"_meta":{"progressToken":"t"}}}'
FRAMES = (_CALL, _BATCH, _CANCEL, _TOKEN)
_TOKENS = (
    b'"jsonrpc":"2.0"', b'"id":', b'"method":', b'"params":', b"Content-Length: ", b"\r\n\r\n",
    b"\r\n", b"\n", b"[", b"]", b"{", b"}", b"null", b"1e400", b"NaN", b"-0", b"\\ud800", b"\xff",
    b"\xef\xbb\xbf", b"content-length:", b"9999999999", b'"$/cancelRequest"', b'"workDoneToken":',
    b'"progressToken":', b'"notifications/cancelled"', b'"requestId":', b'"_meta":', b"echo",
)  # fmt: skip


def framing(data: bytes) -> None:
    """Check that the same frames come out however the bytes are cut, and each is read back."""
    at_once = _fed(data)
    assert at_once == _fed(*(data[at : at + 1] for at in range(len(data))))
    third = len(data) // 3 + 1
    assert at_once == _fed(data[:third], data[third : 2 * third], data[2 * third :])
    for frame in at_once[1]:
        assert len(frame) <= limits.FRAME_BYTES
        if frame[:1] in (b"{", b"["):
            assert _fed(encode(Framing.LINES, frame.replace(b"\n", b" ")))[1]
            assert _fed(encode(Framing.HEADERS, frame))[1] == [frame]


def _fed(*chunks: bytes) -> tuple[Framing, list[bytes], str, bool]:
    reader, frames = FrameReader(), []
    for chunk in chunks:
        reader.feed(chunk)
        while (frame := reader.next_frame()) is not None:
            frames.append(frame)
    pending = reader.pending
    if (last := reader.end()) is not None:
        frames.append(last)
    assert not reader.pending
    failed = reader.failure.sentence if reader.failure else ""
    return reader.framing, frames, failed, pending


def envelope(data: bytes) -> None:
    """Check that a frame is requests to run, refusals, cancellations or nothing."""
    items, _ = messages.read(data)
    for item in items:
        if isinstance(item, messages.RefusedRequest):
            assert_body(refusal(item.id, item.error))
        elif isinstance(item, messages.RpcRequest):
            assert type(item.params) is dict
            msgspec.json.encode((item.id, item.params, item.method))
    _strict(data)


def _strict(data: bytes) -> None:
    """Check that another reader of JSON reads the same, and what is written is read again."""
    try:
        value = strict_json.decode(data)
    except strict_json.NotJsonError:
        return
    assert json.loads(data) == value
    assert strict_json.decode(json.dumps(value).encode()) == value


class _Typed(msgspec.Struct, forbid_unknown_fields=True):
    count: int = 0
    names: list[str] = []


async def _echo(_call: Call, params: dict[str, Any]) -> Any:
    return params


async def _typed(_call: Call, params: dict[str, Any]) -> Any:
    return msgspec.convert(params, type=_Typed)


@contextmanager
def session() -> Iterator[Use]:
    """Serve one connection for each input; all that comes back is answers, and nothing is left."""
    with asyncio.Runner() as runner:

        def use(data: bytes) -> None:
            log = RecordingLog()
            answer = runner.run(served(data, log))
            assert {type(error) for error in log.errors} <= {msgspec.ValidationError}
            assert_answers(answer)

        async def served(data: bytes, log: RecordingLog) -> bytes:
            current_async_library_cvar.set("asyncio")  # as in a loop that anyio runs
            ours, theirs = socket.socketpair()
            hub, answer = Hub(), bytearray()
            dispatcher = Dispatcher({"echo": _echo, "typed": _typed}, log)
            ours.settimeout(0)
            async with (
                asyncio.TaskGroup() as hub.group,
                await anyio.abc.SocketStream.from_socket(ours) as stream,
            ):
                theirs.settimeout(0)
                PeerConnection(theirs, Caller(1, 0, os.getpid()), hub, dispatcher.answer)
                with suppress(anyio.BrokenResourceError):
                    await stream.send(data)
                    await stream.send_eof()
                async for received in stream:
                    answer += received
            assert hub.connections() == 0
            return bytes(answer)

        yield use


_SEEDS = (*FRAMES, *(encode(form, frame) for form in Framing for frame in FRAMES[:2]))
TARGETS = {
    "framing": Target(plain(framing), (*_SEEDS, _CALL + b"\n" + _BATCH), _TOKENS, longest=600),
    "envelope": Target(plain(envelope), FRAMES, _TOKENS, json=True),
    "session": Target(session, (*_SEEDS, b"\n".join(FRAMES)), _TOKENS, json=True, longest=1024),
}
