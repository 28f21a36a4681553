"""The headers of all memories of a directory, read from the heads of their files."""

import os
import sys
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from memd.core.errors import MemdError
from memd.core.names import TEAM
from memd.core.values import TEAM_MATE, Header
from memd.documents import document
from memd.documents.document import Fields, quick
from memd.files.directory import Directory, FileUnreadableError, cause_of
from memd.text.invisible import without_directions

_PEEK_BYTES = 2048  # nearly every frontmatter ends before; reading more costs time
# Sizes that many files share are one object each.
_SIZES = tuple(range(8192))
# Two saves within one tick of a file system's clock may look alike. A kernel's tick is 10 ms at
# most; a file system that keeps whole seconds only may have one of 2 s.
_FINE_SECONDS = 0.1
_COARSE_SECONDS = 2.0
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Scan:
    """What a directory held: headers by path, and those that are not what was known before.

    ``troubles`` are sentences by path, "" for what concerns no single file. ``young`` are paths
    that could be saved again and look the same: they must be read once more another time.
    """

    headers: dict[str, Header]
    changed: tuple[str, ...]
    troubles: Mapping[str, tuple[str, ...]]
    young: frozenset[str]


def scan(
    directory: Directory,
    known: Mapping[str, Header],
    doubted: AbstractSet[str] = frozenset(),
    *,
    at: float = 0.0,
    enter: Callable[[str], None] | None = None,
) -> Scan:
    """Return all headers of a directory. Blocks.

    Those ``known`` whose file has not changed are taken as they are, but for the ``doubted``. Of
    the others only the head is read, whatever the file's size. ``at`` is the time in seconds since
    1970, 0 where every file is old. ``enter`` is as in ``Directory.walk``.
    """
    headers: dict[str, Header] = {}
    changed: list[str] = []
    young: list[str] = []
    general: list[str] = []
    troubles: dict[str, tuple[str, ...]] = {}
    for path, entry, folder in directory.walk(general, enter):
        try:
            old = known.get(path)
            if old is not None and path not in doubted and _same(old, entry):
                headers[path] = old
                continue
            new = _fresh(directory, path, entry.name, folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            troubles[path] = (FileUnreadableError(path, cause_of(error)).sentence,)
            continue
        except MemdError as error:
            troubles[path] = (error.sentence,)
            continue
        if new is None:
            continue
        if at and is_young(new.mtime_ns, at):
            young.append(path)
        if new == old:
            headers[path] = old
        else:
            headers[path] = new
            changed.append(path)
    return Scan(headers, tuple(changed), troubles | {"": tuple(general)}, frozenset(young))


def read(directory: Directory, path: str) -> Header | None:
    """Return the header of one file as it is now, or ``None``.

    Raises PathRefusedError and FileUnreadableError.
    """
    answer = directory.read_head(path, document.HEAD_BYTES + 1)
    return None if answer is None else header(path, *answer)


def header(path: str, head: bytes, status: os.stat_result) -> Header:
    """Return the header of a file from its head, or all of it, and its status."""
    result = quick(head)
    if result is None:
        parsed = document.parse(head, path)
        fields = (parsed.name, parsed.description, parsed.type, parsed.origin)
        return _made(path, fields, status, damaged=parsed.damaged)
    return _made(path, result, status)


def is_young(mtime_ns: int, at: float) -> bool:
    """Say whether a file that was read at a time may be saved again with the same status."""
    tick = _FINE_SECONDS if mtime_ns % _SECOND_NS else _COARSE_SECONDS
    return mtime_ns >= (at - tick) * _SECOND_NS


def _fresh(directory: Directory, path: str, name: str, folder: int) -> Header | None:
    """Read one header; raises PathRefusedError and FileUnreadableError."""
    peeked = directory.peek(folder, name, _PEEK_BYTES)
    if peeked is not None:
        result = quick(peeked[0])
        if result is not None:
            return _made(path, result, peeked[1])
        if len(peeked[0]) == peeked[1].st_size:
            return header(path, *peeked)
    return read(directory, path)


def _made(path: str, fields: Fields, status: os.stat_result, *, damaged: bool = False) -> Header:
    size = status.st_size
    name, description, kind, origin = fields
    return Header(
        path,
        without_directions(name),
        without_directions(description),
        kind,
        status.st_mtime_ns,
        _SIZES[size] if size < len(_SIZES) else size,
        damaged,
        status.st_ino,
        TEAM_MATE if path.startswith(TEAM) else sys.intern(origin),
    )


def _same(old: Header, entry: "os.DirEntry[str]") -> bool:
    status = entry.stat(follow_symlinks=False)
    return (
        status.st_mtime_ns == old.mtime_ns
        and status.st_ino == old.inode
        and status.st_size == old.size
    )
