"""Read credentials from files. Blocks: for a worker thread, or before the event loop runs.

The settings may name a file that contains only a key. The file ``env`` beside the settings may have
variables for the daemon, one ``NAME=value`` a line as in systemd's EnvironmentFile. A file that
other users may read is refused.
"""

import os
import stat

from memd.model.endpoint import is_sendable
from memd.model.errors import ModelNotConfiguredError

_KEY_BYTES = 4096
_ENV_BYTES = 64 * 1024


class KeyFileUnusableError(ModelNotConfiguredError):
    """The file that the settings name has no key, or others may read it."""

    hint = "put the key alone into the file and run chmod 600 on it"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path} {cause}")


class EnvFileUnusableError(KeyFileUnusableError):
    """memd's env file cannot be read, or others may read it."""

    hint = "run chmod 600 on it and restart memd (memctl stop; the next client starts it)"


def read_key(path: str) -> str:
    """Return the key in a file that has nothing else. Raises KeyFileUnusableError."""
    key = _private_text(path, _KEY_BYTES, KeyFileUnusableError).strip()
    if not key or not is_sendable(key):
        raise KeyFileUnusableError(path, cause="holds no key")
    return key


def read_variables(path: str) -> dict[str, str]:
    """Return the variables in memd's env file, none if there is no file.

    Raises EnvFileUnusableError.
    """
    if not os.path.lexists(path):
        return {}
    result = {}
    for line in _private_text(path, _ENV_BYTES, EnvFileUnusableError).split("\n"):
        name, equals, value = (part.strip() for part in line.partition("="))
        # A line with NUL is ignored, as NUL would end the variable's value.
        if name and equals and name[0] not in "#;" and "\0" not in line:
            is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            result[name] = value[1:-1] if is_quoted else value
    return result


def _private_text(path: str, size: int, refusal: type[KeyFileUnusableError]) -> str:
    """Return up to ``size`` bytes of a file as text.

    Raises ``refusal`` if it cannot be read, or if other users may read or change it.
    """
    try:
        # O_NONBLOCK: opening a FIFO does not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise refusal(path, cause=f"cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        content = os.read(descriptor, size) if stat.S_ISREG(status.st_mode) else b""
    finally:
        os.close(descriptor)
    # Checked on the open file, which nobody can exchange in between.
    if status.st_uid not in (os.getuid(), 0) or status.st_mode & 0o077:
        raise refusal(path, cause="may be read by others")
    return content.decode(errors="replace")
