"""Read, back up and replace the configuration files of clients.

Rules of this file
- Anything but a plain file of at most MAX_BYTES is refused. A file without write permission is not
  written, even by a user who may write everything.
- New content replaces the old in one rename, and only if the file still holds what was read.
  The file's mode stays; a link stays a link.
"""

import os
import stat
from collections.abc import Callable
from contextlib import suppress

from memd.core.errors import MemdError

MAX_BYTES = 4 * 1024 * 1024
_NO_FILE = "it is no plain file"
_TOO_LARGE = f"it is larger than {MAX_BYTES} bytes"
_READ_ONLY = "it is read-only"


class FileRefusedError(MemdError):
    """A client's file cannot be edited without loss."""

    hint = "mend it, or add what memctl setup --dry-run shows by hand; nothing was written"
    exit_status = 78

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path} is left as it is: {cause}", path=path)


class FileChangedError(MemdError):
    """Another program wrote the file while it was being edited."""

    retryable = True
    hint = "run it again"
    exit_status = 75

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} changed while it was being edited; nothing was written to it")


def read(path: str) -> bytes | None:
    """Return the bytes of a file, ``None`` if it does not exist. Raise FileRefusedError."""
    try:
        # O_NONBLOCK: opening a named pipe must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            is_plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = file.read(MAX_BYTES + 1) if is_plain else b""
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileRefusedError(path, error.strerror or str(error)) from error
    if not is_plain:
        raise FileRefusedError(path, _NO_FILE)
    if len(content) > MAX_BYTES:
        raise FileRefusedError(path, _TOO_LARGE)
    return content


def write(path: str, content: bytes | None, base: bytes | None) -> None:
    """Replace the file at a path, or the target of a link, if it still holds ``base``.

    ``None`` as content deletes the file. Raise FileChangedError and FileRefusedError.
    """
    real_path = os.path.realpath(path)
    try:
        _write(path, real_path, content, base)
    except OSError as error:
        raise FileRefusedError(path, error.strerror or str(error)) from error


def back_up(path: str, content: bytes) -> str:
    """Copy the bytes to the first free ``<path>.memd-backup-<number>`` and return that path."""
    mode = os.stat(path).st_mode & 0o7777
    number = 1
    while True:
        backup = f"{path}.memd-backup-{number}"
        try:
            _create(backup, content, mode)
        except FileExistsError:
            number += 1
        except OSError as error:
            raise FileRefusedError(path, error.strerror or str(error)) from error
        else:
            return backup


def original(path: str, is_ours: Callable[[bytes], bool]) -> bytes | None:
    """Return the newest backup without memd's part, ``None`` if there is none.

    ``is_ours`` tells whether a content has memd's part.
    """
    number = 1
    newest = None
    while (content := read(f"{path}.memd-backup-{number}")) is not None:
        number += 1
        if not is_ours(content):
            newest = content
    return newest


def check_is_writable(path: str) -> None:
    """Raise FileRefusedError if the file exists and its mode has no write permission."""
    with suppress(FileNotFoundError):
        # By the mode and not by os.access, since root may write every file.
        if not os.stat(path).st_mode & 0o222:
            raise FileRefusedError(path, _READ_ONLY)


def _write(path: str, real_path: str, content: bytes | None, base: bytes | None) -> None:
    """Write the content to a draft beside the file at ``real_path``, then rename it over that."""
    folder = os.path.dirname(real_path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    draft = f"{folder}/.{os.path.basename(real_path)}.memd-{os.getpid()}"
    if content is not None:
        mode = 0o600 if base is None else os.stat(real_path).st_mode & 0o7777
        _create(draft, content, mode)
    try:
        _replace(path, real_path, None if content is None else draft, base)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    _sync_directory(folder)


def _replace(path: str, real_path: str, draft: str | None, base: bytes | None) -> None:
    """Rename the draft over the file at ``real_path``, or delete that if there is no draft.

    Raise FileChangedError if the file no longer holds ``base``.
    """
    if read(path) != base:
        raise FileChangedError(path)
    if draft is None:
        os.unlink(real_path)
    else:
        os.rename(draft, real_path)


def _create(path: str, content: bytes, mode: int) -> None:
    """Create a file with these bytes and this mode and sync it. Raise FileExistsError."""
    # 0600 until the content is in: a settings file can hold credentials.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _sync_directory(path: str) -> None:
    """Sync a directory, so that a rename in it survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
