"""Serve one connection of a client, and forward its requests to the upstream.

Rules of this file
- A reply goes to the client as it comes, byte for byte; it is parsed only to find its end. If that
  fails, bytes are passed on until the upstream hangs up.
- Nothing goes to the upstream before the secret, the host and the sender were checked, and no
  request that two servers could read differently.
- Of a request's headers only Host, Content-Length, Expect, Upgrade and the betas change.
- If one side hangs up, the other connection is closed.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from http import HTTPStatus

import anyio
import h11
from anyio import to_thread
from anyio.abc import ByteStream, SocketStream
from msgspec import Struct

from memd.gateway.rewriting import MOST_BYTES, Rewriter
from memd.gateway.upstream import Upstream

HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 5.0  # to the end of a request's head
BODY_SECONDS = 60.0  # between two pieces of a body
IDLE_SECONDS = 600.0  # between two requests
_LINGER_SECONDS = 1.0
_REFUSAL_BYTES = 1024 * 1024  # a longer refusal is passed on at once
_REFUSED = 400
_HOP_BY_HOP = (b"expect", b"upgrade")  # for the gateway itself, not passed on
_GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
_UNREACHABLE = (
    b'{"type":"error","error":{"type":"api_error",'
    b'"message":"memd gateway: the upstream cannot be reached"}}'
)


class _OverError(Exception):
    """One side hung up or broke the rules, so both connections end."""


class Entrance(Struct, frozen=True):
    """Lets a request pass if it has the gateway's host and secret and no web page sent it."""

    port: int
    secret: str

    def path(self, request: h11.Request) -> bytes | None:
        """Return the path behind the secret, ``None`` for a request that is refused."""
        before, _, rest = request.target.partition(b"/")
        secret, slash, path = rest.partition(b"/")
        if before or not slash or not compare_digest(secret, self.secret.encode()):
            return None
        own = [f"127.0.0.1:{self.port}".encode(), f"localhost:{self.port}".encode()]
        host = next((value.lower() for name, value in request.headers if name == b"host"), b"")
        from_page = any(_is_from_browser(name) for name, _ in request.headers)
        return None if from_page or host not in own else b"/" + path


@dataclass(slots=True)
class GatewayConnection:
    """Serves a client until either side hangs up."""

    client: SocketStream
    entrance: Entrance
    address: Upstream
    rewriter: Rewriter
    _upstream: ByteStream | None = None
    _incoming: h11.Connection = field(default_factory=lambda: h11.Connection(h11.SERVER))
    _outgoing: h11.Connection = field(default_factory=lambda: h11.Connection(h11.CLIENT))
    _status: int = 0

    async def serve(self) -> None:
        """Serve requests, one after the other; errors of either side only end it."""
        try:
            with suppress(_OverError, h11.LocalProtocolError, *_GONE):
                while True:
                    await self._serve_one()
        finally:
            await self._hang_up()
            await anyio.aclose_forcefully(self.client)

    async def _serve_one(self) -> None:
        """Check and forward one request, or answer with an error. Raises _OverError."""
        try:
            request = await self._next_request()
            path = self.entrance.path(request)
            if path is None:
                await self._answer(404)
            elif _is_ambiguous(request):
                await self._answer(400)
            else:
                await self._forward(request, path)
        except h11.RemoteProtocolError as error:
            await self._answer(error.error_status_hint)

    async def _next_request(self) -> h11.Request:
        """Return the next request, without its body. Raises _OverError if none comes."""
        data = self._incoming.trailing_data[0] or await self._first_bytes()
        self._incoming = h11.Connection(h11.SERVER, HEAD_BYTES)
        with anyio.move_on_after(HEAD_SECONDS):
            while data:
                self._incoming.receive_data(data)
                if isinstance(event := self._incoming.next_event(), h11.Request):
                    return event
                data = await self.client.receive()
        raise _OverError

    async def _first_bytes(self) -> bytes:
        """Return a request's first bytes, b"" if a side hangs up or the time is up."""
        result = b""

        async def watch(upstream: ByteStream, scope: anyio.CancelScope) -> None:
            """End the wait for a request when the upstream hangs up."""
            with suppress(*_GONE):
                await upstream.receive()
            scope.cancel()

        async with anyio.create_task_group() as group:
            if self._upstream is not None:
                group.start_soon(watch, self._upstream, group.cancel_scope)
            # A connection that has not sent a request yet gets less time.
            seconds = HEAD_SECONDS if self._upstream is None else IDLE_SECONDS
            with anyio.move_on_after(seconds), suppress(*_GONE):
                result = await self.client.receive()
            group.cancel_scope.cancel()
        return result

    async def _forward(self, request: h11.Request, path: bytes) -> None:
        """Send a request on, rewritten if possible; if that is refused, send the fallback."""
        if self._incoming.they_are_waiting_for_100_continue:
            await self.client.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        name = path.partition(b"?")[0]
        may_change = self.rewriter.concerns(request.method, name, dict(request.headers))
        body, end = await self._body() if may_change else (b"", None)
        if end is None:
            await self._exchange(self._request(request, path), None, body)
            return
        changed = await to_thread.run_sync(self.rewriter.rewritten, name, body)
        new = self._request(request, path, changed.body, changed.betas)
        fallback = changed.fallback
        if await self._exchange(new, end, changed.body, hold=fallback is not None) and fallback:
            original = await to_thread.run_sync(fallback)
            again = self._request(request, path, original, changed.betas)
            await self._exchange(again, end, original)

    async def _body(self) -> tuple[bytes, h11.EndOfMessage | None]:
        """Return a request's body and its end; ``None`` for the end if the body is too large."""
        body = bytearray()
        while len(body) <= MOST_BYTES:
            event = await self._next_event()
            if isinstance(event, h11.EndOfMessage):
                return bytes(body), event
            body += event.data
        return bytes(body), None

    async def _next_event(self) -> h11.Data | h11.EndOfMessage:
        """Return the next part of the request's body, or its end."""
        while True:
            event = self._incoming.next_event()
            if isinstance(event, h11.Data | h11.EndOfMessage):
                return event
            with anyio.fail_after(BODY_SECONDS):
                self._incoming.receive_data(await self.client.receive())

    def _request(
        self,
        request: h11.Request,
        path: bytes,
        body: bytes | None = None,
        betas: Sequence[str] = (),
    ) -> h11.Request:
        """Return the request for the upstream; ``body`` sets its length, ``betas`` are added."""
        headers: list[tuple[bytes, bytes]] = []
        added = [beta.encode() for beta in betas]
        for name, value in request.headers.raw_items():
            match name.lower():
                case b"host":
                    headers.append((name, self.address.authority.encode()))
                case b"content-length" if body is not None:
                    headers.append((name, b"%d" % len(body)))
                case b"anthropic-beta":
                    headers.append((name, b",".join((value, *added))))
                    added = []
                case other if other not in _HOP_BY_HOP:
                    headers.append((name, value))
        if added:
            headers.append((b"anthropic-beta", b",".join(added)))
        target = self.address.path.encode() + path
        return h11.Request(method=request.method, target=target, headers=headers)

    async def _exchange(
        self,
        request: h11.Request,
        end: h11.EndOfMessage | None,
        body: bytes = b"",
        *,
        hold: bool = False,
    ) -> bool:
        """Send a request and pass its reply on. Without an ``end`` the rest of the body follows.

        With ``hold`` a reply of status 400 is not passed on, and the result is true. Raises
        _OverError.
        """
        upstream = await self._connected()
        self._outgoing = h11.Connection(h11.CLIENT, HEAD_BYTES)
        self._status = 0
        pieces = [request, *([h11.Data(data=body)] if body else []), *([end] if end else [])]
        data = b"".join(self._outgoing.send(piece) or b"" for piece in pieces)
        refused, over, sent = False, True, anyio.Event()

        async def upload() -> None:
            """Send the request to the upstream, then wait for the client's next bytes."""
            with suppress(h11.ProtocolError, *_GONE):
                await _send(upstream, data)
                piece: h11.Data | h11.EndOfMessage | None = end
                while not isinstance(piece, h11.EndOfMessage):
                    piece = await self._next_event()
                    await _send(upstream, self._outgoing.send(piece) or b"")
                sent.set()
                # Bytes that come now are the next request, or the client hangs up.
                self._incoming.receive_data(await self.client.receive())
                return
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(upload)
            with suppress(_OverError, *_GONE):
                refused = await self._relay(upstream, hold=hold)
                await sent.wait()
                over = False
            group.cancel_scope.cancel()
        if over:
            raise _OverError
        return refused

    async def _relay(self, upstream: ByteStream, *, hold: bool) -> bool:
        """Pass a reply on and return false; with ``hold`` return true for a refusal, unsent."""
        held, ended = bytearray(), False
        while not ended:
            try:
                data = await upstream.receive()
            except _GONE:
                await self.client.send(bytes(held))
                raise _OverError from None
            ended = self._ends_with(data)
            if hold:
                held += data
                may_be_refusal = self._status in {0, _REFUSED} and len(held) <= _REFUSAL_BYTES
                if may_be_refusal and ended:
                    return True
                if may_be_refusal:
                    continue
                hold, data = False, bytes(held)
                held.clear()
            await self.client.send(data)
        return False

    def _ends_with(self, data: bytes) -> bool:
        """Parse a piece of the reply, and return whether the reply ends with it."""
        with suppress(h11.RemoteProtocolError):
            self._outgoing.receive_data(data)
            while (event := self._outgoing.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Response):
                    self._status = event.status_code
                if isinstance(event, h11.EndOfMessage):
                    return True
            return False
        self._status = self._status or -1  # unknown: the reply is not held any longer
        return False

    async def _connected(self) -> ByteStream:
        """Return a usable upstream connection. Raises _OverError after an answer of status 502."""
        if self._upstream is not None and self._outgoing.their_state is not h11.DONE:
            await self._hang_up()
        if self._upstream is None:
            try:
                self._upstream = await self.address.connect()
            except _GONE:
                await self._answer(502, _UNREACHABLE)
                raise _OverError from None
        return self._upstream

    async def _hang_up(self) -> None:
        """Close the upstream connection, if there is one."""
        if self._upstream is not None:
            await anyio.aclose_forcefully(self._upstream)
            self._upstream = None

    async def _answer(self, status: int, body: bytes = b"") -> None:
        """Answer the client in the upstream's place and end both connections. Raises _OverError."""
        phrase = HTTPStatus(status).phrase
        kind = "Content-Type: application/json\r\n" if body else ""
        head = f"HTTP/1.1 {status} {phrase}\r\n{kind}Content-Length: {len(body)}\r\n"
        await self.client.send(f"{head}Connection: close\r\n\r\n".encode() + body)
        # A client that is still sending would be reset before it reads.
        with anyio.move_on_after(_LINGER_SECONDS), suppress(*_GONE):
            await self.client.send_eof()
            while await self.client.receive():
                pass
        raise _OverError


async def _send(upstream: ByteStream, data: bytes) -> None:
    """Send data to the upstream, ignoring that it hung up."""
    # An upstream that hangs up early may have sent a reply first; ``_relay`` reads it.
    with suppress(*_GONE):
        await upstream.send(data)


def _is_from_browser(name: bytes) -> bool:
    """Return whether a header's name is one that browsers send for web pages."""
    # Node's own fetch sends Sec-Fetch-Mode; a browser sends Sec-Fetch-Site beside it.
    return name == b"origin" or (name.startswith(b"sec-fetch-") and name != b"sec-fetch-mode")


def _is_ambiguous(request: h11.Request) -> bool:
    """Return whether two servers could find the end of a request at different places."""
    names = [name for name, _ in request.headers]
    both = b"content-length" in names and b"transfer-encoding" in names
    return both or request.http_version != b"1.1"
