"""The door of the HTTP library: one bounded request to a server that the user configured.

Rules of this file
- A redirect is an answer like any other and is never followed; no cookie is kept.
- A token goes only to the scheme, host and port of its address, and is in no error. Https
  goes through the user's proxy if the environment names one, which sees only host and port.
- An answer is read and unpacked up to a bound, and the whole exchange ends within a time.
- The library is imported in a worker thread at first use, and no exception of it leaves this file.
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from msgspec import Struct, field

from memd import __version__
from memd.core.addresses import is_loopback
from memd.core.errors import MemdError

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 10.0
PAGE_SECONDS = 60.0
ANSWER_BYTES = 8 * 1024 * 1024  # twice a page's text; with its copy 16 MiB of memory
_CLOSE_SECONDS = 1.0
_PIECE_BYTES = 64 * 1024
_GZIP = 31  # zlib's word for a gzip header and the largest window

# Why a server cannot be used, in words for the sentence of its error.
_SLOW = "it did not answer in time"
_NO_LIBRARY = "the library for it is missing (pip install 'memdir-daemon[team]')"
_ADDRESS = "its address must be https, or http to this machine"
_UNTRUSTED = "its certificate is not trusted here (SSL_CERT_FILE may name its authority)"
_HEADER = "a header cannot be sent"
TOO_LONG = "the answer is longer than any answer may be"
_BROKEN = "what it answered is no HTTP"
_CAUSES = {
    "ConnectError": "no connection",
    "ConnectTimeout": "no connection in time",
    "ReadError": "the connection broke",
    "ReadTimeout": _SLOW,
    "WriteError": "the connection broke",
    "WriteTimeout": "it did not take the request in time",
}
_PACKED = "the answer is packed in a way that was not asked for, or is damaged"


class HttpRequest(Struct, frozen=True):
    """One request: ``path`` with its query begins with "/"; ``headers`` hold no credentials."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class HttpResponse(Struct, frozen=True):
    """A complete answer: header names in lower case, the body unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RemoteUnreachableError(MemdError):
    """The server did not answer: no connection, or one that broke or took too long."""

    code = 1070
    kind = "remote_unreachable"
    retryable = True
    exit_status = 75

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(f"{server} cannot be reached: {cause}", server=server, cause=cause)
        self.cause = cause


class RemoteAnswerError(MemdError):
    """The server answered in a way that cannot be used."""

    code = 1071
    kind = "remote_answer"
    retryable = True
    exit_status = 76

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(
            f"{server} answers what cannot be used: {cause}", server=server, cause=cause
        )
        self.cause = cause


class Link:
    """A client of one server, with its address and token; close it, or use it as a context manager.

    ``most`` is the largest body that is read, unpacked, in bytes.
    """

    def __init__(
        self,
        address: str,
        token: str = "",
        *,
        connect_seconds: float = CONNECT_SECONDS,
        page_seconds: float = PAGE_SECONDS,
        most: int = ANSWER_BYTES,
    ) -> None:
        self.address = address.rstrip("/")
        self._token = token
        self._connect_seconds = connect_seconds
        self._page_seconds = page_seconds
        self._most = most
        self._transport: httpx2.AsyncHTTPTransport | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await transport.aclose()

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Return the answer to one request. Raises RemoteUnreachableError, RemoteAnswerError."""
        try:
            with anyio.fail_after(self._page_seconds):
                return await self._exchange(request)
        except TimeoutError:
            raise RemoteUnreachableError(self.address, _SLOW) from None

    async def _exchange(self, request: HttpRequest) -> HttpResponse:
        """Return the whole answer to a request, without a limit of time. Raises as ``send``."""
        if self._transport is None:
            self._transport = await to_thread.run_sync(self._connect, abandon_on_cancel=True)
        import httpx2  # noqa: PLC0415 - loaded by now, in a thread

        headers = {**request.headers, **self._headers()}
        if not all(_is_sendable(text) for pair in headers.items() for text in pair):
            raise RemoteUnreachableError(self.address, _HEADER)
        times = httpx2.Timeout(self._page_seconds, connect=self._connect_seconds).as_dict()
        try:
            response = await self._transport.handle_async_request(
                httpx2.Request(
                    request.method,
                    f"{self.address}{request.path}",
                    headers=headers,
                    content=request.body or None,
                    extensions={"timeout": times},
                )
            )
            try:
                body = await self._read(response)
            except zlib.error:
                raise RemoteAnswerError(self.address, _PACKED) from None
            finally:
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await response.aclose()
        except httpx2.RemoteProtocolError:
            raise RemoteAnswerError(self.address, _BROKEN) from None
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
            cause = _UNTRUSTED if untrusted else _cause(error)
            raise RemoteUnreachableError(self.address, cause) from None
        facts = {name.lower(): value for name, value in response.headers.items()}
        return HttpResponse(response.status_code, facts, body)

    async def _read(self, response: "httpx2.Response") -> bytes:
        """Return a body, unpacked as it comes. Raises RemoteAnswerError."""
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("identity", "gzip"):
            raise RemoteAnswerError(self.address, _PACKED)
        unpacker = zlib.decompressobj(_GZIP) if coding == "gzip" else None
        body = bytearray()
        async for part in response.aiter_raw():
            for piece in _unpacked(unpacker, part) if unpacker else (part,):
                body += piece
                if len(body) > self._most:
                    body.clear()  # else the error's traceback would keep it in memory
                    raise RemoteAnswerError(self.address, TOO_LONG)
        if unpacker and not unpacker.eof:
            raise RemoteAnswerError(self.address, _PACKED)
        return bytes(body)

    def _headers(self) -> dict[str, str]:
        """Return the headers that each request gets, with the token if there is one."""
        own = {
            "Host": urlsplit(self.address).netloc,
            "Accept-Encoding": "gzip",
            "User-Agent": f"memd/{__version__}",
        }
        return own | ({"Authorization": f"Bearer {self._token}"} if self._token else {})

    def _connect(self) -> "httpx2.AsyncHTTPTransport":
        """Return the transport of this address. Blocks. Raises RemoteUnreachableError."""
        parts = urlsplit(self.address)
        host = parts.hostname or ""
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
            raise RemoteUnreachableError(self.address, _ADDRESS)
        from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 25 ms and 2 MB

        try:
            import httpx2  # noqa: PLC0415 - in a thread, only where a project has joined
        except ImportError:  # pragma: no cover - the tests have it
            raise RemoteUnreachableError(self.address, _NO_LIBRARY) from None
        secure = parts.scheme == "https"
        proxy = getproxies().get("https") if secure and not proxy_bypass(host) else None
        try:
            # Certificates are slow to load, and not needed for http to this machine.
            return httpx2.AsyncHTTPTransport(verify=secure, proxy=proxy)
        except (ImportError, ValueError, OSError, httpx2.InvalidURL) as error:
            raise RemoteUnreachableError(self.address, type(error).__name__) from None


def _cause(error: Exception) -> str:
    """Return a sentence part for the library's error, with the name of its class."""
    name = type(error).__name__
    return f"{_CAUSES[name]} ({name})" if name in _CAUSES else name


def _unpacked(unpacker: "zlib._Decompress", part: bytes) -> Iterator[bytes]:
    """Yield the unpacked bytes of a part of a body, in bounded pieces. Raises zlib.error."""
    if unpacker.eof:  # bytes after the end are refused: zlib would store them all
        raise zlib.error
    piece = unpacker.decompress(part, _PIECE_BYTES)
    while piece:
        yield piece
        piece = unpacker.decompress(unpacker.unconsumed_tail, _PIECE_BYTES)


def _is_sendable(text: str) -> bool:
    return text.isascii() and text.isprintable()
