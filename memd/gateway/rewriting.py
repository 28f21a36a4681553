"""Which requests are changed, and how."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memd.core.places import Places

READERS = frozenset(("Read", "read"))
MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request without its body; ``path`` is without the query, names of headers in lower case."""

    method: bytes
    path: bytes
    headers: Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A body to send, and betas that it needs.

    ``fallback`` returns the body to send once where this one is refused, with what is new in it as
    it came.
    """

    body: bytes
    betas: tuple[str, ...] = ()
    fallback: Callable[[], bytes] | None = None


class Rewriter:
    """Changes requests."""

    def __init__(self, places: Places, cwd: str, readers: frozenset[str], *, manage: bool) -> None:
        self._places = places
        self._cwd = cwd
        self._readers = readers
        self._manage = manage

    def concerns(self, head: RequestHead) -> bool:
        """Return whether a request's body is read as a whole."""
        return head.method == b"POST"

    def rewritten(self, head: RequestHead, data: bytes) -> Rewritten:
        """Return what to send in the place of a body. Blocks."""
        del head
        return Rewritten(data)
