"""Send HTTP requests to a server that the user configured, with bounds on time and size. Async.

Rules of this file
- A redirect is returned like any other answer and never followed; no cookie is stored.
- A token is only sent to the scheme, host and port of its address, and is in no error. Https uses
  the proxy in the user's environment, if any, which sees only host and port.
- An answer is decompressed only up to a size limit, and the whole request has a time limit.
- The HTTP library is imported in a worker thread at first use, and its exceptions do not leave this
  file.
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from msgspec import Struct, field

from memd import __version__
from memd.base.addresses import is_loopback
from memd.base.extras import install_command
from memd.base.waiting import waits_outside

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 10.0
PAGE_SECONDS = 60.0
ANSWER_BYTES = 8 * 1024 * 1024  # twice a page's text; with its copy 16 MiB of memory
_CLOSE_SECONDS = 1.0  # to close a connection
_PIECE_BYTES = 64 * 1024
_GZIP = 31  # zlib's number for a gzip header and the largest window

# Why a server cannot be used, in words for the sentence of its error.
_NO_ANSWER_IN_TIME = "it did not answer in time"
_NO_LIBRARY = "the library for it is missing; install it with: {}"
_BAD_ADDRESS = "its address must be https, or http to this machine"
_BAD_CERTIFICATE = "its certificate is not trusted here (SSL_CERT_FILE may name its authority)"
_BAD_HEADER = "a header cannot be sent"
TOO_LONG = "the answer is longer than any answer may be"
_NOT_HTTP = "what it answered is no HTTP"
_CAUSES = {
    "ConnectError": "no connection",
    "ConnectTimeout": "no connection in time",
    "ReadError": "the connection broke",
    "ReadTimeout": _NO_ANSWER_IN_TIME,
    "WriteError": "the connection broke",
    "WriteTimeout": "it did not take the request in time",
}
_WRONG_ENCODING = "the answer is packed in a way that was not asked for, or is damaged"


class HttpRequest(Struct, frozen=True):
    """One request. ``path`` begins with "/" and has the query; ``headers`` have no credentials."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class HttpResponse(Struct, frozen=True):
    """A complete answer, with header names in lower case and the body decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RemoteUnreachableError(Exception):
    """A server cannot be reached; ``cause`` says why. Whoever asks it says what that means."""

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(f"{server} cannot be reached: {cause}")
        self.cause = cause


class RemoteAnswerError(Exception):
    """A server answers what cannot be used; ``cause`` says why."""

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(f"{server} answers what cannot be used: {cause}")
        self.cause = cause


class Link:
    """A client of one server, with its address and token; close it, or use it as a context manager.

    ``max_bytes`` is the limit of a decompressed body. ``page_seconds`` limits a whole request,
    ``connect_seconds`` the connection.
    """

    def __init__(
        self,
        address: str,
        token: str = "",
        *,
        connect_seconds: float = CONNECT_SECONDS,
        page_seconds: float = PAGE_SECONDS,
        max_bytes: int = ANSWER_BYTES,
    ) -> None:
        self.address = address.rstrip("/")
        self._token = token
        self._connect_seconds = connect_seconds
        self._page_seconds = page_seconds
        self._max_bytes = max_bytes
        self._transport: httpx2.AsyncHTTPTransport | None = None  # opened at the first request

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, waiting at most a second."""
        transport, self._transport = self._transport, None
        if transport is not None:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await transport.aclose()

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send one request and return the answer, whatever its status.

        Raises RemoteUnreachableError, also after ``page_seconds``, and RemoteAnswerError.
        """
        waits_outside()
        try:
            with anyio.fail_after(self._page_seconds):
                return await self._send_unbounded(request)
        except TimeoutError:
            raise RemoteUnreachableError(self.address, _NO_ANSWER_IN_TIME) from None

    async def _send_unbounded(self, request: HttpRequest) -> HttpResponse:
        """Send a request without a time limit. Raises the errors of ``send``."""
        if self._transport is None:
            self._transport = await to_thread.run_sync(self._open_transport, abandon_on_cancel=True)
        import httpx2  # noqa: PLC0415 - a thread has loaded it before

        headers = {**request.headers, **self._common_headers()}
        header_text = "".join((*headers.keys(), *headers.values()))
        if not (header_text.isascii() and header_text.isprintable()):
            raise RemoteUnreachableError(self.address, _BAD_HEADER)
        timeouts = httpx2.Timeout(self._page_seconds, connect=self._connect_seconds).as_dict()
        try:
            response = await self._transport.handle_async_request(
                httpx2.Request(
                    request.method,
                    f"{self.address}{request.path}",
                    headers=headers,
                    content=request.body or None,
                    extensions={"timeout": timeouts},
                )
            )
            try:
                body = await self._read_body(response)
            except zlib.error:
                raise RemoteAnswerError(self.address, _WRONG_ENCODING) from None
            finally:
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await response.aclose()
        except httpx2.RemoteProtocolError:
            raise RemoteAnswerError(self.address, _NOT_HTTP) from None
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            is_untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
            name = type(error).__name__
            words = f"{_CAUSES[name]} ({name})" if name in _CAUSES else name
            cause = _BAD_CERTIFICATE if is_untrusted else words
            raise RemoteUnreachableError(self.address, cause) from None
        received = {name.lower(): value for name, value in response.headers.items()}
        return HttpResponse(response.status_code, received, body)

    async def _read_body(self, response: "httpx2.Response") -> bytes:
        """Read a body and decompress it piece by piece."""
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("identity", "gzip"):
            raise RemoteAnswerError(self.address, _WRONG_ENCODING)
        unpacker = zlib.decompressobj(_GZIP) if coding == "gzip" else None
        body = bytearray()
        async for part in response.aiter_raw():
            pieces = _unpack(unpacker, part) if unpacker else (part,)
            for piece in pieces:
                body += piece
                if len(body) > self._max_bytes:
                    body.clear()  # else the error's traceback would keep it in memory
                    raise RemoteAnswerError(self.address, TOO_LONG)
        if unpacker and not unpacker.eof:  # the body is cut off
            raise RemoteAnswerError(self.address, _WRONG_ENCODING)
        return bytes(body)

    def _common_headers(self) -> dict[str, str]:
        """Return the headers of every request, with the token if there is one."""
        headers = {
            "Host": urlsplit(self.address).netloc,
            "Accept-Encoding": "gzip",
            "User-Agent": f"memd/{__version__}",
        }
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _open_transport(self) -> "httpx2.AsyncHTTPTransport":
        """Import the library and return a transport for this address. Blocks."""
        parts = urlsplit(self.address)
        host = parts.hostname or ""
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
            raise RemoteUnreachableError(self.address, _BAD_ADDRESS)
        from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 25 ms and 2 MB

        try:
            import httpx2  # noqa: PLC0415 - in a thread, only where a project has joined
        except ImportError:  # pragma: no cover - the tests have it
            cause = _NO_LIBRARY.format(install_command("team"))
            raise RemoteUnreachableError(self.address, cause) from None
        is_https = parts.scheme == "https"
        uses_proxy = is_https and not proxy_bypass(host)
        proxy = getproxies().get("https") if uses_proxy else None
        try:
            # Certificates are slow to load, and not needed for http to this machine.
            return httpx2.AsyncHTTPTransport(verify=is_https, proxy=proxy)
        except (ImportError, ValueError, OSError, httpx2.InvalidURL) as error:
            raise RemoteUnreachableError(self.address, type(error).__name__) from None


def _unpack(unpacker: "zlib._Decompress", part: bytes) -> Iterator[bytes]:
    """Yield the decompressed bytes of a part of a body in pieces of 64 KiB. Raises zlib.error."""
    if unpacker.eof:  # refuse bytes after the end, as zlib would store them all
        raise zlib.error
    piece = unpacker.decompress(part, _PIECE_BYTES)
    while piece:
        yield piece
        piece = unpacker.decompress(unpacker.unconsumed_tail, _PIECE_BYTES)
