"""The headers of all memories of a directory, read from the heads of their files."""

import os
import sys
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct

from memd.base.errors import MemdError
from memd.base.names import TEAM
from memd.base.values import IMPORT, TEAM_MATE, Header
from memd.files.directory import Directory, FileUnreadableError, cause_of
from memd.store import memory
from memd.store.memory import Fields, quick_fields
from memd.text.invisible import without_directions

_PEEK_BYTES = 2048  # nearly every frontmatter ends before; reading more costs time
# One object for each size that many files have, so that headers need less memory.
_SIZES = tuple(range(8192))
# Two saves within one tick of a file system's clock may leave the same status. A kernel's tick is
# 10 ms at most; a file system that keeps whole seconds only may have one of 2 s.
_FINE_SECONDS = 0.1
_COARSE_SECONDS = 2.0
_SECOND_NS = 1_000_000_000


class Scan(Struct, frozen=True):
    """The result of a scan of a directory."""

    headers: dict[str, Header]  # by path
    changed: tuple[str, ...]  # paths whose header is new or different
    troubles: Mapping[str, tuple[str, ...]]  # by path: what could not be read; by "": of folders
    # Paths that could be saved again with the same file status: they must be read again next time.
    young: frozenset[str]


def scan(
    directory: Directory,
    known_headers: Mapping[str, Header],
    doubted_paths: AbstractSet[str] = frozenset(),
    *,
    at: float = 0.0,
    enter: Callable[[str], None] | None = None,
) -> Scan:
    """Return the headers of all memories of a directory, and what changed. Blocks.

    The scan reads the head of each file whose status changed or whose path is in ``doubted_paths``.
    It takes the other headers from ``known_headers``, which has them by path. ``at`` is the time
    now in seconds since 1970; with 0 no file counts as young. ``enter`` is as in
    ``Directory.walk``.
    """
    headers: dict[str, Header] = {}
    changed: list[str] = []
    young: list[str] = []
    general: list[str] = []  # sentences about folders
    troubles: dict[str, tuple[str, ...]] = {}
    for path, entry, folder in directory.walk(general, enter):
        try:
            old = known_headers.get(path)
            if (
                old is not None
                and path not in doubted_paths
                and old.fingerprint == fingerprint(entry.stat(follow_symlinks=False))
            ):
                headers[path] = old  # an unchanged status: the file need not be read
                continue
            new = _read_listed(directory, path, entry.name, folder)
        except FileNotFoundError:  # deleted since the folder was listed
            continue
        except OSError as error:
            troubles[path] = (FileUnreadableError(path, cause_of(error)).sentence,)
            continue
        except MemdError as error:
            troubles[path] = (error.sentence,)
            continue
        if new is None:  # deleted since the folder was listed
            continue
        if at and is_young(new.mtime_ns, at):
            young.append(path)
        if new == old:
            headers[path] = old  # the old object, so that unchanged headers use no more memory
        else:
            headers[path] = new
            changed.append(path)
    return Scan(headers, tuple(changed), troubles | {"": tuple(general)}, frozenset(young))


def read(directory: Directory, path: str) -> Header | None:
    """Return the header of one file as it is now, or ``None`` if there is no file.

    Raises PathRefusedError and FileUnreadableError.
    """
    head_and_status = directory.read_head(path, memory.HEAD_BYTES + 1)
    if head_and_status is None:
        return None
    head, status = head_and_status
    return _parse_header(path, head, status)


def header_from(
    path: str, fields: Fields, file_fingerprint: tuple[int, int, int], *, damaged: bool
) -> Header:
    """Return the header of a memory with these fields of its frontmatter and this fingerprint.

    ``damaged`` says that the frontmatter cannot be parsed.
    """
    inode, mtime_ns, size = file_fingerprint
    name, description, kind, origin = fields
    is_team = path.startswith(TEAM) and origin != IMPORT  # no team mate wrote an imported one
    return Header(
        path,
        without_directions(name),
        without_directions(description),
        kind,
        mtime_ns,
        _SIZES[size] if size < len(_SIZES) else size,
        damaged,
        inode,
        TEAM_MATE if is_team else sys.intern(origin),
    )


def fingerprint(status: os.stat_result) -> tuple[int, int, int]:
    """Return inode, mtime in ns and size of a file, as in ``Header.fingerprint``."""
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def is_young(mtime_ns: int, at: float) -> bool:
    """Say whether a file that is read now (``at``) could be saved again with the same status.

    Times are nanoseconds and seconds since 1970.
    """
    tick = _FINE_SECONDS if mtime_ns % _SECOND_NS else _COARSE_SECONDS
    return mtime_ns >= (at - tick) * _SECOND_NS


def _read_listed(directory: Directory, path: str, name: str, folder: int) -> Header | None:
    """Return the header of a file called ``name`` in an open folder; raises what ``read`` does.

    The first bytes of the file mostly suffice, which is much faster than ``read``.
    """
    peeked = directory.peek(folder, name, _PEEK_BYTES)
    if peeked is not None:
        head, status = peeked
        fields = quick_fields(head)
        if fields is not None:
            return header_from(path, fields, fingerprint(status), damaged=False)
        is_whole_file = len(head) == status.st_size
        if is_whole_file:
            return _parse_header(path, head, status)
    return read(directory, path)


def _parse_header(path: str, head: bytes, status: os.stat_result) -> Header:
    """Return the header of a file from its head, or all of it, and its status."""
    parsed = memory.parse(head, path)
    return header_from(path, parsed.fields, fingerprint(status), damaged=parsed.damaged)
