"""The words of memories in their rows, which the search finds them by."""

from collections.abc import Iterable, Mapping

from memd.base.names import INDEXES
from memd.base.values import Header
from memd.base.yielding import yield_to_requests
from memd.store import memory
from memd.text.words import search_text


def words_by_path(
    headers: Iterable[Header], bodies: Mapping[str, bytes]
) -> dict[str, tuple[str, int]]:
    """Return the words of memories, as ``words_of``, by path; ``bodies`` are texts by hash."""
    result = {}
    for header in headers:
        yield_to_requests()
        result[header.path] = words_of(header, bodies.get(header.hash))
    return result


def words_of(header: Header, content: bytes | None) -> tuple[str, int]:
    """Return the words of a memory for the search, and how many characters its heading has."""
    if header.path in INDEXES:
        return "", 0
    body = memory.parse(content, header.path).body if content is not None else ""
    kind = header.type.value if header.type else ""
    return search_text(header.path, header.name, header.description, kind, body)
