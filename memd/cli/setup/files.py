"""Read, back up and replace the configuration files of clients.

Rules of this file
- Anything but a plain file of this user and of at most MAX_BYTES is refused. A file without write
  permission is not written, even by a user who may write everything.
- New content replaces the old in one rename, and only if the file still holds what was read.
  The file's mode stays; a link stays a link.
- Beside a file there is at most one copy, ``<path>.memd-backup``, which only its owner may read. A
  draft that a killed setup left goes, and so do the numbered copies of older versions of memd.
"""

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress

from memd.base.errors import Busy, Refused

MAX_BYTES = 4 * 1024 * 1024
BACKUP = ".memd-backup"
_NO_FILE = "it is no plain file"
_OTHER_USER = "it belongs to another user"
_TOO_LARGE = f"it is larger than {MAX_BYTES} bytes"
_READ_ONLY = "it is read-only"


def file_refused(path: str, cause: str) -> Refused:
    """Return the error that a client's file cannot be edited without loss."""
    return Refused(
        f"{path} is left as it is: {cause}",
        exit_status=78,
        hint="mend it, or add what memctl setup --diff shows by hand; nothing was written",
        path=path,
    )


def read(path: str) -> bytes | None:
    """Return the bytes of a file, ``None`` if it does not exist. Raise Refused."""
    try:
        # O_NONBLOCK: opening a named pipe must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            is_plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = file.read(MAX_BYTES + 1) if is_plain else b""
    except FileNotFoundError:
        return None
    except OSError as error:
        raise file_refused(path, error.strerror or str(error)) from error
    if not is_plain:
        raise file_refused(path, _NO_FILE)
    if len(content) > MAX_BYTES:
        raise file_refused(path, _TOO_LARGE)
    return content


def write(path: str, content: bytes | None, base: bytes | None) -> None:
    """Replace the file at a path, or the target of a link, if it still holds ``base``.

    ``None`` as content deletes the file. Raise Busy and Refused.
    """
    real_path, draft = os.path.realpath(path), None
    try:
        os.makedirs(os.path.dirname(real_path), mode=0o700, exist_ok=True)
        if content is not None:
            mode = 0o600 if base is None else os.stat(real_path).st_mode & 0o7777
            draft = _create_draft(real_path, content, mode)
        if read(path) == base:
            _replace(real_path, draft)
            return
    except OSError as error:
        raise file_refused(path, error.strerror or str(error)) from error
    finally:
        if draft is not None:
            _delete(draft)  # unless it was renamed
    raise Busy(
        f"{path} changed while it was being edited; nothing was written to it", hint="run it again"
    )


def check_may_be_written(path: str) -> None:
    """Raise Refused if the file exists and is read-only or another user's."""
    with suppress(FileNotFoundError):
        status = os.stat(path)
        # By the mode and not by os.access, since root may write every file.
        if not status.st_mode & 0o222:
            raise file_refused(path, _READ_ONLY)
        if status.st_uid != os.getuid():
            raise file_refused(path, _OTHER_USER)


def original(path: str, is_ours: Callable[[bytes], bool]) -> bytes | None:
    """Return the newest backup without memd's part, ``None`` if there is none.

    ``is_ours`` tells whether a content has memd's part. Raise Refused.
    """
    contents = [read(backup) for backup in _backups(path)]
    return next((each for each in contents if each is not None and not is_ours(each)), None)


def keep_one_backup(path: str, content: bytes | None) -> list[str]:
    """Make these bytes the only copy beside a file; ``None`` for no copy. Return what was deleted.

    Raise Refused.
    """
    backup = path + BACKUP
    try:
        if content is not None and not _is_private_copy(backup, content):
            _replace(backup, _create_draft(backup, content, 0o600))
        surplus = [copy for copy in copies(path) if content is None or copy != backup]
        for copy in surplus:
            os.unlink(copy)
    except OSError as error:
        raise file_refused(path, error.strerror or str(error)) from error
    return surplus


def copies(path: str) -> list[str]:
    """Return the paths of all that setup made beside a file: backups, and drafts it left."""
    drafts = [
        draft
        for base in (path + BACKUP, os.path.realpath(path))
        for draft, _ in _siblings(base, r"\.{}\.memd-([1-9][0-9]*)")
    ]
    return [*_backups(path), *drafts]


def _backups(path: str) -> list[str]:
    """Return the paths of a file's backups, the newest first."""
    # Only older versions of memd numbered them, so the one without a number is the newest.
    backups = _siblings(path + BACKUP, r"{}(?:-([1-9][0-9]*))?")
    return [copy for copy, _ in sorted(backups, key=lambda each: -int(each[1] or 10**9))]


def _siblings(path: str, pattern: str) -> list[tuple[str, str]]:
    """Return the regular files in a file's folder whose names match, with the matched number.

    ``{}`` in the pattern stands for the file's name.
    """
    folder, name = os.path.split(path)
    names = re.compile(pattern.format(re.escape(name)))
    siblings = []
    with suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in entries:
            match = names.fullmatch(entry.name)
            if match and entry.is_file(follow_symlinks=False):
                siblings.append((f"{folder}/{entry.name}", match[1] or ""))
    return siblings


def _is_private_copy(backup: str, content: bytes) -> bool:
    """Return whether a backup holds these bytes and only its owner may read it."""
    with suppress(FileNotFoundError):
        return not os.lstat(backup).st_mode & 0o077 and read(backup) == content
    return False


def _create_draft(path: str, content: bytes, mode: int) -> str:
    """Write a draft of the file at ``path`` beside it, sync it and return its path."""
    folder, name = os.path.split(path)
    draft = f"{folder}/.{name}.memd-{os.getpid()}"
    _delete(draft)  # of an earlier process with this number
    # 0600 until the content is in: a settings file can hold credentials.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
    except BaseException:
        _delete(draft)
        raise
    return draft


def _replace(path: str, draft: str | None) -> None:
    """Rename a draft over a file, or delete the file if there is none; sync the folder."""
    if draft is None:
        os.unlink(path)
    else:
        os.rename(draft, path)
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _delete(path: str) -> None:
    """Delete a file if that is possible."""
    with suppress(OSError):
        os.unlink(path)
