"""Find the address, the credentials and the names of the models. Pure.

Rules of this file
- An endpoint comes as a whole from one source: the user's settings if they name an address, a key
  or a key's file, else memd's env file, else the environment that memd serve was started in. A key
  of one source is never sent to an address of another. A daemon that a client starts inherits no
  key (``base/places.for_daemon``).
- Plain http is only used for loopback addresses.
- No credential is part of an address, of a ``repr`` or of a sentence.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from memd.base.addresses import is_loopback
from memd.base.prices import price
from memd.base.settings import KINDS, ModelSettings

MODEL = "claude-sonnet-5-5"
PROGRESS = "progress"
MESSAGES, OPENAI, COMMAND = "messages", "openai", "command"  # values of model.provider
_DEFAULT_ADDRESS = "https://api.anthropic.com"
# Values of ANTHROPIC_MODEL that Claude Code understands and servers do not.
_CLIENT_WORDS = ("best", "default", "haiku", "opus", "opusplan", "sonnet")
_VERSION_SUFFIX = r"/v1/?$"
_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")
# The reasons why there is no model although nothing is wrong; other reasons are problems.
OFF = "model.enabled is false"
NOT_NAMED = "memctl help models"  # where it says what names one


class Origin(Struct, frozen=True):
    """Where variables that name a model are from, and why memd's env file is ignored, if it is."""

    name: str = "the environment that memd serve was started in"
    ignored: str = ""


ENVIRONMENT = Origin()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server: its address without ``/v1``, and the credentials.

    At most one of ``api_key``, ``auth_token`` and ``key_file`` (absolute) is set. ``headers`` come
    from the environment. ``source`` names the setting or variable of its key or address.
    """

    base_url: str
    api_key: str = field(default="", repr=False)
    auth_token: str = field(default="", repr=False)
    key_file: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    source: str = field(default="", compare=False)

    @property
    def host(self) -> str:
        """The address's host and port, for a person."""
        return urlsplit(self.base_url).netloc


def environment(environ: Mapping[str, str], own: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """Return the daemon's variables with those of its env file (``own``) preferred.

    The second value says whether the env file names a model. If it does, the model's variables of
    the environment are dropped.
    """
    if not any(own.get(name) for name in _VARIABLES):
        return {**environ, **own}, False
    others = {name: value for name, value in environ.items() if not name.startswith("ANTHROPIC_")}
    return {**others, **own}, True


def endpoint(
    settings: ModelSettings, environ: Mapping[str, str], origin: Origin = ENVIRONMENT
) -> Endpoint | str:
    """Return the server to use, or the reason why there is none, to end a sentence."""
    if not settings.enabled:
        return OFF
    named = (settings.base_url, settings.api_key, settings.auth_token, settings.api_key_file)
    if settings.provider == OPENAI and not settings.base_url:
        return "model.provider is openai and model.base_url names no server"
    result = (
        _endpoint_of_settings(settings, environ)
        if any(named)
        else _endpoint_of_environment(environ, origin)
    )
    return result if isinstance(result, str) else _check_endpoint(result)


def model_name(
    settings: ModelSettings, kind: str, environ: Mapping[str, str], prices: str = ""
) -> str:
    """Return the name of the model for a kind of work.

    Lines of progress use the cheapest of the models named by the user's ``prices``. Other kinds use
    the variable ANTHROPIC_MODEL or MODEL where the settings name none.
    """
    named = settings.by_kind.get(kind)
    if named:
        return named
    if kind == PROGRESS:
        others = (model_name(settings, other, environ) for other in KINDS if other != PROGRESS)
        return min(others, key=lambda name: price(name, prices).input)
    if settings.name:
        return settings.name
    if settings.provider == OPENAI:
        return "default"  # servers with a single model ignore its name
    variable = environ.get("ANTHROPIC_MODEL", "").strip()
    # Claude Code also understands names like ``opus[1m]``.
    variable_word = variable.partition("[")[0].lower()
    is_usable = variable_word not in ("", *_CLIENT_WORDS)
    return variable if is_usable else MODEL


def _endpoint_of_settings(settings: ModelSettings, environ: Mapping[str, str]) -> Endpoint | str:
    """Return the endpoint that the settings name, or the reason why it cannot be used."""
    path = settings.api_key_file
    if path.startswith("~/"):
        path = environ.get("HOME", "") + path[1:]
    if path and not path.startswith("/"):
        return "model.api_key_file must be an absolute path"
    # The key is preferred to the token, and both to the file.
    names = ("api_key", "auth_token", "api_key_file", "base_url")
    first = next(name for name in names if getattr(settings, name))
    return Endpoint(
        settings.base_url or _DEFAULT_ADDRESS,
        settings.api_key,
        settings.auth_token if first == "auth_token" else "",
        path if first == "api_key_file" else "",
        source=f"model.{first} of memd.toml",
    )


def _endpoint_of_environment(environ: Mapping[str, str], origin: Origin) -> Endpoint | str:
    """Return the endpoint that environment variables name, or the reason why there is none."""
    values = {name: environ.get(name, "").strip() for name in _VARIABLES}
    first = next((name for name in _VARIABLES if values[name]), "")
    if not first:
        return NOT_NAMED
    key, token, address = values.values()
    headers = _headers(environ.get("ANTHROPIC_CUSTOM_HEADERS", ""))
    source = f"{first} of {origin.name}"
    return Endpoint(
        address or _DEFAULT_ADDRESS, key, "" if key else token, headers=headers, source=source
    )


def _headers(lines: str) -> tuple[tuple[str, str], ...]:
    """Return the names and values of headers from lines of the form ``Name: value``."""
    pairs = (line.partition(":") for line in lines.splitlines())
    return tuple((name.strip(), value.strip()) for name, colon, value in pairs if colon)


def _check_endpoint(result: Endpoint) -> Endpoint | str:
    """Return an endpoint without ``/v1`` in its address, or a sentence about what is wrong."""
    try:
        parts = urlsplit(result.base_url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "the address is no URL"
    problem = _address_problem(parts, host, port) or _credentials_problem(result, host)
    return problem or replace(
        result, base_url=re.sub(_VERSION_SUFFIX, "", result.base_url).rstrip("/")
    )


def _address_problem(parts: SplitResult, host: str, port: int | None) -> str:
    """Return a sentence about what is wrong with an address, "" if nothing is."""
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return "the address must be an https URL with a host"
    if "@" in parts.netloc or parts.query or parts.fragment:
        return "the address must be without a user's name, a query and a fragment"
    if parts.scheme == "http" and not is_loopback(host):
        return f"plain http goes to this machine alone; use https for {host}"
    return ""


def _credentials_problem(result: Endpoint, host: str) -> str:
    """Return a sentence about what is wrong with an endpoint's credentials, "" if nothing is."""
    credential = result.api_key or result.auth_token or result.key_file
    if not credential and not is_loopback(host):
        return f"there is no key for {host}"
    header_texts = [text for header in result.headers for text in header]
    sent_texts = (result.api_key, result.auth_token, *header_texts)
    if not all(is_sendable(text) for text in sent_texts):
        return "a key or a header holds characters that cannot be sent"
    return ""


def is_sendable(value: str) -> bool:
    """Return whether a value can be sent in an HTTP header: printable ASCII."""
    return value.isascii() and value.isprintable()
