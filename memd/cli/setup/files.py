"""Read, back up and replace the configuration files of clients.

Rules of this file
- Anything but a plain file of at most MAX_BYTES is refused. A file without write permission is not
  written, even by a user who may write everything.
- New content replaces the old in one rename, and only if the file still holds what was read.
  The file's mode stays; a link stays a link.
- Beside a file there is at most one copy, ``<path>.memd-backup``, which only its owner may read. A
  draft that a killed setup left goes, and so do the numbered copies of older versions of memd.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

from memd.base.errors import Busy, Refused

MAX_BYTES = 4 * 1024 * 1024
BACKUP = ".memd-backup"
_NO_FILE = "it is no plain file"
_TOO_LARGE = f"it is larger than {MAX_BYTES} bytes"
_READ_ONLY = "it is read-only"


def file_refused(path: str, cause: str) -> Refused:
    """Return the error that a client's file cannot be edited without loss."""
    return Refused(
        f"{path} is left as it is: {cause}",
        exit_status=78,
        hint="mend it, or add what memctl setup --dry-run shows by hand; nothing was written",
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
    real_path = os.path.realpath(path)
    try:
        _write(path, real_path, content, base)
    except OSError as error:
        raise file_refused(path, error.strerror or str(error)) from error


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
    if content is not None and not _is_private_copy(backup, content):
        _back_up(path, content)
    surplus = [copy for copy in copies(path) if content is None or copy != backup]
    for copy in surplus:
        try:
            os.unlink(copy)
        except OSError as error:
            raise file_refused(copy, error.strerror or str(error)) from error
    return surplus


def copies(path: str) -> list[str]:
    """Return the paths of all that setup made beside a file: backups, and drafts it left."""
    real_path = os.path.realpath(path)
    return [*_backups(path), *_abandoned_drafts(path + BACKUP), *_abandoned_drafts(real_path)]


def check_is_writable(path: str) -> None:
    """Raise Refused if the file exists and its mode has no write permission."""
    with suppress(FileNotFoundError):
        # By the mode and not by os.access, since root may write every file.
        if not os.stat(path).st_mode & 0o222:
            raise file_refused(path, _READ_ONLY)


def _write(path: str, real_path: str, content: bytes | None, base: bytes | None) -> None:
    """Write the content to a draft beside the file at ``real_path``, then rename it over that."""
    folder = os.path.dirname(real_path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    draft = None
    if content is not None:
        mode = 0o600 if base is None else os.stat(real_path).st_mode & 0o7777
        draft = _create_draft(real_path, content, mode)
    try:
        _replace(path, real_path, draft, base)
    except BaseException:
        if draft is not None:
            _delete(draft)
        raise
    _sync_directory(folder)


def _replace(path: str, real_path: str, draft: str | None, base: bytes | None) -> None:
    """Rename the draft over the file at ``real_path``, or delete that if there is no draft.

    Raise Busy if the file no longer holds ``base``.
    """
    if read(path) != base:
        raise Busy(
            f"{path} changed while it was being edited; nothing was written to it",
            hint="run it again",
        )
    if draft is None:
        os.unlink(real_path)
    else:
        os.rename(draft, real_path)


def _back_up(path: str, content: bytes) -> None:
    """Make these bytes a file's backup of this version. Raise Refused."""
    backup = path + BACKUP
    try:
        draft = _create_draft(backup, content, 0o600)
        os.rename(draft, backup)
        _sync_directory(os.path.dirname(path))
    except OSError as error:
        raise file_refused(path, error.strerror or str(error)) from error


def _create_draft(path: str, content: bytes, mode: int) -> str:
    """Write a draft of the file at ``path`` beside it, sync it and return its path."""
    folder, name = os.path.split(path)
    draft = f"{folder}/.{name}.memd-{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(draft)  # of an earlier process with this number
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


def _delete(path: str) -> None:
    """Delete a file if that is possible."""
    with suppress(OSError):
        os.unlink(path)


def _is_private_copy(backup: str, content: bytes) -> bool:
    """Return whether a backup holds these bytes and only its owner may read it."""
    with suppress(FileNotFoundError):
        return not os.lstat(backup).st_mode & 0o077 and read(backup) == content
    return False


def _backups(path: str) -> list[str]:
    """Return the paths of a file's backups, the newest first."""
    pattern = re.compile(re.escape(os.path.basename(path) + BACKUP) + r"(?:-([1-9][0-9]*))?")
    # Only older versions of memd numbered them, so the one without a number is the newest.
    backups = [(number == "", int(number or 0), copy) for copy, number in _siblings(path, pattern)]
    return [copy for _, _, copy in sorted(backups, reverse=True)]


def _abandoned_drafts(path: str) -> list[str]:
    """Return the paths of a file's drafts whose processes ended without renaming them."""
    pattern = re.compile(rf"\.{re.escape(os.path.basename(path))}\.memd-([1-9][0-9]*)")
    return [draft for draft, pid in _siblings(path, pattern) if not _is_running(int(pid))]


def _siblings(path: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the regular files in a file's folder whose names match, with the matched number."""
    start = path.removesuffix(os.path.basename(path))
    with suppress(OSError), os.scandir(start) as entries:
        for entry in entries:
            match = pattern.fullmatch(entry.name)
            if match and entry.is_file(follow_symlinks=False):
                yield start + entry.name, match[1] or ""


def _is_running(pid: int) -> bool:
    """Return whether a process has this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _sync_directory(path: str) -> None:
    """Sync a directory, so that a rename in it survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
