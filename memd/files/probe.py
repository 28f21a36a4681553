"""A memory directory on a failing medium: closed for writing until a small write gets through.

``watch`` counts the waits for the medium, ``ensure_writable`` refuses or probes (``core/health``).
The probe is a file of memd's own beside the memories that is gone a moment later; what a crash
leaves of it, the next start removes.
"""

import re
import secrets as tokens
from collections.abc import Iterator
from contextlib import contextmanager

from memd.core.errors import MemdError
from memd.core.health import Health, Verdict
from memd.files.directory import Directory
from memd.files.disk import Disk, Look

_BODY = b"memd looks whether this directory can be written\n"
_NAME = re.compile(r"\.memd-probe-[0-9a-f]{8}\.tmp")


class ReadOnlyError(MemdError):
    """The medium failed twice in a row; nothing is written until it works again."""

    code = 1008
    kind = "read_only"
    retryable = True
    of_disk = True
    hint = "mend the disk; memd tries once a second when it is asked to write, no restart is needed"
    exit_status = 75

    def __init__(self, directory: str, cause: str) -> None:
        super().__init__(
            f"{directory} is read-only until its disk works again: {cause}",
            directory=directory,
            cause=cause,
        )


@contextmanager
def watch(health: Health) -> Iterator[None]:
    """Count how a wait for the medium ends."""
    try:
        yield
    except OSError as error:
        health.failed(error.errno, error.strerror or type(error).__name__)
        raise
    health.succeeded()


def ensure_writable(health: Health, disk: Disk, directory: Directory, at: float) -> None:
    """Return where writes may go on; ``at`` is in seconds. Raises ReadOnlyError."""
    verdict = health.verdict(at)
    if verdict is Verdict.GO:
        return
    if verdict is Verdict.PROBE:
        try:
            _probe(disk, directory)
        except OSError as error:
            health.failed(error.errno, error.strerror or type(error).__name__)
        else:
            health.succeeded()
            return
    raise ReadOnlyError(directory.path, health.cause)


def is_probe(name: str, look: Look) -> bool:
    """Say whether a file is what a crash left of a probe."""
    return bool(_NAME.fullmatch(name) and look.hash) and _BODY.startswith(look.content)


def _probe(disk: Disk, directory: Directory) -> None:
    name = f".memd-probe-{tokens.token_hex(4)}.tmp"
    with directory.parent("x") as (folder, _):
        file = disk.create(folder, name)
        try:
            try:
                rest = memoryview(_BODY)
                while rest:
                    rest = rest[disk.write(file, rest) :]
                disk.fsync(file)
            finally:
                disk.close(file)
        finally:
            disk.unlink(folder, name)
        disk.sync_folder(folder)
