"""A key in a file of its own; blocking, for a worker thread."""

import os
import stat

from memd.model.endpoint import is_sendable
from memd.model.errors import ModelNotConfiguredError

_BYTES = 4096


class KeyFileUnusableError(ModelNotConfiguredError):
    """The file that the settings name holds no key, or others may read it."""

    hint = "put the key alone into the file and run chmod 600 on it"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path} {cause}")


def read_key(path: str) -> str:
    """Return the key that a file holds. Raises KeyFileUnusableError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise KeyFileUnusableError(path, cause=f"cannot be read: {error.strerror}") from None
    try:
        facts = os.fstat(descriptor)
        regular = stat.S_ISREG(facts.st_mode)
        content = os.read(descriptor, _BYTES) if regular else b""
    finally:
        os.close(descriptor)
    if facts.st_uid not in (os.getuid(), 0) or facts.st_mode & 0o077:
        raise KeyFileUnusableError(path, cause="may be read by others")
    key = content.decode(errors="replace").strip()
    if not key or not is_sendable(key):
        raise KeyFileUnusableError(path, cause="holds no key")
    return key
