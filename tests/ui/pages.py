"""A page in this process before a daemon in this process, and a browser that has entered it."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC
from html import unescape
from typing import Any

import httpx2

from memd.ui.access import PageAccess
from memd.ui.app import PageOptions, PageServer
from memd.ui.link import SocketLink
from tests.api.caller import Caller

HOST = "127.0.0.1:7777"
ORIGIN = f"http://{HOST}"
BROWSER = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
_TAG = re.compile(r"<[^>]*>")


def words(html: str) -> str:
    """Return what a page says, without its tags."""
    return " ".join(unescape(_TAG.sub(" ", html)).split())


@dataclass
class Browser:
    """One that has entered: ``caller`` is a client of the same daemon beside it."""

    http: httpx2.AsyncClient
    caller: Caller
    access: PageAccess
    server: PageServer
    headers: dict[str, str] = field(default_factory=dict)

    async def get(self, page: str = "", **params: Any) -> httpx2.Response:
        """Return a page; its project is the caller's unless the page is about none."""
        address = f"{self.access.root}{page}"
        return await self.http.get(address, params=params, headers=BROWSER | self.headers)

    async def about(self, page: str, **params: Any) -> httpx2.Response:
        """Return a page about the project."""
        return await self.get(page, cwd=self.caller.cwd, **params)

    async def shown(self, page: str, **params: Any) -> str:
        """Return the HTML of a page about the project, which is there."""
        answer = await self.about(page, **params)
        assert answer.status_code == 200, words(answer.text)
        return answer.text

    async def post(
        self, action: str, params: dict[str, Any], fields: dict[str, Any] | None = None
    ) -> httpx2.Response:
        """Send a form of a page."""
        form = {"form_token": self.access.form_token, **(fields or {})}
        headers = {**BROWSER, "origin": ORIGIN, **self.headers}
        address = f"{self.access.root}{action}"
        return await self.http.post(address, params=params, data=form, headers=headers)


@asynccontextmanager
async def browser(caller: Caller, *, write: bool = False) -> AsyncIterator[Browser]:
    """Serve a page of the caller's daemon and enter it."""
    clock = caller.clock
    options = PageOptions(caller.cwd, write, clock.now, clock.monotonic, UTC)
    link = SocketLink(caller.home.places.socket, {})
    access = PageAccess(HOST, clock.monotonic())
    server = PageServer(link, access, options)
    transport = httpx2.ASGITransport(app=server, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as http:
        entered = await http.get(access.address)
        assert entered.status_code == 303
        cookie = entered.headers["set-cookie"].partition(";")[0]
        http.headers["cookie"] = cookie
        yield Browser(http, caller, access, server)
