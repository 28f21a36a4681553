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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from msgspec import Struct

from memd.base import limits
from memd.base.errors import MemdError, NotFound, Refused, TooLarge
from memd.base.text import read_json, sha256
from memd.base.values import Project
from memd.context.errors import stored_result_too_large
from memd.context.preview import stored_preview
from memd.context.values import StoredResult
from memd.projects.project import check_session, slug
from memd.store.directory import Directory, refused, unwritable
from memd.store.disk import Disk, write_new

FOLDER = "tool-results"
_JSON_CHARACTERS = 1024 * 1024  # longer texts are not parsed, which takes 30 times their memory
_SAFE_ID = r"[A-Za-z0-9_-]{1,128}"

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


class SessionResults(Struct, frozen=True):
    """The bytes of a session's stored results by file name; their folder is the document's place.

    The session that stored last is the newest document.
    """

    sizes: dict[str, int] = {}  # msgspec copies it

    @property
    def bytes(self) -> int:
        """The bytes of all of them."""
        return sum(self.sizes.values())


class StoredTotals(Struct, frozen=True):
    """How many results are stored, and their bytes."""

    results: int = 0
    bytes: int = 0


class ResultsPlace(Struct, frozen=True):
    """The folder of a session's results: below ``base``, in the folder ``key`` of its project."""

    base: str
    key: str
    session: str

    @property
    def folder(self) -> str:
        """The absolute path of the folder."""
        return f"{self.base}/{self.below}"

    @property
    def below(self) -> str:
        """The path of the folder below the base."""
        return f"{self.key}/{self.session}/{FOLDER}"


def place(project: Project, session: str) -> ResultsPlace:
    """Return the folder of a session's results. Raises Invalid."""
    check_session(project, session)
    return ResultsPlace(project.transcripts, slug(project.cwd), session)


def store(
    place: ResultsPlace,
    tool_use_id: str,
    text: str,
    *,
    used: tuple[int, int],
    disk: Disk,
) -> StoredResult:
    """Write a result to the disk; return its file and the text that is sent in its place.

    ``used`` are the bytes that are stored already, of the session and of all sessions. The same
    text of the same call is stored once. Raises TooLarge and Storage
    without storing anything.
    """
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise unwritable(place.folder, _NO_UTF8) from error
    size = len(content)
    for what, size_of_all, limit in (
        (_A_RESULT, size, limits.RESULT_BYTES),
        (_RESULTS_OF_SESSION, used[0] + size, limits.SESSION_RESULT_BYTES),
        (_ALL_RESULTS, used[1] + size, limits.STORED_BYTES),
    ):
        if size_of_all > limit:
            raise stored_result_too_large(what, size_of_all, limit)
    is_json = len(text) <= _JSON_CHARACTERS and read_json(text) is not None
    suffix = ".json" if is_json else ".txt"
    stem = _stem(tool_use_id)
    # The second name is for a call's further result, or where a foreign file has the first one.
    names = (f"{stem}{suffix}", f"{stem}-{sha256(content)[:8]}{suffix}")
    with _as_unwritten_file(place.folder), Directory(place.base, create=True) as directory:
        for name in names:
            below = f"{place.below}/{name}"
            with suppress(FileExistsError):
                is_new = _write_once(disk, directory, below, content)
                path = f"{place.base}/{below}"
                return StoredResult(path, size, stored_preview(text, path), is_new)
    raise unwritable(place.folder, _TAKEN)


def from_file(path: str) -> str:
    """Return the text of a result that a client wrote to a file of its own.

    Bytes that are not UTF-8 become U+FFFD, as in the client's requests. Raises Refused,
    NotFound, Storage and TooLarge.
    """
    folder, name = os.path.split(path)
    try:
        with Directory(folder) as directory:
            result = directory.read(name, limits.RESULT_BYTES)
    except TooLarge as error:
        size = int(error.facts["size"] or 0)
        raise stored_result_too_large(_A_RESULT, size, limits.RESULT_BYTES) from error
    if result is None:
        raise refused(path, _ABSENT)
    content, status = result
    if status.st_nlink > 1:
        raise refused(path, _SEVERAL_NAMES)
    if status.st_uid != os.geteuid():
        raise refused(path, _FOREIGN)
    return content.decode("utf-8", "replace")


def remove(folder: str, sizes: Mapping[str, int], disk: Disk) -> None:
    """Remove a session's stored results, temporary files of crashes, and emptied folders.

    ``folder`` is the folder of the results, ``sizes`` has the size of each by its file name; a file
    of another size is not memd's and stays. Raises Storage.
    """
    base, key, session, _ = folder.rsplit("/", 3)
    with (
        _as_unwritten_file(folder),
        suppress(NotFound, Refused),
        Directory(base) as directory,
        directory.parent(f"{key}/{session}/{FOLDER}/_") as (opened, _),
    ):
        for name, size in sizes.items():
            with suppress(FileNotFoundError):
                if os.stat(name, dir_fd=opened, follow_symlinks=False).st_size == size:
                    disk.unlink(opened, name)
        for name in disk.temporaries(opened):
            disk.unlink(opened, name)
        disk.sync_folder(opened)
    with suppress(OSError):  # a folder with other files stays, and so do those above it
        for emptied in (folder, f"{base}/{key}/{session}", f"{base}/{key}"):
            os.rmdir(emptied)


def _stem(tool_use_id: str) -> str:
    """Return the file name, without suffix, of a call's result: its id, or a hash of an odd id."""
    if re.fullmatch(_SAFE_ID, tool_use_id):
        return tool_use_id
    return sha256(tool_use_id.encode("utf-8", "surrogatepass"))


@contextmanager
def _as_unwritten_file(folder: str) -> Iterator[None]:
    """Raise Storage in place of the block's OSError or MemdError.

    ``folder`` is the absolute path that the error names.
    """
    try:
        yield
    except OSError as error:
        raise unwritable(folder, error) from error
    except MemdError as error:
        raise unwritable(folder, error.sentence) from error


def _write_once(disk: Disk, directory: Directory, below: str, content: bytes) -> bool:
    """Write a new file at the path ``below``; return whether it did not have these bytes already.

    Raises FileExistsError if it has other bytes, and OSError, Refused and
    Storage.
    """
    with directory.parent(below, create=True) as (folder, name):
        for temporary in disk.temporaries(folder):
            disk.unlink(folder, temporary)
        if _is_present(disk, directory, below, content):
            disk.sync_folder(folder)
            return False
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
    return True


def _is_present(disk: Disk, directory: Directory, below: str, content: bytes) -> bool:
    """Return whether a file has these bytes, after syncing it. Raises as ``_write_once``."""
    try:
        result = directory.read(below, len(content))
    except (Refused, TooLarge) as error:
        raise FileExistsError(below) from error
    if result is None:
        return False
    existing, status = result
    if existing != content or status.st_nlink > 1:
        raise FileExistsError(below)
    opened = directory.open(below)
    if opened is None:
        return False
    file, _ = opened
    try:
        disk.fsync(file)
    finally:
        disk.close(file)
    return True
