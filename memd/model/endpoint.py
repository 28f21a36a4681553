"""Whom memd asks: the address, the credentials and the models' names. Pure.

Rules of this file
- An endpoint comes whole from one source: the user's settings where they name an address, a key or
  a key's file, else the daemon's environment. A key of one never goes to an address of the other.
- Plain http goes to this machine alone, and only to addresses that are its own by themselves.
- No credential is part of an address, of a ``repr`` or of a sentence.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from memd.core.settings import ModelSettings

MODEL = "claude-sonnet-5-5"
_HOME = "https://api.anthropic.com"
_LOOPBACK_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")
# What Claude Code takes in ANTHROPIC_MODEL and no server does.
_CLIENT_WORDS = ("best", "default", "haiku", "opus", "opusplan", "sonnet")
_VERSION = re.compile(r"/v1/?$")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server: its address without ``/v1``, and how to be let in.

    At most one of ``api_key``, ``auth_token`` and ``key_file`` (absolute) is set. ``headers`` are
    further ones of the daemon's environment.
    """

    base_url: str
    api_key: str = field(default="", repr=False)
    auth_token: str = field(default="", repr=False)
    key_file: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def host(self) -> str:
        """The address's host and port, for a person."""
        return urlsplit(self.base_url).netloc


def endpoint(settings: ModelSettings, environ: Mapping[str, str]) -> Endpoint | str:
    """Return the endpoint, or why there is none in a sentence's end."""
    if not settings.enabled:
        return "model.enabled is false"
    own = (settings.base_url, settings.api_key, settings.auth_token, settings.api_key_file)
    found = _of_settings(settings, environ) if any(own) else _of_environment(environ)
    return found if isinstance(found, str) else _checked(found)


def model_name(settings: ModelSettings, kind: str, environ: Mapping[str, str]) -> str:
    """Return the model for a kind of work: ``recall``, ``extract`` or ``dream``."""
    own = {"recall": settings.recall, "extract": settings.extract, "dream": settings.dream}[kind]
    common = environ.get("ANTHROPIC_MODEL", "").strip()
    usable = common.partition("[")[0].lower() not in ("", *_CLIENT_WORDS)
    return own or (common if usable else MODEL)


def _of_settings(settings: ModelSettings, environ: Mapping[str, str]) -> Endpoint | str:
    path = settings.api_key_file
    if path.startswith("~/"):
        path = environ.get("HOME", "") + path[1:]
    if path and not path.startswith("/"):
        return "model.api_key_file must be an absolute path"
    if not (settings.api_key or settings.auth_token):
        return Endpoint(settings.base_url or _HOME, key_file=path)
    token = "" if settings.api_key else settings.auth_token  # the key goes before the token
    return Endpoint(settings.base_url or _HOME, settings.api_key, token)


def _of_environment(environ: Mapping[str, str]) -> Endpoint | str:
    key = environ.get("ANTHROPIC_API_KEY", "").strip()
    token = "" if key else environ.get("ANTHROPIC_AUTH_TOKEN", "").strip()
    address = environ.get("ANTHROPIC_BASE_URL", "").strip()
    if not (key or token or address):
        return (
            "neither [model] of memd.toml nor the daemon's environment names a key or an address "
            "that counts; memctl doctor names what is ignored"
        )
    headers = _headers(environ.get("ANTHROPIC_CUSTOM_HEADERS", ""))
    return Endpoint(address or _HOME, key, token, headers=headers)


def _headers(lines: str) -> tuple[tuple[str, str], ...]:
    pairs = (line.partition(":") for line in lines.splitlines())
    return tuple((name.strip(), value.strip()) for name, colon, value in pairs if colon)


def _checked(found: Endpoint) -> Endpoint | str:
    try:
        parts = urlsplit(found.base_url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "the address is no URL"
    problem = _wrong_address(parts, host, port) or _wrong_credentials(found, host)
    return problem or replace(found, base_url=_VERSION.sub("", found.base_url).rstrip("/"))


def _wrong_address(parts: SplitResult, host: str, port: int | None) -> str:
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return "the address must be an https URL with a host"
    if "@" in parts.netloc or parts.query or parts.fragment:
        return "the address must be without a user's name, a query and a fragment"
    if parts.scheme == "http" and not _is_loopback(host):
        return f"plain http goes to this machine alone; use https for {host}"
    return ""


def _wrong_credentials(found: Endpoint, host: str) -> str:
    given = found.api_key or found.auth_token or found.key_file
    if not given and not _is_loopback(host):
        return f"there is no key for {host}"
    sent = (found.api_key, found.auth_token, *(part for pair in found.headers for part in pair))
    if not all(is_sendable(value) for value in sent):
        return "a key or a header holds characters that cannot be sent"
    return ""


def is_sendable(value: str) -> bool:
    """Return whether a header can hold a value."""
    return value.isascii() and value.isprintable()


def _is_loopback(host: str) -> bool:
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
