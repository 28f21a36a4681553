"""A memory directory as it stands while memd changes nothing in it. Blocks.

Rules of this file
- The caller holds the directory's lock, so all files are from one instant, as far as memd writes
  them. A file that another program writes is read until it stays as it is.
- One file is in memory at a time, however large the directory. Writers wait meanwhile, so this
  does not yield to requests.
- Links and special files are never opened; a file that cannot be read is yielded with its problem.
"""

import os
from collections.abc import Callable, Iterator

from msgspec import Struct

from memd.base import limits
from memd.base.errors import MemdError, NotFound
from memd.base.names import SUFFIX, is_text, printable
from memd.store.directory import WALK_DEPTH, Directory, unreadable

_TRIES = 5  # to read a file that somebody is writing
# Why a file's content is missing.
_NAME_IS_NOT_UTF8 = "its name is not UTF-8"
_TOO_DEEP = f"it lies more than {WALK_DEPTH} folders deep"
_IS_LINK = "it is a link"
_STILL_WRITTEN = "another program went on writing it"


class StillFile(Struct, frozen=True):
    """One file of a directory; ``problem`` says why its content is missing, "" if it is there."""

    path: str
    content: bytes = b""
    mtime_ns: int = 0
    problem: str = ""


def files_of(path: str, wanted: Callable[[str], bool]) -> Iterator[StillFile]:
    """Yield the visible Markdown files of a directory for whose path ``wanted`` returns true.

    They are sorted by path. Indexes and daily logs are included. A missing directory has none.
    Raises Refused and Storage.
    """
    try:
        directory = Directory(path)
    except NotFound:
        return
    with directory:
        problems: dict[str, str] = {}
        readable = set(_markdown_paths(directory, problems))  # fills ``problems`` as well
        for file_path in sorted(readable | problems.keys()):
            if not wanted(file_path):
                continue
            if file_path in problems:
                yield StillFile(file_path, problem=problems[file_path])
                continue
            file = read_settled(directory, file_path)
            if file is not None:  # it was not deleted meanwhile
                yield file


def _markdown_paths(directory: Directory, problems: dict[str, str]) -> Iterator[str]:
    """Yield the paths of Markdown files in the directory and its folders.

    Each path that cannot be read is added to ``problems``, with the reason.
    """
    folders = [""]  # still to be listed, by path
    while folders:
        folder = folders.pop()
        if folder.count("/") >= WALK_DEPTH:
            problems[folder] = _TOO_DEEP
            continue
        try:
            with directory.folder(folder) as fd:
                for name, is_folder, is_link in _visible_entries(fd, folder):
                    path = f"{folder}/{name}" if folder else name
                    if not is_text(path):
                        if is_folder or path.endswith(SUFFIX):
                            problems[printable(path)] = _NAME_IS_NOT_UTF8
                    elif is_folder:
                        folders.append(path)
                    elif is_link:
                        problems[path] = _IS_LINK
                    elif path.endswith(SUFFIX):
                        yield path
        except MemdError as error:
            problems[folder] = error.sentence


def _visible_entries(fd: int | None, folder: str) -> list[tuple[str, bool, bool]]:
    """Return (name, is a folder, is a link) for each visible entry of an open folder.

    ``fd`` is the folder's descriptor, ``None`` if the folder is gone. Raises Storage.
    """
    if fd is None:
        return []
    try:
        with os.scandir(fd) as entries:
            return [
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                for entry in entries
                if not entry.name.startswith(".")
            ]
    except OSError as error:
        raise unreadable(folder, error) from error


def read_settled(directory: Directory, path: str) -> StillFile | None:
    """Return a file that did not change while it was read, or ``None`` if it is gone.

    After five tries the result has a problem instead of the content.
    """
    try:
        for _ in range(_TRIES):
            content_and_status = directory.read(path, limits.READ_BYTES)
            if content_and_status is None:
                return None
            content, status = content_and_status
            status_after = directory.stat(path)
            if status_after is not None and _is_same(status_after, status):
                return StillFile(path, content, status.st_mtime_ns)
    except MemdError as error:
        return StillFile(path, problem=error.sentence)
    return StillFile(path, problem=_STILL_WRITTEN)


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    """Say whether two statuses are of the same file in the same version."""
    names = ("st_ino", "st_mtime_ns", "st_ctime_ns", "st_size")
    return all(getattr(one, name) == getattr(other, name) for name in names)
