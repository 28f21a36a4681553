"""Where a session's notes lie, and the one way to read, replace and remove them. Blocks.

Rules of this file
- Notes lie beside the session's transcript: in a folder of its own, below the folder of the
  project. A file that is there already is the one, wherever another key would put it.
- What has no cursor, or lies where only another program puts notes, is read and never written.
- A reader sees the old file or the new one. What a replacement takes away is compared with what
  the writer had read, and comes back where it is something else.
- Nothing is opened through a link, and no file that has several names.
- Writers of one place come one after the other; the caller sees to it.
"""

import os
import re
import secrets as tokens
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from memd.core.errors import MemdError
from memd.core.text import sha256
from memd.core.values import Project
from memd.core.yielding import yield_to_requests
from memd.files.directory import (
    Directory,
    DirectoryMissingError,
    DirectoryUnusableError,
    FileUnreadableError,
    PathRefusedError,
    cause_of,
)
from memd.files.disk import FILE_MODE, Disk, hash_of, real_disk
from memd.notes.errors import (
    ForeignNotesError,
    NotesConflictError,
    NotesTooLargeError,
    SessionRefusedError,
    UnwrittenNotesError,
)
from memd.notes.sections import SessionNotes, parse
from memd.projects.project import slug

NOTES_BYTES = 256 * 1024
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,128}")
_FOLDER, _FILE = "session-memory", "summary.md"
_FOREIGN = ".claude/session-memory"
_ENTRIES = 10_000  # of a folder that are looked at
_SEVERAL_NAMES = "it has several names (hard links)"


@dataclass(frozen=True, slots=True)
class NotesPlace:
    """Where the notes of a session may lie.

    ``base`` holds a folder for each of ``keys``; new notes go below the ``home`` among them.
    """

    base: str
    session: str
    keys: tuple[str, ...]
    home: str

    @property
    def path(self) -> str:
        """The absolute path of new notes."""
        return f"{self.base}/{_own(self.home, self.session)}"


@dataclass(frozen=True, slots=True)
class NotesFile:
    """Notes as they lie on the disk; ``mtime`` is in seconds since 1970."""

    session: str
    path: str
    text: str
    notes: SessionNotes
    hash: str
    mtime: float
    foreign: bool


def place(project: Project, session: str, transcript: str = "") -> NotesPlace:
    """Return where a session's notes lie; ``transcript`` is the path of its transcript, if known.

    Raises SessionRefusedError.
    """
    if not _SESSION.fullmatch(session):
        raise SessionRefusedError(session)
    keys = [slug(project.cwd), slug(project.root)]
    home = keys[0]
    folder, name = os.path.split(transcript)
    if name == f"{session}.jsonl" and "\0" not in folder:
        above, key = os.path.split(os.path.realpath(folder))
        if key and above == os.path.realpath(project.transcripts):
            home = key
    return NotesPlace(project.transcripts, session, tuple(dict.fromkeys((*keys, home))), home)


def read(place: NotesPlace) -> NotesFile | None:
    """Return a session's notes, ``None`` if there are none.

    Raises PathRefusedError, FileTooLargeError, FileUnreadableError and DirectoryUnusableError.
    """
    with suppress(DirectoryMissingError), Directory(place.base) as directory:
        return _first(directory, place)
    return None


def replace(place: NotesPlace, text: str, expected: str, disk: Disk | None = None) -> str:
    """Put a text in the place of a session's notes, and return its hash.

    ``expected`` is the hash of the notes that the writer had read, "" if there were none. Raises
    NotesConflictError, ForeignNotesError, NotesTooLargeError, UnwrittenNotesError and
    PathRefusedError; the old notes are as they were then.
    """
    content = text.encode("utf-8", "replace")
    if len(content) > NOTES_BYTES:
        raise NotesTooLargeError(place.path, len(content), NOTES_BYTES)
    try:
        with Directory(place.base, create=True) as directory:
            present = _first(directory, place)
            path = present.path if present else place.path
            if present and present.foreign:
                raise ForeignNotesError(path)
            _compare(path, expected, present.hash if present else "")
            name = path.removeprefix(f"{place.base}/")
            with directory.parent(name, create=True) as (folder, _):
                _put(disk or real_disk(), folder, path, content, expected)
    except FileExistsError as error:
        raise NotesConflictError(place.path, expected, "") from error
    except OSError as error:
        raise UnwrittenNotesError(place.path, cause_of(error)) from error
    except (DirectoryUnusableError, FileUnreadableError) as error:
        raise UnwrittenNotesError(place.path, str(error.facts["cause"])) from error
    return sha256(content)


def remove(place: NotesPlace, disk: Disk | None = None) -> bool:
    """Remove a session's notes and the folders that are empty then; say whether there were any.

    Raises ForeignNotesError, UnwrittenNotesError and what ``read`` raises.
    """
    present = read(place)
    if present is None:
        return False
    if present.foreign:
        raise ForeignNotesError(present.path)
    name = present.path.removeprefix(f"{place.base}/")
    disk = disk or real_disk()
    try:
        with Directory(place.base) as directory:
            with directory.parent(name) as (folder, last):
                for left in (last, *disk.temporaries(folder)):
                    disk.unlink(folder, left)
                disk.sync_folder(folder)
            with suppress(OSError, MemdError):  # what else lies there keeps its folders
                while "/" in name:
                    name = name.rpartition("/")[0]
                    with directory.parent(name) as (folder, last):
                        os.rmdir(last, dir_fd=folder)
    except OSError as error:
        raise UnwrittenNotesError(present.path, cause_of(error)) from error
    return True


def listed(base: str, keys: Collection[str] | None, limit: int) -> tuple[NotesFile, ...]:
    """Return the newest notes first: those of some keys, or all.

    What cannot be read is left out. Raises DirectoryUnusableError.
    """
    result: list[NotesFile] = []
    with suppress(DirectoryMissingError), Directory(base) as directory:
        for _, session, name in sorted(_present(directory, keys), reverse=True)[:limit]:
            with suppress(MemdError):
                notes = _load(directory, session, name)
                result += [notes] if notes else []
    return tuple(result)


def prune(base: str, before: float) -> int:
    """Remove notes of memd that last changed before a time, and return how many."""
    removed = 0
    with suppress(DirectoryMissingError), Directory(base) as directory:
        for mtime, session, name in list(_present(directory, None)):
            if mtime < before:
                key = name.partition("/")[0]
                with suppress(MemdError):
                    removed += remove(NotesPlace(base, session, (key,), key))
    return removed


def _own(key: str, session: str) -> str:
    return f"{key}/{session}/{_FOLDER}/{_FILE}"


def _first(directory: Directory, place: NotesPlace) -> NotesFile | None:
    own = (_own(key, place.session) for key in place.keys)
    foreign = (f"{key}/{_FOREIGN}/{place.session}.md" for key in place.keys)
    loaded = (_load(directory, place.session, name) for name in (*own, *foreign))
    return next(filter(None, loaded), None)


def _load(directory: Directory, session: str, name: str) -> NotesFile | None:
    result = directory.read(name, NOTES_BYTES)
    if result is None:
        return None
    content, status = result
    if status.st_nlink > 1:
        raise PathRefusedError(name, _SEVERAL_NAMES)
    text = content.decode("utf-8", "replace")
    notes = parse(text)
    # What is not UTF-8 would be damaged by writing it.
    own = name.endswith(f"/{_FILE}") and notes.cursor and text.encode() == content
    path = f"{directory.path}/{name}"
    return NotesFile(session, path, text, notes, sha256(content), status.st_mtime, not own)


def _present(
    directory: Directory, keys: Collection[str] | None
) -> Iterator[tuple[float, str, str]]:
    """Yield the time, the session and the name of all notes below some keys, or all."""
    for key in _names(directory, "") if keys is None else keys:
        yield_to_requests()
        folder = f"{key}/{_FOREIGN}"
        foreign = (name.removesuffix(".md") for name in _names(directory, folder))
        for session in filter(_SESSION.fullmatch, {*_names(directory, key), *foreign}):
            for name in (_own(key, session), f"{folder}/{session}.md"):
                with suppress(MemdError):
                    if status := directory.stat(name):
                        yield status.st_mtime, session, name
                        break


def _names(directory: Directory, folder: str) -> list[str]:
    """Return what lies in a folder, empty if it cannot be read."""
    with suppress(OSError, MemdError), directory.folder(folder) as fd:
        if fd is not None:
            with os.scandir(fd) as entries:
                return [entry.name for entry in islice(entries, _ENTRIES)]
    return []


def _put(disk: Disk, folder: int, path: str, content: bytes, expected: str) -> None:
    """Put a new file in the place of the expected one. Raises OSError and NotesConflictError."""
    for left in disk.temporaries(folder):
        disk.unlink(folder, left)
    temp = f".memd-{tokens.token_hex(8)}.tmp"
    try:
        _write(disk, folder, temp, content)
        swap, back = (disk.exchange, (temp, _FILE)) if expected else (disk.move, (_FILE, temp))
        swap(folder, temp, _FILE)
        try:
            _compare(path, expected, hash_of(disk.read(folder, temp)) or "")
            disk.sync_folder(folder)
        except (OSError, NotesConflictError):
            with suppress(OSError):
                swap(folder, *back)
            raise
    finally:
        with suppress(OSError):
            disk.unlink(folder, temp)


def _write(disk: Disk, folder: int, name: str, content: bytes) -> None:
    """Make a file and bring it to the disk. Raises OSError."""
    file = disk.create(folder, name)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[disk.write(file, rest) :]
        disk.set_mode(file, FILE_MODE)
        disk.fsync(file)
    finally:
        disk.close(file)


def _compare(path: str, expected: str, actual: str) -> None:
    """Raise NotesConflictError for other notes than the expected ones."""
    if actual != expected:
        raise NotesConflictError(path, expected, actual)
