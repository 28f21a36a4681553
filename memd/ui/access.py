"""Access to the page: a token that works once, then a session that each request must show. Pure.

Rules of this file
- A refused request learns nothing, not even how near its token was.
- The token works once and for two minutes; a session is a path and a cookie, and needs both: other
  programs' pages on this machine share the cookies of all ports, and never know the path.
- If the browser says where a request comes from, that decides: pages of other sites, frames and
  host names that were bound to this address get nothing.
- Something is changed by a POST alone, with the exact Origin and the token of its form.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from hmac import compare_digest

from msgspec import Struct

TOKEN_SECONDS = 120.0
COOKIE = "memd"
_TOKEN_BYTES = 16
_ENTER = "/enter/"
_READING_METHODS = ("GET", "HEAD")
_FORM_TYPE = "application/x-www-form-urlencoded"
# The values of Sec-Fetch-Dest for our pages, their style, script and picture. Frames, objects and
# the requests of scripts are refused.
_DESTINATIONS = {"document", "style", "script", "image"}


class PageGate(Enum):
    """The decision about a request."""

    REFUSED = "refused"
    ENTERED = "entered"
    METHOD = "method"  # let in, but its method is not supported
    OPEN = "open"


class RequestHead(Struct, frozen=True):
    """The head of a request, with the names of headers in lower case.

    A header that came more than once is in ``headers`` with an empty value.
    """

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def cookies(self) -> list[tuple[str, str]]:
        """The names and values of its cookies, those of other programs too."""
        header = self.headers.get("cookie", "")
        pairs = (pair.strip().partition("=") for pair in header.split(";"))
        return [(name, value) for name, _, value in pairs]


@dataclass(slots=True)
class PageAccess:
    """Decides who is let in."""

    host: str  # 127.0.0.1:PORT
    began: float  # in monotonic seconds
    # The token of the address that works once; "" once it is used.
    token: str = field(default_factory=partial(secrets.token_urlsafe, _TOKEN_BYTES))
    form_token: str = field(default_factory=partial(secrets.token_urlsafe, _TOKEN_BYTES))
    _path: str = field(default_factory=partial(secrets.token_urlsafe, _TOKEN_BYTES))
    _cookie: str = field(default_factory=partial(secrets.token_urlsafe, _TOKEN_BYTES))

    @property
    def address(self) -> str:
        """The address that is printed for the person; it works once."""
        return f"http://{self.host}{_ENTER}{self.token}"

    @property
    def root(self) -> str:
        """The path below which the session's pages lie."""
        return f"/s/{self._path}/"

    @property
    def cookie(self) -> str:
        """The value of the header Set-Cookie in the answer to the token."""
        return f"{COOKIE}={self._cookie}; Path={self.root}; HttpOnly; SameSite=Strict"

    def gate(self, head: RequestHead, now: float) -> PageGate:
        """Return the decision about a request; entering uses up the token."""
        if head.headers.get("host") != self.host or not _comes_from_here(head):
            return PageGate.REFUSED
        if head.path.startswith(_ENTER):
            return self._enter(head, now)
        if not self._shows_session(head):
            return PageGate.REFUSED
        if head.method in _READING_METHODS:
            return PageGate.OPEN
        if head.method != "POST":
            return PageGate.METHOD
        same_origin = head.headers.get("origin") == f"http://{self.host}"
        media_type = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        return PageGate.OPEN if same_origin and media_type == _FORM_TYPE else PageGate.REFUSED

    def is_form(self, token: str) -> bool:
        """Return whether a form's token is the one of this session's pages."""
        return compare_digest(token.encode(), self.form_token.encode())

    def _enter(self, head: RequestHead, now: float) -> PageGate:
        """Return whether a request with the token is let in; a valid token works once."""
        token = head.path.removeprefix(_ENTER).encode()
        valid = bool(self.token) and compare_digest(token, self.token.encode())
        # A browser's prefetch must not use up the token before the person comes.
        prefetched = "sec-purpose" in head.headers or "purpose" in head.headers
        if not valid or prefetched or head.method != "GET":
            return PageGate.REFUSED
        self.token = ""
        return PageGate.ENTERED if now - self.began <= TOKEN_SECONDS else PageGate.REFUSED

    def _shows_session(self, head: RequestHead) -> bool:
        """Return whether a request has the path and the cookie of the session."""
        start = head.path.encode()[: len(self.root)]
        knows_path = compare_digest(start, self.root.encode())
        values = [value for name, value in head.cookies if name == COOKIE]
        has_cookie = any(compare_digest(v.encode(), self._cookie.encode()) for v in values)
        return knows_path and has_cookie


def _comes_from_here(head: RequestHead) -> bool:
    """Return whether the Sec-Fetch headers name our page or the person; true without them."""
    site = head.headers.get("sec-fetch-site")
    destination = head.headers.get("sec-fetch-dest", "document")
    if site is None:
        return True
    if site == "none":  # typed, or opened by another program; a page cannot make such a request
        navigates = head.headers.get("sec-fetch-mode", "navigate") == "navigate"
        return navigates and destination == "document" and head.method in _READING_METHODS
    return site == "same-origin" and destination in _DESTINATIONS
