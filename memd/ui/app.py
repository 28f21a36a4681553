"""The page as an HTTP application: it checks, reads and answers each request.

Rules of this file
- Every answer has the security headers, also one for a fault.
- A refused request gets 403 and an empty body.
- Views change nothing. The routes that change something exist only with ``write``, take only forms,
  and redirect to a page.
- A failure of the daemon is shown as a page with its sentence and its hint.
"""

import os
import re
import time
from collections import defaultdict
from functools import partial
from http import HTTPStatus
from urllib.parse import parse_qsl

import anyio
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memd.base.errors import Internal, MemdError
from memd.ui.access import TOKEN_SECONDS, PageAccess, RequestHead
from memd.ui.actions import ACTIONS, FORMS, Action, Fields
from memd.ui.link import SocketLink
from memd.ui.pages import Pages
from memd.ui.views import VIEWS
from memd.ui.visit import Context, PageView, PageVisit

BODY_BYTES = 256 * 1024  # of a form
_LAST_SECONDS = 0.5  # for the browser to load the style of the last page
_FIELDS = 200  # of a form
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
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
_CLOSE = {"connection": "close"}  # the rest of a refused request is not read
_STATIC = os.path.join(os.path.dirname(__file__), "static")
_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FORM_RESULT = re.compile(r"yes|c[0-9]{1,12}")  # "yes", or the id of the change that was made


class PageServer:
    """The ASGI application; ``stop`` is set when the server must end.

    ``here`` is the working directory; with ``write`` a person may change memories from the page.
    """

    def __init__(self, link: SocketLink, access: PageAccess, here: str, *, write: bool) -> None:
        self._link = link
        self._access = access
        self._here = here
        self._write = write
        self._pages = Pages()
        self.stop = anyio.Event()
        self.last_request = time.monotonic()  # when somebody last used the page
        self._routes = Starlette(
            routes=self._app_routes(),
            exception_handlers={HTTPException: self._refused, Exception: self._fault},
        )
        self._routes.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        head, now = _request_head(scope), time.monotonic()
        app: ASGIApp
        if self._access.enters(head, now):
            self.last_request = now
            cookie = {"set-cookie": self._access.cookie}
            app = RedirectResponse(self._access.root, HTTPStatus.SEE_OTHER, cookie)
        elif self._access.admits(head):
            self.last_request = now
            inner = "/" + head.path.removeprefix(self._access.root)
            scope = {**scope, "path": inner, "raw_path": inner.encode()}
            app = self._routes
        else:
            app = Response(status_code=HTTPStatus.FORBIDDEN, headers=_CLOSE)
        await app(scope, receive, partial(_send_with_headers, send))

    def idle_until(self, seconds: float) -> float:
        """Return when the page will have been unused for ``seconds``, in monotonic seconds."""
        if self._access.token:
            return self._access.began + TOKEN_SECONDS  # afterwards nobody can enter
        return self.last_request + seconds

    def _app_routes(self) -> list[Route]:
        """Return the routes; those that change memories exist only with ``write``."""
        forms, actions = (FORMS, ACTIONS) if self._write else ((), ())
        views, files = [*VIEWS.values(), *forms], sorted(os.listdir(_STATIC))
        return [
            *(Route(f"/{view.path}", partial(self._view, view)) for view in views),
            *(Route(f"/static/{name}", partial(_static, name)) for name in files),
            Route("/quit", self._quit, methods=["POST"]),
            *(Route(f"/{a.path}", partial(self._act, a), methods=["POST"]) for a in actions),
        ]

    async def _view(self, view: PageView, request: Request) -> Response:
        """Answer the request for a view with its page, or with a page that says what failed."""
        visit = self._visit(request)
        try:
            context = await view.context(visit)
        except MemdError as error:
            return self._failed(view, visit, error)
        return self._page(view, visit, view.template, context)

    async def _act(self, action: Action, request: Request) -> Response:
        """Make the call of a form, and redirect to the page that follows."""
        visit = self._visit(request)
        fields = await self._form(request)
        try:
            result = (await visit.ask(done=action.call(visit, fields)))["done"]
        except MemdError as error:
            return self._failed(VIEWS[action.view], visit, error, fields)
        return RedirectResponse(action.next_address(visit, result), HTTPStatus.SEE_OTHER)

    async def _quit(self, request: Request) -> Response:
        """Answer with the last page; once it is sent, the server ends."""
        await self._form(request)
        response = self._page(VIEWS[""], self._visit(request), "ended", {})
        response.background = BackgroundTask(self._end)
        return response

    async def _end(self) -> None:
        await anyio.sleep(_LAST_SECONDS)
        self.stop.set()

    async def _form(self, request: Request) -> Fields:
        """Return the fields of a form whose token is valid. Raises HTTPException."""
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > BODY_BYTES:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            text = body.decode()
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
        except ValueError:
            raise HTTPException(HTTPStatus.BAD_REQUEST) from None
        fields = dict(pairs)
        if not self._access.is_form(fields.pop("form_token", "")):
            raise HTTPException(HTTPStatus.FORBIDDEN)
        return fields

    def _visit(self, request: Request) -> PageVisit:
        """Return what a view gets of a request."""
        return PageVisit(self._link, dict(request.query_params), self._here, time.time())

    def _failed(
        self, view: PageView, visit: PageVisit, error: MemdError, fields: Fields | None = None
    ) -> Response:
        """Return the page that says what failed, with the fields of the form that was sent."""
        permanent = HTTPStatus.NOT_FOUND if fields is None else HTTPStatus.CONFLICT
        status = HTTPStatus.SERVICE_UNAVAILABLE if error.retryable else permanent
        context = {"sentence": error.sentence, "hint": error.hint, "fields": fields}
        return self._page(view, visit, "failed", context, status)

    def _page(
        self, view: PageView, visit: PageVisit, template: str, context: Context, status: int = 200
    ) -> Response:
        """Return a rendered page; ``context`` holds the values for its template."""
        done = visit.get("done")
        frame = {
            "title": view.title,
            "path": view.path,
            "project": visit.project,
            "here": visit.here,
            "values": defaultdict(str, visit.values),
            "holds": defaultdict(int, visit.holds),
            "problems": visit.problems,
            "at": visit.at,
            "done": done if _FORM_RESULT.fullmatch(done) else "",
            "write": self._write,
            "form_token": self._access.form_token,
        }
        text = self._pages.render(template, {**frame, **context})
        return Response(text, status, media_type="text/html")

    async def _refused(self, _: Request, error: Exception) -> Response:
        """Answer an HTTPException with its status and an empty body."""
        return Response(status_code=getattr(error, "status_code", 404), headers=_CLOSE)

    async def _fault(self, request: Request, error: Exception) -> Response:
        """Answer after an exception in our code with a page that names its class alone."""
        cause = type(error).__name__
        hint = "memctl status says whether the daemon is of another version"
        fault = Internal(f"this page could not be made ({cause})", hint=hint, cause=cause)
        response = self._failed(VIEWS[""], self._visit(request), fault)
        response.status_code = HTTPStatus.INTERNAL_SERVER_ERROR
        return response


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


async def _send_with_headers(send: Send, message: Message) -> None:
    """Send a message of an answer; add the security headers to the message that begins it."""
    if message["type"] == "http.response.start":
        own = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
        message = {**message, "headers": [*message.get("headers", ()), *own]}
    await send(message)
