"""The routes as an application of HTTP: who asks, how often, what is read, how it is answered.

Rules of this file
- A request is refused before its body is read wherever that can be known.
- What is refused before the storage is asked is answered one at a time: a sender that goes on
  and on takes the processor from nobody.
- An error goes out as its class says. What nobody expected is a 500 with the id under which the
  log has it.
- A body is cut while it is read: the answer goes out, and soon the connection ends.
"""

import gzip
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from math import ceil
from typing import TypeVar

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct, field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from memd.server import requests
from memd.server.admission import Admission, Network, client_address
from memd.server.errors import (
    MalformedRequestError,
    NotThereError,
    OverLimitError,
    RequestPart,
    RoleMissingError,
    ServerFaultError,
    StorageUnavailableError,
    TeamServerError,
    UnauthorisedError,
)
from memd.server.log import TeamLog
from memd.server.metrics import CONTENT_TYPE, Metrics
from memd.server.requests import TeamCall
from memd.server.routes import ROUTES, Backends, TeamRoute
from memd.server.storage import Storage
from memd.server.values import Session

BODY_SECONDS = 30.0
_THREADS = 16
_REFUSAL_SECONDS = 0.002
_DROPPED_BYTES = 8 * 1024 * 1024
_DROPPING_SECONDS = 2.0
_EXPIRING_SECONDS = 3600.0
_LEAST_ZIPPED = 512  # bytes
_JSON = "application/json"
_PLAIN_JSON = re.compile(r"application/json\s*(;\s*charset=utf-8)?", re.IGNORECASE)
_ZIPPED = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
T = TypeVar("T")


class TeamOptions(Struct, frozen=True):
    """How the server is run.

    ``proxies`` are the addresses whose X-Forwarded-For is believed; with any, a request from
    elsewhere but this machine is refused. ``clock`` gives seconds since 1970.
    """

    proxies: tuple[Network, ...] = ()
    clock: Callable[[], float] = time.time
    log: TeamLog = field(default_factory=lambda: TeamLog(sys.stderr))


def application(storage: Storage, options: TeamOptions | None = None) -> Starlette:
    """Return the application in front of a storage."""
    return _Application(storage, options or TeamOptions()).starlette()


class _Application:
    def __init__(self, storage: Storage, options: TeamOptions) -> None:
        self._storage = storage
        self._options = options
        self._metrics = Metrics()
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._refusals = anyio.Lock()
        self._admission = Admission()

    def starlette(self) -> Starlette:
        """Return the application that a server of ASGI runs."""
        routes = [
            Route(row.path, partial(self._handle, row), methods=[row.method]) for row in ROUTES
        ]
        unrouted = {HTTPException: self._unrouted}
        result = Starlette(routes=routes, exception_handlers=unrouted, lifespan=self._lifespan)
        result.router.redirect_slashes = False
        return result

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._expire)
            yield
            group.cancel_scope.cancel()

    async def _expire(self) -> None:
        """Forget what is old enough, now and every hour."""
        while True:
            try:
                now = await self._run(self._storage.sound_time, self._options.clock())
                await self._run(self._storage.expire, now)
            except TeamServerError as error:
                self._options.log.fault(error)
            await anyio.sleep(_EXPIRING_SECONDS)

    async def _handle(self, row: TeamRoute, request: Request) -> Response:
        opened = _OpenRequest(request, f"{row.method} {row.path}")
        self._metrics.running += 1
        try:
            response = await self._answer(row, opened)
        except TeamServerError as error:
            response = await self._refuse(opened, error)
        except ClientDisconnect:
            response = Response(status_code=400)  # nobody reads it
        except Exception as error:  # noqa: BLE001 - the edge: a fault of one request is no other's
            fault = ServerFaultError(self._options.log.fault(error))
            response = await self._refuse(opened, fault)
        finally:
            self._metrics.running -= 1
        self._report(opened, response)
        return response

    async def _unrouted(self, request: Request, error: Exception) -> Response:
        """Answer what has no route, or none of this method."""
        opened = _OpenRequest(request, "none")
        known = isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND
        unknown = MalformedRequestError(RequestPart.METHOD)
        refusal = NotThereError(requests.ROUTE) if known else unknown
        response = await self._refuse(opened, refusal)
        response.headers.update(getattr(error, "headers", None) or {})  # Allow
        self._report(opened, response)
        return response

    async def _answer(self, row: TeamRoute, opened: "_OpenRequest") -> Response:
        """Let a request in, read it, and have it handled. Raises TeamServerError."""
        request, now = opened.request, self._options.clock()
        headers = requests.single(request.headers.raw)
        opened.address = client_address(
            request.client.host if request.client else None,
            headers.get("x-forwarded-for", ""),
            self._options.proxies,
        )
        if row.token:
            session = opened.session = await self._session(opened.address, headers, now)
            if row.admin and not session.admin:
                raise RoleMissingError(needed="admin")
        elif row.body:
            self._admission.check_address(opened.address, now)
        parameters = requests.query(request.scope["query_string"], frozenset(row.query))
        body = await self._body(row, opened, headers)
        call = TeamCall(
            opened.address, now, opened.session, request.path_params, parameters, headers, body
        )
        opened.admitted = True
        try:
            return await self._run(self._handled, row, call)
        except UnauthorisedError:  # a code of an invitation
            self._admission.failed(opened.address, now)
            raise

    def _handled(self, row: TeamRoute, call: TeamCall) -> Response:
        """Return a handler's reply as it goes out; in a worker thread."""
        reply = row.handler(Backends(self._storage, self._metrics), call)
        headers = _HEADERS | ({"ETag": f'"{reply.mark}"'} if reply.mark else {})
        if reply.content is None:
            return Response(status_code=reply.status, headers=headers)
        kind = _JSON
        if isinstance(reply.content, str):
            kind, body = CONTENT_TYPE, reply.content.encode()
        else:
            body = msgspec.json.encode(reply.content)
        headers |= {"Content-Type": kind, "Vary": "Accept-Encoding"}
        if len(body) >= _LEAST_ZIPPED and _ZIPPED.search(call.headers.get("accept-encoding", "")):
            body, headers["Content-Encoding"] = gzip.compress(body, 6, mtime=0), "gzip"
        return Response(body, reply.status, headers)

    async def _session(self, address: str, headers: Mapping[str, str], now: float) -> Session:
        """Return whose request it is. Raises UnauthorisedError and SlowDownError."""
        text = requests.token(headers.get("authorization", ""))
        session = None
        if text:
            session = await self._run(self._storage.session, text, now=now, address=address)
        if session is None:
            self._admission.failed(address, now)
            raise UnauthorisedError
        self._admission.admit(session, now)
        return session

    async def _body(
        self, row: TeamRoute, opened: "_OpenRequest", headers: Mapping[str, str]
    ) -> bytes:
        """Return the body of a request, as far as its route takes one. Raises TeamServerError."""
        if not row.body and opened.sends:
            raise MalformedRequestError(RequestPart.NO_BODY)
        if not row.body:
            return b""
        plain = _PLAIN_JSON.fullmatch(headers.get("content-type", ""))
        if not plain or "content-encoding" in headers:
            raise MalformedRequestError(RequestPart.MEDIA_TYPE)
        most, declared = self._storage.limits.put_bytes, int(headers.get("content-length", "0"))
        body = bytearray()
        with anyio.move_on_after(BODY_SECONDS) as timeout:
            while declared <= most and len(body) <= most and not opened.whole:
                body += await opened.piece()
        if opened.session:
            self._admission.received(opened.session, opened.received, self._options.clock())
        if timeout.cancelled_caught:
            raise MalformedRequestError(RequestPart.BODY)
        if max(declared, len(body)) > most:
            raise OverLimitError(limit="put_bytes", most=most, have=max(declared, len(body)))
        return bytes(body)

    async def _refuse(self, opened: "_OpenRequest", error: TeamServerError) -> Response:
        """Return what a refused request is answered."""
        headers = dict(_HEADERS)
        if not opened.admitted:
            async with self._refusals:
                await anyio.sleep(_REFUSAL_SECONDS)
        if isinstance(error, StorageUnavailableError):
            self._options.log.note("storage unavailable", cause=error.cause)
        if error.retry_after:
            headers["Retry-After"] = str(ceil(error.retry_after))
        if isinstance(error, UnauthorisedError):
            headers["WWW-Authenticate"] = "Bearer"
        opened.kind = error.kind
        described = {"kind": error.kind, "message": error.sentence, "retryable": error.retryable}
        body = msgspec.json.encode({"error": {**described, **error.details}})
        if opened.sends and not opened.whole:
            return _LastResponse(opened, body, error.status, headers)
        return Response(body, error.status, headers, _JSON)

    def _report(self, opened: "_OpenRequest", response: Response) -> None:
        seconds = time.monotonic() - opened.started
        sent, session = len(response.body), opened.session
        status = response.status_code
        self._metrics.count(opened.route, status, seconds, opened.received, sent)
        self._options.log.note(
            "request",
            route=opened.route,
            status=status,
            kind=opened.kind,
            ms=round(seconds * 1000, 1),
            address=opened.address,
            member=session.member if session else "",
            device=session.device if session else "",
            received=opened.received,
            sent=sent,
        )

    async def _run(self, function: Callable[..., T], *arguments: object, **named: object) -> T:
        """Return what a function that blocks returns; it is never left half done."""
        call = partial(function, *arguments, **named)
        return await to_thread.run_sync(call, limiter=self._threads)


class _OpenRequest(Struct):
    """A request while it is answered, and what the log tells of it."""

    request: Request
    route: str
    started: float = field(default_factory=time.monotonic)
    address: str = ""
    session: Session | None = None
    kind: str = ""
    received: int = 0
    whole: bool = False  # its body was read to its end
    admitted: bool = False

    @property
    def sends(self) -> bool:
        """Whether a body comes with it."""
        headers = self.request.headers
        return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"

    async def piece(self) -> bytes:
        """Return more of its body. Raises ClientDisconnect."""
        message = await self.request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        self.whole = not message.get("more_body", False)
        data: bytes = message.get("body", b"")
        self.received += len(data)
        return data


class _LastResponse(Response):
    """An answer while a body still comes: what comes is dropped for a moment.

    A connection that ends with something unread is reset, and its client loses the answer.
    """

    def __init__(
        self, opened: _OpenRequest, body: bytes, status: int, headers: Mapping[str, str]
    ) -> None:
        super().__init__(body, status, {**headers, "Connection": "close"}, _JSON)
        self._opened = opened

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        """Answer, read on up to a bound, and end the connection."""
        head = {"type": "http.response.start", "status": self.status_code}
        await send({**head, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        opened, dropped = self._opened, self._opened.received + _DROPPED_BYTES
        with anyio.move_on_after(_DROPPING_SECONDS), suppress(ClientDisconnect):
            while not opened.whole and opened.received < dropped:
                await opened.piece()
        await send({"type": "http.response.body", "body": b""})
