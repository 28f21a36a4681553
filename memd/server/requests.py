"""Parse the parts of a request strictly, for the handlers. Pure.

Rules of this file
- Anything that two programs could read differently is refused: a parameter or a member that comes
  twice or is unknown, bytes that are not UTF-8, a weak ETag in a condition.
- No error repeats what was sent.
"""

import re
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from memd.base import strict_json
from memd.server.errors import MalformedRequestError, RequestPart, UnauthorisedError
from memd.server.values import Session

_ETAG = re.compile(r'"([A-Za-z0-9_-]{1,100}\.[0-9]{1,18})"')
_TOKEN = re.compile(r"Bearer ([\x21-\x7e]{1,256})", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]{1,19}")
ROUTE = "route"
_MOST_PARAMETERS = 10
# Headers that are compared or trusted. If one comes twice, two servers could read two values.
_ONCE = frozenset(
    ("authorization", "content-type", "content-length", "host", "idempotency-key", "if-match")
)
T = TypeVar("T")


class TeamCall(Struct, frozen=True):
    """A request that may be handled: ``query`` and ``headers`` (lower case) hold each name once.

    ``now`` is seconds since 1970. ``session`` is ``None`` if the route needs no token.
    """

    now: float
    session: Session | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def require_session(self) -> Session:
        """Return the session. Raises UnauthorisedError if there is none, as the route is wrong."""
        if self.session is None:
            raise UnauthorisedError
        return self.session


def token(header: str) -> str | None:
    """Return the token of an Authorization header, ``None`` if it has none."""
    match = _TOKEN.fullmatch(header)
    return match.group(1) if match else None


def query(text: bytes, known: frozenset[str]) -> dict[str, str]:
    """Return the parameters of a query, each known and once. Raises MalformedRequestError."""
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(text),
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except ValueError:
        raise MalformedRequestError(RequestPart.QUERY) from None
    result = dict(pairs)
    if len(result) < len(pairs):
        raise MalformedRequestError(RequestPart.QUERY)
    if result.keys() - known:
        raise MalformedRequestError(RequestPart.QUERY)
    return result


def number(parameters: Mapping[str, str], part: RequestPart, most: int) -> int:
    """Return a parameter that is a number from 1 to ``most``, which is its default.

    Raises MalformedRequestError.
    """
    text = parameters.get(part.name.lower(), str(most))
    if not _DIGITS.fullmatch(text) or not 1 <= int(text) <= most:
        raise MalformedRequestError(part)
    return int(text)


def body(data: bytes, shape: type[T]) -> T:
    """Return a body that is strict JSON of a shape. Raises MalformedRequestError."""
    try:
        return msgspec.convert(strict_json.decode(data), shape)
    except (strict_json.NotJsonError, msgspec.ValidationError):
        raise MalformedRequestError(RequestPart.BODY) from None


def mark(headers: Mapping[str, str], name: str) -> str | None:
    """Return the text of the ETag in a conditional header, ``None`` for none.

    Raises MalformedRequestError for anything but one strong ETag.
    """
    value = headers.get(name)
    if value is None:
        return None
    match = _ETAG.fullmatch(value)
    if match is None:
        raise MalformedRequestError(RequestPart.CONDITION)
    return match.group(1)


def single(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by name in lower case; the values of a repeated header are joined.

    Raises MalformedRequestError if a header of ``_ONCE`` comes twice, or if there are two lengths.
    """
    result: dict[str, str] = {}
    for name_bytes, value_bytes in pairs:
        name, value = name_bytes.decode("latin-1").lower(), value_bytes.decode("latin-1")
        if name not in result:
            result[name] = value
        elif name in _ONCE:
            raise MalformedRequestError(RequestPart.HEADERS)
        else:
            result[name] = f"{result[name]}, {value}"
    if "content-length" in result and "transfer-encoding" in result:
        raise MalformedRequestError(RequestPart.HEADERS)
    return result
