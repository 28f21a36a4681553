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
_LINGER_SECONDS = 1.0  # to wait after an error answer for the client to hang up
_REFUSAL_BYTES = 1024 * 1024  # a longer refusal is passed on at once
_REFUSED = 400  # the status of a reply that refuses a request
_UNKNOWN_STATUS = -1  # of a reply that cannot be parsed
_HOP_BY_HOP = (b"expect", b"upgrade")  # for the gateway itself, not passed on
_CONNECTION_ERRORS = (
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    OSError,
)
_UNREACHABLE = (
    b'{"type":"error","error":{"type":"api_error",'
    b'"message":"memd gateway: the upstream cannot be reached"}}'
)


class _ConnectionOverError(Exception):
    """One side hung up or broke the rules, so both connections end."""


class Entrance(Struct, frozen=True):
    """Lets a request pass if it has the gateway's host and secret and no web page sent it."""

    port: int
    secret: str

    def path(self, request: h11.Request) -> bytes | None:
        """Return the path behind the secret, ``None`` for a request that is refused."""
        before_slash, _, rest = request.target.partition(b"/")
        secret, slash, path = rest.partition(b"/")
        if before_slash or not slash:  # the target is a whole URL, or has no secret
            return None
        if not compare_digest(secret, self.secret.encode()):
            return None
        own_hosts = [f"127.0.0.1:{self.port}".encode(), f"localhost:{self.port}".encode()]
        host = next((value.lower() for name, value in request.headers if name == b"host"), b"")
        is_from_page = any(_is_from_browser(name) for name, _ in request.headers)
        return None if is_from_page or host not in own_hosts else b"/" + path


@dataclass(slots=True)
class GatewayConnection:
    """Serves a client until either side hangs up; ``address`` is where its requests go."""

    client: SocketStream
    entrance: Entrance
    address: Upstream
    rewriter: Rewriter
    # The connection to the upstream, which is made for the first request and used for all.
    _upstream: ByteStream | None = None
    # The HTTP state of the current request, as it comes from the client and as it goes on.
    _incoming: h11.Connection = field(default_factory=lambda: h11.Connection(h11.SERVER))
    _outgoing: h11.Connection = field(default_factory=lambda: h11.Connection(h11.CLIENT))
    _status: int = 0  # of the current reply, 0 while it is not known

    async def serve(self) -> None:
        """Serve requests, one after the other; errors of either side only end it."""
        try:
            with suppress(_ConnectionOverError, h11.LocalProtocolError, *_CONNECTION_ERRORS):
                while True:
                    await self._serve_request()
        finally:
            await self._hang_up()
            await anyio.aclose_forcefully(self.client)

    async def _serve_request(self) -> None:
        """Check and forward one request, or answer with an error. Raises _ConnectionOverError."""
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
        """Return the next request, without its body. Raises _ConnectionOverError if none comes."""
        data = self._incoming.trailing_data[0] or await self._first_bytes()
        self._incoming = h11.Connection(h11.SERVER, HEAD_BYTES)
        with anyio.move_on_after(HEAD_SECONDS):
            while data:
                self._incoming.receive_data(data)
                event = self._incoming.next_event()
                if isinstance(event, h11.Request):
                    return event
                data = await self.client.receive()
        raise _ConnectionOverError

    async def _first_bytes(self) -> bytes:
        """Return a request's first bytes, b"" if a side hangs up or the time is up."""
        first_bytes = b""

        async def watch(upstream: ByteStream, scope: anyio.CancelScope) -> None:
            """End the wait for a request when the upstream hangs up."""
            with suppress(*_CONNECTION_ERRORS):
                await upstream.receive()
            scope.cancel()

        async with anyio.create_task_group() as group:
            if self._upstream is not None:
                group.start_soon(watch, self._upstream, group.cancel_scope)
            # A connection that has not sent a request yet gets less time.
            seconds = HEAD_SECONDS if self._upstream is None else IDLE_SECONDS
            with anyio.move_on_after(seconds), suppress(*_CONNECTION_ERRORS):
                first_bytes = await self.client.receive()
            group.cancel_scope.cancel()
        return first_bytes

    async def _forward(self, request: h11.Request, path: bytes) -> None:
        """Send a request on, rewritten if possible; if that is refused, send the fallback.

        ``path`` is the request's path behind the secret. Raises _ConnectionOverError.
        """
        if self._incoming.they_are_waiting_for_100_continue:
            await self.client.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        name = path.partition(b"?")[0]
        may_change = self.rewriter.may_change(request.method, name, dict(request.headers))
        body, end = await self._body() if may_change else (b"", None)
        if end is None:  # the body is not changed, or was too large to be read to its end
            await self._exchange(self._upstream_request(request, path), None, body)
            return
        rewritten = await to_thread.run_sync(self.rewriter.rewrite, name, body)
        new_request = self._upstream_request(request, path, rewritten.body, rewritten.betas)
        fallback = rewritten.fallback
        hold = fallback is not None
        is_refused = await self._exchange(new_request, end, rewritten.body, hold=hold)
        if is_refused and fallback is not None:
            second_body = await to_thread.run_sync(fallback)
            second_request = self._upstream_request(request, path, second_body, rewritten.betas)
            await self._exchange(second_request, end, second_body)

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

    def _upstream_request(
        self,
        request: h11.Request,
        path: bytes,
        body: bytes | None = None,
        betas: Sequence[str] = (),
    ) -> h11.Request:
        """Return a client's request in the form for the upstream.

        ``body`` gives its new length, ``None`` leaves the length as it is. ``betas`` are added to
        the header of that name.
        """
        headers: list[tuple[bytes, bytes]] = []
        new_betas = [beta.encode() for beta in betas]  # until a header has them
        for name, value in request.headers.raw_items():
            match name.lower():
                case b"host":
                    headers.append((name, self.address.authority.encode()))
                case b"content-length" if body is not None:
                    headers.append((name, b"%d" % len(body)))
                case b"anthropic-beta":
                    headers.append((name, b",".join((value, *new_betas))))
                    new_betas = []
                case other if other not in _HOP_BY_HOP:
                    headers.append((name, value))
        if new_betas:
            headers.append((b"anthropic-beta", b",".join(new_betas)))
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
        """Send a request, pass its reply on, and return false.

        ``body`` is what is known of the request's body. Without an ``end`` the rest of it is passed
        on as the client sends it. With ``hold`` a reply of status 400 is not passed on, and the
        result is true. Raises _ConnectionOverError.
        """
        upstream = await self._upstream_connection()
        self._outgoing = h11.Connection(h11.CLIENT, HEAD_BYTES)
        self._status = 0
        pieces: list[h11.Request | h11.Data | h11.EndOfMessage] = [request]
        if body:
            pieces.append(h11.Data(data=body))
        if end:
            pieces.append(end)
        data = b"".join(self._outgoing.send(piece) or b"" for piece in pieces)
        is_refused, is_over = False, True
        is_sent = anyio.Event()  # set when the whole request is sent

        async def upload() -> None:
            """Send the request to the upstream, then wait for the client's next bytes."""
            with suppress(h11.ProtocolError, *_CONNECTION_ERRORS):
                await _send(upstream, data)
                piece: h11.Data | h11.EndOfMessage | None = end
                while not isinstance(piece, h11.EndOfMessage):
                    piece = await self._next_event()
                    await _send(upstream, self._outgoing.send(piece) or b"")
                is_sent.set()
                # Bytes that come now are the next request, or the client hangs up.
                self._incoming.receive_data(await self.client.receive())
                return
            group.cancel_scope.cancel()  # a side hung up or broke the rules

        async with anyio.create_task_group() as group:
            group.start_soon(upload)
            with suppress(_ConnectionOverError, *_CONNECTION_ERRORS):
                is_refused = await self._relay(upstream, hold=hold)
                await is_sent.wait()
                is_over = False
            group.cancel_scope.cancel()
        if is_over:
            raise _ConnectionOverError
        return is_refused

    async def _relay(self, upstream: ByteStream, *, hold: bool) -> bool:
        """Pass a reply on to its end and return false.

        With ``hold`` the reply is held back while it may be a refusal. If it is one, it is dropped
        and the result is true. Raises _ConnectionOverError.
        """
        held_bytes, has_ended = bytearray(), False
        while not has_ended:
            try:
                data = await upstream.receive()
            except _CONNECTION_ERRORS:
                await self.client.send(bytes(held_bytes))
                raise _ConnectionOverError from None
            has_ended = self._ends_reply(data)
            if hold:
                held_bytes += data
                is_short = len(held_bytes) <= _REFUSAL_BYTES
                may_be_refusal = is_short and self._status in {0, _REFUSED}
                if may_be_refusal and has_ended:
                    return True
                if may_be_refusal:
                    continue
                hold, data = False, bytes(held_bytes)
                held_bytes.clear()
            await self.client.send(data)
        return False

    def _ends_reply(self, data: bytes) -> bool:
        """Parse a piece of the reply, and return whether the reply ends with it.

        Sets ``_status``. A reply that cannot be parsed has no end.
        """
        try:
            self._outgoing.receive_data(data)
            event = self._outgoing.next_event()
            while event not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Response):
                    self._status = event.status_code
                if isinstance(event, h11.EndOfMessage):
                    return True
                event = self._outgoing.next_event()
        except h11.RemoteProtocolError:
            self._status = self._status or _UNKNOWN_STATUS  # so that the reply is not held back
        return False

    async def _upstream_connection(self) -> ByteStream:
        """Return a usable upstream connection.

        If there is none the client gets an answer of status 502. Raises _ConnectionOverError then.
        """
        if self._upstream is not None and self._outgoing.their_state is not h11.DONE:
            await self._hang_up()  # the last reply was not read to its end, so this cannot be used
        if self._upstream is None:
            try:
                self._upstream = await self.address.connect()
            except _CONNECTION_ERRORS:
                await self._answer(502, _UNREACHABLE)
                raise _ConnectionOverError from None
        return self._upstream

    async def _hang_up(self) -> None:
        """Close the upstream connection, if there is one."""
        if self._upstream is not None:
            await anyio.aclose_forcefully(self._upstream)
            self._upstream = None

    async def _answer(self, status: int, body: bytes = b"") -> None:
        """Answer the client in place of the upstream, then raise _ConnectionOverError."""
        phrase = HTTPStatus(status).phrase
        kind = "Content-Type: application/json\r\n" if body else ""
        head = f"HTTP/1.1 {status} {phrase}\r\n{kind}Content-Length: {len(body)}\r\n"
        await self.client.send(f"{head}Connection: close\r\n\r\n".encode() + body)
        # A client that is still sending would be reset before it reads.
        with anyio.move_on_after(_LINGER_SECONDS), suppress(*_CONNECTION_ERRORS):
            await self.client.send_eof()
            while await self.client.receive():
                pass
        raise _ConnectionOverError


async def _send(upstream: ByteStream, data: bytes) -> None:
    """Send data to the upstream, ignoring that it hung up."""
    # An upstream that hangs up early may have sent a reply first; ``_relay`` reads it.
    with suppress(*_CONNECTION_ERRORS):
        await upstream.send(data)


def _is_from_browser(name: bytes) -> bool:
    """Return whether a header's name is one that browsers send for web pages."""
    # Node's own fetch sends Sec-Fetch-Mode; a browser sends Sec-Fetch-Site beside it.
    return name == b"origin" or (name.startswith(b"sec-fetch-") and name != b"sec-fetch-mode")


def _is_ambiguous(request: h11.Request) -> bool:
    """Return whether two servers could find the end of a request at different places."""
    names = [name for name, _ in request.headers]
    has_two_lengths = b"content-length" in names and b"transfer-encoding" in names
    return has_two_lengths or request.http_version != b"1.1"
