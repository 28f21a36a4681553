"""Write, read and remove the files that tool results are stored in. Blocks.

Rules of this file
- Results lie in the folder of their session, where Claude Code stores some of its own. An existing
  file is not changed, and is used for a result only if it has the same bytes.
- A file gets its name after its bytes are on the disk, so a file with such a name is complete.
- Nothing is opened through a link, and no file that has several names.
- The caller makes sure that only one thread at a time writes results of a session.
"""

import os
import re
import secrets as tokens
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

from memd.context.errors import StoredResultTooLargeError
from memd.context.preview import stored_preview
from memd.context.values import StoredResult, StoredSizes
from memd.core import limits
from memd.core.errors import MemdError
from memd.core.text import read_json, sha256
from memd.core.values import Project
from memd.files.directory import (
    Directory,
    DirectoryMissingError,
    FileTooLargeError,
    PathRefusedError,
    UnwrittenFileError,
    cause_of,
)
from memd.files.disk import Disk, real_disk, write_new
from memd.projects.project import check_session, slug

FOLDER = "tool-results"
_JSON_CHARACTERS = 1024 * 1024  # longer texts are not parsed, which takes 30 times their memory
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
# The path of a result below the base: its folder and its name.
_RESULT_PATH = re.compile(
    rf"([A-Za-z0-9-]+/[A-Za-z0-9_-]+/{FOLDER})/([A-Za-z0-9_-]+\.(?:txt|json))"
)

# What is too large, in words for the sentence of its error.
_A_RESULT = "a result"
_RESULTS_OF_SESSION = "the results of the session"
_ALL_RESULTS = "the results of all sessions"
# Why a result is refused, in words for the sentence of its error.
_NO_UTF8 = "it has half of a surrogate pair, which no file can hold"
_TAKEN = "other files have its names"
_SEVERAL_NAMES = "it has several names (hard links)"
_FOREIGN = "it belongs to another user"
_ABSENT = "there is no such file"


class ResultsPlace(Struct, frozen=True):
    """The folder of a session's results: below ``base``, in the folder ``key`` of its project."""

    base: str
    key: str
    session: str

    @classmethod
    def of(cls, folder: str) -> "ResultsPlace":
        """Return the place for the absolute path of a results folder."""
        base, key, session, _ = folder.rsplit("/", 3)
        return cls(base, key, session)

    @property
    def folder(self) -> str:
        """The absolute path of the folder."""
        return f"{self.base}/{self.below}"

    @property
    def below(self) -> str:
        """The path of the folder below the base."""
        return f"{self.key}/{self.session}/{FOLDER}"


def place(project: Project, session: str) -> ResultsPlace:
    """Return the folder of a session's results. Raises SessionRefusedError."""
    check_session(project, session)
    return ResultsPlace(project.transcripts, slug(project.cwd), session)


def store(
    place: ResultsPlace,
    tool_use_id: str,
    text: str,
    *,
    used: StoredSizes,
    disk: Disk | None = None,
) -> StoredResult:
    """Write a result to the disk; return its file and the text that is sent in its place.

    ``used`` is what is stored already. The same text of the same call is stored once. Raises
    StoredResultTooLargeError and UnwrittenFileError without storing anything.
    """
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise UnwrittenFileError(place.folder, _NO_UTF8) from error
    size = len(content)
    for what, size_of_all, limit in (
        (_A_RESULT, size, limits.RESULT_BYTES),
        (_RESULTS_OF_SESSION, used.session + size, limits.SESSION_RESULT_BYTES),
        (_ALL_RESULTS, used.all + size, limits.STORED_BYTES),
    ):
        if size_of_all > limit:
            raise StoredResultTooLargeError(what, size_of_all, limit)
    is_json = len(text) <= _JSON_CHARACTERS and read_json(text) is not None
    suffix = ".json" if is_json else ".txt"
    stem = _stem(tool_use_id)
    # The second name is for a call's further result, or where a foreign file has the first one.
    names = (f"{stem}{suffix}", f"{stem}-{sha256(content)[:8]}{suffix}")
    with _as_unwritten_file(place.folder), Directory(place.base, create=True) as directory:
        for name in names:
            below = f"{place.below}/{name}"
            with suppress(FileExistsError):
                _write_once(disk or real_disk(), directory, below, content)
                path = f"{place.base}/{below}"
                return StoredResult(path, size, stored_preview(text, path))
    raise UnwrittenFileError(place.folder, _TAKEN)


def from_file(path: str) -> str:
    """Return the text of a result that a client wrote to a file of its own.

    Bytes that are not UTF-8 become U+FFFD, as in the client's requests. Raises PathRefusedError,
    DirectoryMissingError, DirectoryUnusableError, FileUnreadableError and
    StoredResultTooLargeError.
    """
    folder, name = os.path.split(path)
    try:
        with Directory(folder) as directory:
            result = directory.read(name, limits.RESULT_BYTES)
    except FileTooLargeError as error:
        size = int(error.facts["size"] or 0)
        raise StoredResultTooLargeError(_A_RESULT, size, limits.RESULT_BYTES) from error
    if result is None:
        raise PathRefusedError(path, _ABSENT)
    content, status = result
    if status.st_nlink > 1:
        raise PathRefusedError(path, _SEVERAL_NAMES)
    if status.st_uid != os.geteuid():
        raise PathRefusedError(path, _FOREIGN)
    return content.decode("utf-8", "replace")


def is_stored(tool_use_id: str, path: str, size: int) -> bool:
    """Return whether a file has the name of a call's result, and its size unless it is missing.

    Decisions that clients restore may name other programs' files, which memd must not remove.
    """
    name = rf"{re.escape(_stem(tool_use_id))}(-[0-9a-f]{{8}})?\.(txt|json)"
    if not re.fullmatch(name, os.path.basename(path)):
        return False
    try:
        return os.lstat(path).st_size == size
    except OSError:  # the file is missing
        return True


def remove(base: str, paths: Iterable[str], disk: Disk | None = None) -> None:
    """Remove stored results below ``base``, temporary files of crashes, and emptied folders.

    Paths that no stored result can have are ignored. Raises UnwrittenFileError.
    """
    disk = disk or real_disk()
    names_of_folder: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        match = _RESULT_PATH.fullmatch(path.removeprefix(f"{base}/"))
        if match:
            names_of_folder[match[1]].append(match[2])
    for below, names in names_of_folder.items():
        with (
            _as_unwritten_file(f"{base}/{below}"),
            suppress(DirectoryMissingError, PathRefusedError),
            Directory(base) as directory,
            directory.parent(f"{below}/{names[0]}") as (folder, _),
        ):
            for name in (*names, *disk.temporaries(folder)):
                disk.unlink(folder, name)
            disk.sync_folder(folder)
        folder_to_remove = below
        with suppress(OSError):  # a folder with other files stays, and so do those above it
            while folder_to_remove:
                os.rmdir(f"{base}/{folder_to_remove}")
                folder_to_remove = os.path.dirname(folder_to_remove)


def _stem(tool_use_id: str) -> str:
    """Return the file name, without suffix, of a call's result: its id, or a hash of an odd id."""
    if _SAFE_ID.fullmatch(tool_use_id):
        return tool_use_id
    return sha256(tool_use_id.encode("utf-8", "surrogatepass"))


@contextmanager
def _as_unwritten_file(folder: str) -> Iterator[None]:
    """Raise UnwrittenFileError in place of the block's OSError or MemdError.

    ``folder`` is the absolute path that the error names.
    """
    try:
        yield
    except OSError as error:
        raise UnwrittenFileError(folder, cause_of(error)) from error
    except MemdError as error:
        raise UnwrittenFileError(folder, error.sentence) from error


def _write_once(disk: Disk, directory: Directory, below: str, content: bytes) -> None:
    """Write a new file at the path ``below``, unless it already has these bytes.

    Raises FileExistsError if it has other bytes, and OSError, PathRefusedError and
    FileUnreadableError.
    """
    with directory.parent(below, create=True) as (folder, name):
        for temporary in disk.temporaries(folder):
            disk.unlink(folder, temporary)
        if _is_present(disk, directory, below, content):
            disk.sync_folder(folder)
            return
        temp = f".memd-{tokens.token_hex(8)}.tmp"
        try:
            write_new(disk, folder, temp, content)
            disk.move(folder, temp, name)
            try:
                disk.sync_folder(folder)
            except OSError:
                # The name might not be on the disk, so the file is not used.
                with suppress(OSError):
                    disk.unlink(folder, name)
                raise
        finally:
            with suppress(OSError):
                disk.unlink(folder, temp)


def _is_present(disk: Disk, directory: Directory, below: str, content: bytes) -> bool:
    """Return whether a file has these bytes, after syncing it. Raises as ``_write_once``."""
    try:
        result = directory.read(below, len(content))
    except (PathRefusedError, FileTooLargeError) as error:
        raise FileExistsError(below) from error
    if result is None:
        return False
    existing, status = result
    if existing != content or status.st_nlink > 1:
        raise FileExistsError(below)
    file = directory.open(below)
    if file is None:
        return False
    try:
        disk.fsync(file)
    finally:
        disk.close(file)
    return True
