"""Parse the address of the server behind the gateway, and connect to it."""

import re
import ssl
from functools import cache
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream
from msgspec import Struct

from memd.core.addresses import is_loopback
from memd.core.errors import MemdError

_CONNECT_SECONDS = 30.0
_PORTS = {"https": 443, "http": 80}


class WrongUpstreamError(MemdError):
    """The upstream's address is invalid, or would send credentials unencrypted."""

    code = -32602
    kind = "invalid_params"
    exit_status = 2

    def __init__(self) -> None:
        # Without the address itself: it may hold a password.
        super().__init__(
            "the upstream has to be https://host[:port][/path]; http:// only to this machine"
        )


class Upstream(Struct, frozen=True):
    """The server that requests go to; ``path`` is put before their paths."""

    host: str
    port: int
    encrypted: bool
    path: str

    @property
    def authority(self) -> str:
        """Return the value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host  # IPv6 has colons
        usual_port = _PORTS["https" if self.encrypted else "http"]
        return host if self.port == usual_port else f"{host}:{self.port}"

    async def connect(self) -> ByteStream:
        """Return a new connection. Raises OSError, and anyio's error if TLS fails."""
        with anyio.fail_after(_CONNECT_SECONDS):
            if not self.encrypted:
                return await anyio.connect_tcp(self.host, self.port)
            # HTTP itself marks the end of a reply, and many servers end TLS without notice.
            return await anyio.connect_tcp(
                self.host,
                self.port,
                tls=True,
                ssl_context=_tls_context(),
                tls_standard_compatible=False,
            )


def upstream(address: str) -> Upstream:
    """Return the upstream of an address. Raises WrongUpstreamError."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise WrongUpstreamError from None
    is_ascii = re.fullmatch(r"[!-~]+", address)  # and without spaces and control characters
    has_extras = "@" in parts.netloc or "?" in address or "#" in address
    encrypted = parts.scheme == "https"
    is_safe = encrypted or (parts.scheme == "http" and is_loopback(host))
    if not host or not is_ascii or has_extras or not is_safe:
        raise WrongUpstreamError
    return Upstream(host, port or _PORTS[parts.scheme], encrypted, parts.path.rstrip("/"))


@cache
def _tls_context() -> ssl.SSLContext:
    """Return a TLS context with the system's certificates, for HTTP/1.1."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
