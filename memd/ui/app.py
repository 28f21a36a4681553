"""The page as an HTTP application: it checks, reads and answers each request.

Rules of this file
- Every answer has the security headers, also one for a fault.
- A refused request gets 403 and an empty body.
- Views change nothing. The routes that change something exist only with ``write``, take only forms,
  and redirect to a page.
- A failure of the daemon is shown as a page with its sentence and its hint.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import tzinfo
from functools import partial
from http import HTTPStatus
from urllib.parse import parse_qsl

import anyio
from msgspec import Struct
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memd.base.errors import Internal, MemdError
from memd.ui.access import TOKEN_SECONDS, PageAccess, PageGate, RequestHead
from memd.ui.actions import ACTIONS, FORMS, Action, Fields
from memd.ui.link import SocketLink
from memd.ui.pages import Pages
from memd.ui.routes import VIEWS, frame
from memd.ui.views import Context, PageQuery, PageView

HEAD_BYTES = 32 * 1024  # of a request's line and headers
BODY_BYTES = 256 * 1024  # of a form
BODY_SECONDS = 15.0  # until the whole form must have come
_LAST_SECONDS = 0.5  # for the browser to load the style of the last page
_FIELDS = 200  # of a form
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With no-referrer browsers would send the Origin of a form as "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_STATIC = os.path.join(os.path.dirname(__file__), "static")
_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class PageOptions(Struct, frozen=True):
    """The options of a run."""

    here: str  # the working directory
    write: bool = False  # whether a person may change memories from the page
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    zone: tzinfo | None = None  # of all times that are shown; ``None`` for this machine's


def _page_fault(cause: str) -> Internal:
    return Internal(
        f"this page could not be made ({cause})",
        hint="memctl status says whether the daemon is of another version",
        cause=cause,
    )


class PageServer:
    """The ASGI application; ``stop`` is set when the server must end."""

    def __init__(self, link: SocketLink, access: PageAccess, options: PageOptions) -> None:
        self._link = link
        self._access = access
        self._options = options
        self._pages = Pages()
        self.stop = anyio.Event()
        self.last_request = options.monotonic()  # when somebody last used the page
        self._routes = Starlette(
            routes=self._app_routes(),
            exception_handlers={HTTPException: self._refused, Exception: self._fault},
        )
        self._routes.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        head = _request_head(scope)
        gate = PageGate.REFUSED
        if _head_bytes(scope) <= HEAD_BYTES:
            gate = self._access.gate(head, self._options.monotonic())
        app: ASGIApp
        if gate is PageGate.OPEN:
            self.last_request = self._options.monotonic()
            inner = "/" + head.path.removeprefix(self._access.root)
            scope = {**scope, "path": inner, "raw_path": inner.encode()}
            app = self._routes
        elif gate is PageGate.ENTERED:
            self.last_request = self._options.monotonic()
            cookie = {"set-cookie": self._access.cookie}
            app = RedirectResponse(self._access.root, HTTPStatus.SEE_OTHER, cookie)
        elif gate is PageGate.METHOD:
            app = Response(status_code=405, headers={"allow": "GET, HEAD, POST"} | _CLOSE)
        else:
            app = Response(status_code=403, headers=_CLOSE)
        await app(scope, receive, partial(_send_with_headers, send))

    def idle_until(self, seconds: float) -> float:
        """Return when the page will have been unused for ``seconds``, in monotonic seconds."""
        if self._access.token:
            return self._access.began + TOKEN_SECONDS  # afterwards nobody can enter
        return self.last_request + seconds

    def _app_routes(self) -> list[Route]:
        """Return the routes; those that change memories exist only with ``write``."""
        forms, actions = (FORMS, ACTIONS) if self._options.write else ((), ())
        views, files = [*VIEWS.values(), *forms], sorted(os.listdir(_STATIC))
        return [
            *(Route(f"/{view.path}", partial(self._view, view)) for view in views),
            *(Route(f"/static/{name}", partial(_static, name)) for name in files),
            Route("/quit", self._quit, methods=["POST"]),
            *(Route(f"/{a.path}", partial(self._act, a), methods=["POST"]) for a in actions),
        ]

    async def _view(self, view: PageView, request: Request) -> Response:
        """Answer the request for a view with its page, or with a page that says what failed."""
        query = self._query(request)
        try:
            answers = await self._link.answers(view.calls(query))
            answers |= await self._link.answers(view.later_calls(query, answers))
            context = view.template_values(query, answers)
        except MemdError as error:
            return self._failed(view, query, error)
        return self._page(view, query, view.template, context)

    async def _act(self, action: Action, request: Request) -> Response:
        """Make the call of a form, and redirect to the page that follows."""
        query = self._query(request)
        fields = await self._form(request)
        try:
            call = action.call(query, fields)
            result = await self._link.call(call.method, call.params)
        except MemdError as error:
            return self._failed(VIEWS[action.view], query, error, fields)
        return RedirectResponse(action.next_address(query, result), HTTPStatus.SEE_OTHER)

    async def _quit(self, request: Request) -> Response:
        """Answer with the last page; once it is sent, the server ends."""
        await self._form(request)
        response = self._page(VIEWS[""], self._query(request), "ended", {"title": "Ended"})
        response.background = BackgroundTask(self._end)
        return response

    async def _end(self) -> None:
        await anyio.sleep(_LAST_SECONDS)
        self.stop.set()

    async def _form(self, request: Request) -> Fields:
        """Return the fields of a form whose token is valid. Raises HTTPException."""
        body, complete = bytearray(), False
        with anyio.move_on_after(BODY_SECONDS), suppress(ClientDisconnect):
            async for piece in request.stream():
                body += piece
                if len(body) > BODY_BYTES:
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            complete = True
        try:
            text = bytes(body).decode()
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
        except ValueError:
            raise HTTPException(HTTPStatus.BAD_REQUEST) from None
        fields = dict(pairs)
        if not complete or not self._access.is_form(fields.pop("form_token", "")):
            raise HTTPException(HTTPStatus.FORBIDDEN)
        return fields

    def _query(self, request: Request) -> PageQuery:
        """Return the values of a request's address, and where the page was started."""
        options = self._options
        values = {**request.query_params, "here": options.here}
        return PageQuery(values, options.clock(), options.zone)

    def _failed(
        self, view: PageView, query: PageQuery, error: MemdError, fields: Fields | None = None
    ) -> Response:
        """Return the page that says what failed, with the fields of the form that was sent."""
        permanent = HTTPStatus.NOT_FOUND if fields is None else HTTPStatus.CONFLICT
        status = HTTPStatus.SERVICE_UNAVAILABLE if error.retryable else permanent
        context = {"sentence": error.sentence, "hint": error.hint, "fields": fields}
        return self._page(view, query, "failed", context, status)

    def _page(
        self, view: PageView, query: PageQuery, template: str, context: Context, status: int = 200
    ) -> Response:
        """Return a rendered page; ``context`` holds the values for its template."""
        access = {"write": self._options.write, "form_token": self._access.form_token}
        text = self._pages.render(template, {**frame(view, query), **access, **context})
        return Response(text, status, media_type="text/html")

    async def _refused(self, _: Request, error: Exception) -> Response:
        """Answer an HTTPException with its status and an empty body."""
        headers = dict(getattr(error, "headers", None) or {})  # Allow
        return Response(status_code=getattr(error, "status_code", 404), headers=headers | _CLOSE)

    async def _fault(self, request: Request, error: Exception) -> Response:
        """Answer after an exception in our code with a page that names its class alone."""
        fault = _page_fault(type(error).__name__)
        response = self._failed(VIEWS[""], self._query(request), fault)
        response.status_code = HTTPStatus.INTERNAL_SERVER_ERROR
        return response


_CLOSE = {"connection": "close"}  # the rest of a refused request is not read


def _static(name: str, _: Request) -> Response:
    """Return a static file."""
    with open(os.path.join(_STATIC, name), "rb") as file:
        return Response(file.read(), media_type=_MEDIA_TYPES[os.path.splitext(name)[1]])


def _request_head(scope: Scope) -> RequestHead:
    """Return a request's head; a header that came more than once gets an empty value."""
    headers: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1")
        headers[name] = "" if name in headers else value.decode("latin-1")
    # The path as it was sent: nothing is decoded before it is compared.
    path = scope["raw_path"].partition(b"?")[0].decode("latin-1")
    return RequestHead(scope["method"], path, headers)


def _head_bytes(scope: Scope) -> int:
    """Return the approximate size of a request's head in bytes."""
    headers = sum(len(name) + len(value) for name, value in scope["headers"])
    return len(scope["raw_path"]) + len(scope["query_string"]) + headers


async def _send_with_headers(send: Send, message: Message) -> None:
    """Send a message of an answer; add the security headers to the message that begins it."""
    if message["type"] == "http.response.start":
        headers = list(message.get("headers", ()))
        present = {name for name, _ in headers}
        for name, value in HEADERS.items():
            if name.encode() not in present:
                headers.append((name.encode(), value.encode()))
        message = {**message, "headers": headers}
    await send(message)
