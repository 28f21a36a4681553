"""Access to the page: an address that works once, then a session that each request must show. Pure.

Rules of this file
- A refused request learns nothing, not even how near its token was.
- The printed address works once and for two minutes. It becomes a session of a path and a cookie,
  and needs both: programs at other ports share the cookies of this host, and never know the path.
- Each request names our exact host. A form has our Origin and the token of our pages besides.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from hmac import compare_digest

from msgspec import Struct

TOKEN_SECONDS = 120.0
_ENTER = "/enter/"
_token = partial(secrets.token_urlsafe, 16)  # 128 bits


class RequestHead(Struct, frozen=True):
    """The head of a request; a header that came more than once has an empty value."""

    method: str
    path: str  # as it was sent
    headers: Mapping[str, str]  # by names in lower case


@dataclass(slots=True)
class PageAccess:
    """Decides who is let in."""

    host: str  # 127.0.0.1:PORT
    began: float  # in monotonic seconds
    token: str = field(default_factory=_token)  # of the address that works once; "" once it is used
    form_token: str = field(default_factory=_token)
    _path: str = field(default_factory=_token)
    _cookie: str = field(default_factory=_token)

    @property
    def address(self) -> str:
        """The address that is printed for the person."""
        return f"http://{self.host}{_ENTER}{self.token}"

    @property
    def root(self) -> str:
        """The path below which the session's pages lie."""
        return f"/s/{self._path}/"

    @property
    def cookie(self) -> str:
        """The value of the header Set-Cookie in the answer to the printed address."""
        return f"memd={self._cookie}; Path={self.root}; HttpOnly; SameSite=Strict"

    def enters(self, head: RequestHead, now: float) -> bool:
        """Return whether a request opens the session; the printed address is used up by it."""
        # A browser's prefetch must not use up the address before the person comes.
        asks = head.method == "GET" and "sec-purpose" not in head.headers
        known = bool(self.token) and _same(head.path, _ENTER + self.token)
        if not (asks and known and head.headers.get("host") == self.host):
            return False
        self.token = ""
        return now - self.began <= TOKEN_SECONDS

    def admits(self, head: RequestHead) -> bool:
        """Return whether a request has host, path and cookie, and our Origin unless it reads."""
        pairs = head.headers.get("cookie", "").split(";")
        has_cookie = any(_same(pair.strip(), f"memd={self._cookie}") for pair in pairs)
        has_path = _same(head.path[: len(self.root)], self.root)
        reads = head.method in {"GET", "HEAD"}
        is_ours = reads or head.headers.get("origin") == f"http://{self.host}"
        return head.headers.get("host") == self.host and has_path and has_cookie and is_ours

    def is_form(self, token: str) -> bool:
        """Return whether a form's token is the one of this session's pages."""
        return _same(token, self.form_token)


def _same(text: str, secret: str) -> bool:
    return compare_digest(text.encode(), secret.encode())
