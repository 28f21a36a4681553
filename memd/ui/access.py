"""Who is let in: a token that works once, then a session that every request must show. Pure.

Rules of this file
- What is not let in learns nothing, not even whether it was close.
- The token works once and for two minutes; a session is a path and a cookie, and needs both: other
  programs' pages on this machine share the cookies of all ports, and never know the path.
- The browser's own word on where a request comes from counts wherever it is sent: a page of
  somebody else's, a frame and a name that was bound to this address get nothing.
- Something is changed by a POST alone, with the exact Origin and the token of its form.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from hmac import compare_digest

TOKEN_SECONDS = 120.0
COOKIE = "memd"
_BYTES = 16
_ENTER = "/enter/"
_READING = ("GET", "HEAD")
_FORM = "application/x-www-form-urlencoded"
# What a page of ours is loaded as, and what it loads: documents, its style, script and picture,
# and what its script asks for ("empty"). Not in a frame, not as an object.
_DESTINATIONS = {"document", "style", "script", "image", "empty"}


class PageGate(Enum):
    """What becomes of a request."""

    REFUSED = "refused"
    ENTERED = "entered"
    METHOD = "method"  # one of its session's, by a method that there is not
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What a request says before its body; names of headers in lower case.

    A header that came more than once is in ``headers`` with an empty value.
    """

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def cookies(self) -> list[tuple[str, str]]:
        """The names and values of its cookies, those of other programs too."""
        pairs = (pair.strip().partition("=") for pair in self.headers.get("cookie", "").split(";"))
        return [(name, value) for name, _, value in pairs]


@dataclass(slots=True)
class PageAccess:
    """The one way in. ``host`` is ``127.0.0.1:PORT``, ``began`` in monotonic seconds."""

    host: str
    began: float
    token: str = field(default_factory=lambda: secrets.token_urlsafe(_BYTES))
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(_BYTES))
    _path: str = field(default_factory=lambda: secrets.token_urlsafe(_BYTES))
    _cookie: str = field(default_factory=lambda: secrets.token_urlsafe(_BYTES))

    @property
    def address(self) -> str:
        """What is printed for the person; it works once."""
        return f"http://{self.host}{_ENTER}{self.token}"

    @property
    def root(self) -> str:
        """The path below which the session's pages lie."""
        return f"/s/{self._path}/"

    @property
    def cookie(self) -> str:
        """The value of the header Set-Cookie for whoever entered."""
        return f"{COOKIE}={self._cookie}; Path={self.root}; HttpOnly; SameSite=Strict"

    def gate(self, head: RequestHead, now: float) -> PageGate:
        """Return what becomes of a request; one that enters uses the token up."""
        if head.headers.get("host") != self.host or not _comes_from_here(head):
            return PageGate.REFUSED
        if head.path.startswith(_ENTER):
            return self._enter(head, now)
        if not self._shows_session(head):
            return PageGate.REFUSED
        if head.method in _READING:
            return PageGate.OPEN
        if head.method != "POST":
            return PageGate.METHOD
        own = head.headers.get("origin") == f"http://{self.host}"
        kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        return PageGate.OPEN if own and kind == _FORM else PageGate.REFUSED

    def is_form(self, token: str) -> bool:
        """Whether a form came from a page of this session."""
        return compare_digest(token.encode(), self.form_token.encode())

    def _enter(self, head: RequestHead, now: float) -> PageGate:
        token = head.path.removeprefix(_ENTER).encode()
        known = bool(self.token) and compare_digest(token, self.token.encode())
        # A browser that fetches ahead of its person would use the token up for nobody.
        ahead = "sec-purpose" in head.headers or "purpose" in head.headers
        if not known or ahead or head.method != "GET":
            return PageGate.REFUSED
        self.token = ""
        return PageGate.ENTERED if now - self.began <= TOKEN_SECONDS else PageGate.REFUSED

    def _shows_session(self, head: RequestHead) -> bool:
        path = head.path.encode()[: len(self.root)]
        knows_path = compare_digest(path, self.root.encode())
        values = [value for name, value in head.cookies if name == COOKIE]
        has_cookie = any(compare_digest(v.encode(), self._cookie.encode()) for v in values)
        return knows_path and has_cookie


def _comes_from_here(head: RequestHead) -> bool:
    """Whether a request is the person's own or one of our page's, as far as the browser says."""
    site = head.headers.get("sec-fetch-site")
    destination = head.headers.get("sec-fetch-dest", "document")
    if site is None:
        return True
    if site == "none":  # typed, or opened by another program; a page cannot make such a request
        by_hand = head.headers.get("sec-fetch-mode", "navigate") == "navigate"
        return by_hand and destination == "document" and head.method in _READING
    return site == "same-origin" and destination in _DESTINATIONS
