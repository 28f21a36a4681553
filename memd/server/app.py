"""Serve the table of routes over HTTP: check each request, read it, handle it, and log it.

Rules of this file
- A request is refused before its body is read, where possible.
- Refusals before the storage is used are sent one at a time, so that a flood of bad requests takes
  no processor time from others.
- An error is sent as its class says. An unexpected one is a 500 with the id of its log entry.
- A body that is too long is not read to its end: the response is sent, and soon the connection
  ends.
"""

import gzip
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
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
from memd.server.errors import (
    MalformedRequestError,
    NotThereError,
    OverLimitError,
    RequestPart,
    ServerFaultError,
    StorageUnavailableError,
    TeamServerError,
    UnauthorisedError,
)
from memd.server.log import ServingLog
from memd.server.requests import TeamCall
from memd.server.routes import ROUTES, TeamRoute
from memd.server.storage import Storage
from memd.server.values import Session

BODY_SECONDS = 30.0  # for a body to come
_WORKER_THREADS = 16
_PAUSE_BEFORE_REFUSAL = 0.002  # seconds
_MOST_DROPPED_BYTES = 8 * 1024 * 1024  # of a body that nobody reads, after the response
_DROPPING_SECONDS = 2.0
_LEAST_ZIPPED_BYTES = 512  # smaller responses are not compressed
_JSON = "application/json"
_PLAIN_JSON = re.compile(r"application/json\s*(;\s*charset=utf-8)?", re.IGNORECASE)
_ACCEPTS_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
T = TypeVar("T")


def application(
    storage: Storage, clock: Callable[[], float] = time.time, log: ServingLog | None = None
) -> Starlette:
    """Return the application in front of a storage; ``clock`` returns seconds since 1970."""
    serving = _Application(storage, clock, log or ServingLog(sys.stderr))
    routes = [Route(row.path, partial(serving.handle, row), methods=[row.method]) for row in ROUTES]
    handlers = {HTTPException: serving.refuse_unrouted}
    result = Starlette(routes=routes, exception_handlers=handlers)
    result.router.redirect_slashes = False
    return result


class _Application:
    """The HTTP application of one server: it admits, reads, handles and reports each request."""

    def __init__(self, storage: Storage, clock: Callable[[], float], log: ServingLog) -> None:
        self._storage = storage
        self._clock = clock
        self._log = log
        self._threads = anyio.CapacityLimiter(_WORKER_THREADS)
        self._refusal_lock = anyio.Lock()  # early refusals are sent one at a time

    async def handle(self, row: TeamRoute, request: Request) -> Response:
        """Answer one request of a route: its reply or its error, which is then logged."""
        open_request = _OpenRequest(request, f"{row.method} {row.path}")
        try:
            response = await self._admit_and_answer(row, open_request)
        except TeamServerError as error:
            response = await self._refuse(open_request, error)
        except ClientDisconnect:
            response = Response(status_code=400)  # nobody reads it
        except Exception as error:  # noqa: BLE001 - the edge: a fault of one request is no other's
            fault = ServerFaultError(self._log.fault(error))
            response = await self._refuse(open_request, fault)
        self._report(open_request, response)
        return response

    async def refuse_unrouted(self, request: Request, error: Exception) -> Response:
        """Answer a request for which there is no route, or no such method of its route."""
        open_request = _OpenRequest(request, "none")
        refusal: TeamServerError = MalformedRequestError(RequestPart.METHOD)
        if isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND:
            refusal = NotThereError(requests.ROUTE)
        response = await self._refuse(open_request, refusal)
        response.headers.update(getattr(error, "headers", None) or {})  # Allow
        self._report(open_request, response)
        return response

    async def _admit_and_answer(self, row: TeamRoute, open_request: "_OpenRequest") -> Response:
        """Check a request, read it, and return its handler's response. Raises TeamServerError."""
        request, now = open_request.request, self._clock()
        headers = requests.single(request.headers.raw)
        if row.token:
            open_request.session = await self._session(headers, now)
        parameters = requests.query(request.scope["query_string"], frozenset(row.query))
        body = await self._read_body(row, open_request, headers)
        call = TeamCall(now, open_request.session, request.path_params, parameters, headers, body)
        open_request.admitted = True
        return await self._run_in_thread(self._call_handler, row, call)

    def _call_handler(self, row: TeamRoute, call: TeamCall) -> Response:
        """Return a handler's reply as a response; runs in a worker thread."""
        reply = row.handler(self._storage, call)
        headers = dict(_HEADERS)
        if reply.mark:
            headers["ETag"] = f'"{reply.mark}"'
        if reply.content is None:
            return Response(status_code=reply.status, headers=headers)
        body = msgspec.json.encode(reply.content)
        headers |= {"Content-Type": _JSON, "Vary": "Accept-Encoding"}
        accepts_gzip = _ACCEPTS_GZIP.search(call.headers.get("accept-encoding", ""))
        if accepts_gzip and len(body) >= _LEAST_ZIPPED_BYTES:
            body = gzip.compress(body, 6, mtime=0)
            headers["Content-Encoding"] = "gzip"
        return Response(body, reply.status, headers)

    async def _session(self, headers: Mapping[str, str], now: float) -> Session:
        """Return the session of a request's token. Raises UnauthorisedError."""
        text = requests.token(headers.get("authorization", ""))
        if text is None:
            raise UnauthorisedError
        session = await self._run_in_thread(self._storage.session, text, now=now)
        if session is None:
            raise UnauthorisedError
        return session

    async def _read_body(
        self, row: TeamRoute, open_request: "_OpenRequest", headers: Mapping[str, str]
    ) -> bytes:
        """Return the body of a request, empty if its route takes none. Raises TeamServerError."""
        if not row.body and open_request.has_body:
            raise MalformedRequestError(RequestPart.NO_BODY)
        if not row.body:
            return b""
        is_json = _PLAIN_JSON.fullmatch(headers.get("content-type", ""))
        if not is_json or "content-encoding" in headers:
            raise MalformedRequestError(RequestPart.MEDIA_TYPE)
        limit = self._storage.limits.put_bytes
        declared_bytes = int(headers.get("content-length", "0"))
        body = bytearray()
        with anyio.move_on_after(BODY_SECONDS) as timeout:
            # A body that is too long is not read, or not read any further.
            while max(declared_bytes, len(body)) <= limit and not open_request.is_read:
                body += await open_request.next_bytes()
        if timeout.cancelled_caught:
            raise MalformedRequestError(RequestPart.BODY)
        size = max(declared_bytes, len(body))
        if size > limit:
            raise OverLimitError(limit="put_bytes", most=limit, have=size)
        return bytes(body)

    async def _refuse(self, open_request: "_OpenRequest", error: TeamServerError) -> Response:
        """Return the response for an error; before admission only one at a time, with a pause."""
        headers = dict(_HEADERS)
        if not open_request.admitted:
            async with self._refusal_lock:
                await anyio.sleep(_PAUSE_BEFORE_REFUSAL)
        if isinstance(error, StorageUnavailableError):
            self._log.note("storage unavailable", cause=error.cause)
        if error.retry_after:
            headers["Retry-After"] = str(ceil(error.retry_after))
        if isinstance(error, UnauthorisedError):
            headers["WWW-Authenticate"] = "Bearer"
        open_request.kind = error.kind
        members = {"kind": error.kind, "message": error.sentence, "retryable": error.retryable}
        body = msgspec.json.encode({"error": {**members, **error.details}})
        if open_request.has_body and not open_request.is_read:
            return _LastResponse(open_request, body, error.status, headers)
        return Response(body, error.status, headers, _JSON)

    def _report(self, open_request: "_OpenRequest", response: Response) -> None:
        """Log a request that was answered, without its content."""
        session = open_request.session
        self._log.note(
            "request",
            route=open_request.route,
            status=response.status_code,
            kind=open_request.kind,
            ms=round((time.monotonic() - open_request.started) * 1000, 1),
            member=session.member if session else "",
            device=session.device if session else "",
            received=open_request.received,
            sent=len(response.body),
        )

    async def _run_in_thread(
        self, function: Callable[..., T], *arguments: object, **named_arguments: object
    ) -> T:
        """Run a blocking function in a worker thread; a cancelled request lets it finish."""
        call = partial(function, *arguments, **named_arguments)
        return await to_thread.run_sync(call, limiter=self._threads)


class _OpenRequest(Struct):
    """A request that is being answered, with the facts for its line in the log.

    ``route`` is its method and path, ``started`` monotonic seconds, ``kind`` that of the error, and
    ``received`` the bytes of the body that have come.
    """

    request: Request
    route: str
    started: float = field(default_factory=time.monotonic)
    session: Session | None = None
    kind: str = ""
    received: int = 0
    is_read: bool = False  # its body was read to its end
    admitted: bool = False  # its token and its body were accepted

    @property
    def has_body(self) -> bool:
        """Whether the request has a body."""
        headers = self.request.headers
        return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"

    async def next_bytes(self) -> bytes:
        """Return the next bytes of the body. Raises ClientDisconnect."""
        message = await self.request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        self.is_read = not message.get("more_body", False)
        data: bytes = message.get("body", b"")
        self.received += len(data)
        return data


class _LastResponse(Response):
    """A response that is sent before the request's body was read; the rest is dropped.

    If the connection were closed with unread bytes, it would be reset and the client would not get
    the response. So the rest is read, up to a bound.
    """

    def __init__(
        self, open_request: _OpenRequest, body: bytes, status: int, headers: Mapping[str, str]
    ) -> None:
        super().__init__(body, status, {**headers, "Connection": "close"}, _JSON)
        self._open_request = open_request

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        """Answer, read on up to a bound, and end the connection."""
        head = {"type": "http.response.start", "status": self.status_code}
        await send({**head, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        open_request = self._open_request
        limit = open_request.received + _MOST_DROPPED_BYTES
        with anyio.move_on_after(_DROPPING_SECONDS), suppress(ClientDisconnect):
            while not open_request.is_read and open_request.received < limit:
                await open_request.next_bytes()
        await send({"type": "http.response.body", "body": b""})
