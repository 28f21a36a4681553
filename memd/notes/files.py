"""Find, read, replace and remove the files of session notes. Blocks.

Rules of this file
- Notes lie beside the session's transcript, below the folder of the project. An existing file is
  used even if new notes would get another path.
- Notes without a cursor, with a text that somebody changed since, or at a path that only another
  program uses, are never written.
- A reader sees the old file or the new one. The file that a replacement removes is compared with
  what the writer had read, and is put back if it differs.
- Nothing is opened through a link, and no file that has several names.
- The caller makes sure that only one thread at a time writes the notes of a session.
"""

import glob
import os
import secrets as tokens
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import product

from msgspec import Struct

from memd.base.errors import Conflict, MemdError, NotFound, Refused, Storage
from memd.base.imports import RawNotes
from memd.base.names import is_text
from memd.base.text import sha256
from memd.base.values import Project
from memd.notes import errors
from memd.notes.sections import SessionNotes, parse
from memd.projects.project import check_session, is_session, slug
from memd.store.directory import Directory, refused, unwritable
from memd.store.disk import Disk, hash_of, real_disk, write_new

NOTES_BYTES = 256 * 1024
# Paths of notes below a base folder: the key of the project's folder, and the session.
_OWN_FORM = "{}/{}/session-memory/summary.md"
_TEMPORARY_FORM = "{}/{}/session-memory/.memd-*.tmp"  # left by a crash
_FOREIGN_FORM = "{}/.claude/session-memory/{}.md"  # of another program
_MOST_NOTES = 1000  # notes below a folder of projects
_WAS_REMOVED = "it was removed a moment ago"
_SEVERAL_NAMES = "it has several names (hard links)"


class NotesPlace(Struct, frozen=True):
    """The folders in which the notes of a session are looked for.

    ``base`` has a folder for each of the ``keys``; new notes are written below the last one.
    """

    base: str
    session: str
    keys: tuple[str, ...]

    @property
    def path(self) -> str:
        """The absolute path of new notes."""
        return f"{self.base}/{_OWN_FORM.format(self.keys[-1], self.session)}"


class NotesFile(Struct, frozen=True):
    """Notes read from the disk; ``mtime`` is in seconds since 1970.

    ``foreign`` says that memd may not write them.
    """

    session: str
    path: str
    text: str
    notes: SessionNotes
    hash: str
    mtime: float
    foreign: bool


def place(project: Project, session: str, transcript: str = "") -> NotesPlace:
    """Return the folders of a session's notes; new notes go beside its transcript, if known.

    Raises Invalid.
    """
    check_session(project, session)
    key_for_new = slug(project.cwd)
    folder, name = os.path.split(transcript)
    if name == f"{session}.jsonl" and is_text(folder) and "\0" not in folder:
        above, key = os.path.split(os.path.realpath(folder))
        if above == os.path.realpath(project.transcripts):
            key_for_new = key
    others = {slug(project.cwd), slug(project.root)} - {key_for_new}
    return NotesPlace(project.transcripts, session, (*sorted(others), key_for_new))


def read(place: NotesPlace) -> NotesFile | None:
    """Return a session's notes, ``None`` if there are none.

    Raises Refused, TooLarge and Storage.
    """
    with suppress(NotFound), Directory(place.base) as directory:
        return _load_first(directory, place)
    return None


def replace(place: NotesPlace, text: str, expected: str, disk: Disk | None = None) -> str:
    """Replace a session's notes by a text, and return its hash.

    ``expected`` is the hash of the notes that the writer had read, "" if there were none. Raises
    Conflict, Refused, TooLarge and Storage; the old notes are unchanged then.
    """
    return _replace(place, text.encode("utf-8", "replace"), expected, disk)


def restore(place: NotesPlace, content: bytes, mtime_ns: int) -> bool:
    """Write notes byte for byte if a session has none; return whether they were written.

    ``mtime_ns`` is their mtime, 0 for now. Raises Refused, TooLarge and Storage.
    """
    try:
        _replace(place, content, "", mtime_ns=mtime_ns or None)
    except Conflict:
        return False
    except Refused as error:
        if error.kind != errors.FOREIGN_NOTES:  # which are notes as well
            raise
        return False
    return True


def _replace(
    place: NotesPlace,
    content: bytes,
    expected: str,
    disk: Disk | None = None,
    mtime_ns: int | None = None,
) -> str:
    """Replace a session's notes by a content, and return its hash; see ``replace``."""
    if len(content) > NOTES_BYTES:
        raise errors.notes_too_large(place.path, len(content), NOTES_BYTES)
    try:
        with Directory(place.base, create=True) as directory:
            existing = _load_first(directory, place)
            path = existing.path if existing else place.path
            if existing and existing.foreign:
                raise errors.foreign_notes(path)
            _check_hash(path, expected, existing.hash if existing else "")
            below = os.path.relpath(path, place.base)
            with directory.parent(below, create=True) as (folder, name):
                file = (folder, name, path)
                _write_and_swap(disk or real_disk(), file, content, expected, mtime_ns)
    except FileExistsError as error:  # another program saved it a moment ago
        raise errors.notes_conflict(place.path, expected, "") from error
    except OSError as error:
        raise unwritable(place.path, error) from error
    except Storage as error:
        raise unwritable(place.path, str(error.facts["cause"])) from error
    return sha256(content)


def remove(place: NotesPlace, disk: Disk | None = None) -> bool:
    """Remove a session's notes and emptied folders; return whether there were notes.

    Raises Refused, Storage and the errors of ``read``.
    """
    existing = read(place)
    if existing and existing.foreign:
        raise errors.foreign_notes(existing.path)
    path = existing.path if existing else place.path
    disk, below = disk or real_disk(), os.path.relpath(path, place.base)
    try:
        with Directory(place.base) as directory, directory.parent(below) as (folder, name):
            if existing:
                disk.unlink(folder, name)
            for temporary in disk.temporaries(folder):
                disk.unlink(folder, temporary)
            disk.sync_folder(folder)
    except NotFound:
        return False
    except OSError as error:
        raise unwritable(path, error) from error
    with suppress(OSError):  # a folder with other files stays, and so do those above it
        while below := os.path.dirname(below):
            os.rmdir(f"{place.base}/{below}")
    return existing is not None


def newest_notes(base: str, keys: Iterable[str] | None, limit: int) -> tuple[NotesFile, ...]:
    """Return the newest notes in the folders ``keys`` of ``base``, or in all folders for ``None``.

    Files that cannot be read are left out. Raises Storage.
    """
    result: list[NotesFile] = []
    with suppress(NotFound), Directory(base) as directory:
        by_time = sorted(_existing(directory, keys, (_OWN_FORM, _FOREIGN_FORM)), reverse=True)
        for _, name in by_time[:limit]:
            with suppress(MemdError):
                file = _load(directory, name)
                if file is not None:
                    result.append(file)
    return tuple(result)


def contents(folders: Iterable[str]) -> tuple[RawNotes, ...]:
    """Return the notes of all sessions below some transcript folders, byte for byte.

    If a session has several notes, memd's own are preferred, then the first. Files that are not
    named after a session are left out. Raises Storage.
    """
    result: dict[str, RawNotes] = {}
    for form, folder in product((_OWN_FORM, _FOREIGN_FORM), tuple(folders)):
        base, key = os.path.split(folder)
        with suppress(NotFound), Directory(base) as directory:
            for _, name in sorted(_existing(directory, (key,), (form,))):
                raw_notes = _read_raw(directory, name)
                if is_session(raw_notes.session):
                    result.setdefault(raw_notes.session, raw_notes)
    return tuple(result.values())


def prune(base: str) -> int:
    """Remove memd's notes but the ``_MOST_NOTES`` that changed last; return how many.

    Raises Storage.
    """
    removed = 0
    newest: dict[tuple[str, str], float] = {}  # by key and session: the newest mtime of its files
    with suppress(NotFound), Directory(base) as directory:
        for mtime, name in _existing(directory, None, (_OWN_FORM, _TEMPORARY_FORM)):
            key, session, *_ = name.split("/")
            newest[key, session] = max(mtime, newest.get((key, session), mtime))
    for key, session in sorted(newest, key=newest.__getitem__, reverse=True)[_MOST_NOTES:]:
        with suppress(MemdError):
            removed += remove(NotesPlace(base, session, (key,)))
    return removed


def _existing(
    directory: Directory, keys: Iterable[str] | None, forms: Iterable[str]
) -> Iterator[tuple[float, str]]:
    """Yield the mtime and the path of each file below ``keys`` that has one of the ``forms``.

    ``None`` for ``keys`` stands for all folders.
    """
    patterns = ["*"] if keys is None else [glob.escape(key) for key in keys]
    for pattern, form in product(patterns, tuple(forms)):
        for name in glob.iglob(form.format(pattern, "*"), root_dir=directory.path):
            with suppress(MemdError):
                status = directory.stat(name)
                if status is not None:
                    yield status.st_mtime, name


def _read_raw(directory: Directory, name: str) -> RawNotes:
    """Return the bytes of a notes file, or the problem why it cannot be read."""
    _, session, *_ = name.split("/")
    if session == ".claude":  # another program's notes are named after the session
        session = os.path.basename(name).removesuffix(".md")
    try:
        result = directory.read(name, NOTES_BYTES)
    except MemdError as error:
        return RawNotes(session, problem=error.sentence)
    if result is None:
        return RawNotes(session, problem=_WAS_REMOVED)
    content, status = result
    if status.st_nlink > 1:
        return RawNotes(session, problem=_SEVERAL_NAMES)
    return RawNotes(session, content, status.st_mtime_ns)


def _load_first(directory: Directory, place: NotesPlace) -> NotesFile | None:
    """Return the first notes file of a session, memd's own before foreign ones."""
    for form, key in product((_OWN_FORM, _FOREIGN_FORM), place.keys):
        file = _load(directory, form.format(key, place.session))
        if file is not None:
            return file
    return None


def _load(directory: Directory, name: str) -> NotesFile | None:
    """Return a notes file, ``None`` if it does not exist. Raises Refused."""
    result = directory.read(name, NOTES_BYTES)
    if result is None:
        return None
    content, status = result
    if status.st_nlink > 1:
        raise refused(name, _SEVERAL_NAMES)
    key, session, *_ = name.split("/")
    is_own = name == _OWN_FORM.format(key, session)
    text = content.decode("utf-8", "replace")
    notes = parse(text)
    return NotesFile(
        session=session if is_own else os.path.basename(name).removesuffix(".md"),
        path=f"{directory.path}/{name}",
        text=text,
        notes=notes,
        hash=sha256(content),
        mtime=status.st_mtime,
        # Writing a file back that is not UTF-8 would damage it.
        foreign=not is_own or notes.cursor is None or notes.changed or text.encode() != content,
    )


def _write_and_swap(
    disk: Disk,
    file: tuple[int, str, str],
    content: bytes,
    expected: str,
    mtime_ns: int | None = None,
) -> None:
    """Replace a file with the hash ``expected`` by new content; "" if there must be no file.

    ``file`` is the open folder, the file's name in it and its path. ``mtime_ns`` is the new file's
    mtime, ``None`` for now. Raises OSError and Conflict; the file is unchanged then.
    """
    folder, name, path = file
    for temporary in disk.temporaries(folder):
        disk.unlink(folder, temporary)
    temp = f".memd-{tokens.token_hex(8)}.tmp"
    try:
        write_new(disk, folder, temp, content, mtime_ns=mtime_ns)
        if expected:
            disk.exchange(folder, temp, name)  # the old file is under ``temp`` now
        else:
            disk.move(folder, temp, name)  # fails if there is a file
        try:
            _check_hash(path, expected, hash_of(disk.read(folder, temp)) or "")
            disk.sync_folder(folder)
        except (OSError, Conflict):
            with suppress(OSError):
                if expected:
                    disk.exchange(folder, temp, name)
                else:
                    disk.move(folder, name, temp)
            raise
    finally:
        with suppress(OSError):
            disk.unlink(folder, temp)


def _check_hash(path: str, expected: str, actual: str) -> None:
    """Raise Conflict if the hashes differ."""
    if actual != expected:
        raise errors.notes_conflict(path, expected, actual)
