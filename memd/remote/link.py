"""The door of the HTTP library: one bounded request to a server that the user configured.

Rules of this file
- A redirect is an answer like any other and is never followed.
- A token goes to the scheme, host and port that it was given for, and stands in no error.
- An answer is read and unpacked up to a bound, and within a time.
- The library is imported in a worker thread at first use.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request: ``path`` with its query begins with "/"; ``headers`` hold no credentials."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer read whole: header names in lower case, the body unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes
