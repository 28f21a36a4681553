"""The headers of all memories of a directory, and the list of them that a model sees (spec 1.7)."""

import os
from collections.abc import Mapping, Sequence

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.text import iso_time, one_line
from memd.core.values import Header
from memd.store import document
from memd.store.paths import Directory

_DESCRIPTION_CHARACTERS = 500  # one specific line is shorter; 200 of these still fit a prompt
_LAST_SECOND = 253_402_300_799  # of the year 9999; a file system may keep later times


def scan(
    directory: Directory, known: Mapping[str, Header]
) -> tuple[tuple[Header, ...], tuple[str, ...]]:
    """Return all headers, newest first, and a sentence for each thing that could not be read.

    ``known`` are headers by path from an earlier scan; those whose file has not changed are taken
    as they are. Of the others only the head is read, whatever the file's size. Blocks.
    """
    problems: list[str] = []
    headers: list[Header] = []
    for path, status in directory.walk(problems):
        old = known.get(path)
        if old is not None and old.fingerprint == _fingerprint(status):
            headers.append(old)
            continue
        try:
            answer = directory.read_head(path, document.HEAD_BYTES + 1)
        except MemdError as error:
            problems.append(error.sentence)
            continue
        if answer is not None:
            headers.append(header(path, *answer))
    headers.sort(key=lambda found: (-found.mtime_ns, found.path))
    return tuple(headers), tuple(problems)


def header(path: str, head: bytes, status: os.stat_result) -> Header:
    """Return the header of a file from its head, or all of it, and its status."""
    parsed = document.parse(head, path)
    return Header(
        path=path,
        name=parsed.name,
        description=parsed.description,
        type=parsed.type,
        mtime_ns=status.st_mtime_ns,
        size=status.st_size,
        damaged=parsed.damaged,
        inode=status.st_ino,
    )


def manifest(headers: Sequence[Header]) -> str:
    """Return one line per memory, in the order given, of the first 200.

    ``- [type] path (ISO 8601 mtime in UTC): description``, without the parts that are missing.
    """
    return "\n".join(_line(found) for found in headers[: limits.MANIFEST_ENTRIES])


def _line(found: Header) -> str:
    kind = f"[{found.type.value}] " if found.type else ""
    path = " ".join(found.path.splitlines())
    at = iso_time(min(max(found.mtime_ns / 1e9, 0), _LAST_SECOND))
    words = one_line(found.description, _DESCRIPTION_CHARACTERS)
    return f"- {kind}{path} ({at}){f': {words}' if words else ''}"


def _fingerprint(status: os.stat_result) -> tuple[int, int, int]:
    return (status.st_ino, status.st_mtime_ns, status.st_size)
