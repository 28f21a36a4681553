"""Errors of a path below a memory directory, or of the directory, that cannot be used."""

from memd.base import names
from memd.base.errors import MemdError


class PathRefusedError(MemdError):
    """A path leads, or may lead, out of the memory directory, or is no regular file of ours."""

    code = 1006
    kind = "path_refused"

    def __init__(self, path: str, why: str) -> None:
        shown = names.printable(path)
        super().__init__(f"the path {shown} is refused: {why}", path=shown, why=why)


class DirectoryMissingError(MemdError):
    """There is no such memory directory."""

    code = 1001
    kind = "directory_missing"

    def __init__(self, path: str) -> None:
        shown = names.printable(path)
        super().__init__(f"there is no memory directory {shown}", path=shown)


class DirectoryUnusableError(MemdError):
    """A memory directory exists or could be made, but the system does not let us in."""

    code = 1012
    kind = "directory_unusable"
    retryable = True
    of_disk = True
    hint = "mend the permissions or what stands at that path; no restart is needed"

    def __init__(self, path: str, cause: str) -> None:
        shown = names.printable(path)
        super().__init__(
            f"the memory directory {shown} cannot be used: {cause}", path=shown, cause=cause
        )


class FileUnreadableError(MemdError):
    """A file is there, but the system does not let us read it."""

    code = 1012
    kind = "file_unreadable"
    retryable = True
    exit_status = 74

    def __init__(self, path: str, cause: str) -> None:
        shown = names.printable(path)
        super().__init__(f"{shown} cannot be read: {cause}", path=shown, cause=cause)


class FileTooLargeError(MemdError):
    """A file is larger than what may be loaded."""

    code = 1007
    kind = "file_too_large"

    def __init__(self, path: str, size: int, limit: int) -> None:
        shown = names.printable(path)
        super().__init__(
            f"{shown} has {size} bytes; at most {limit} are loaded",
            path=shown,
            size=size,
            limit=limit,
        )


def cause_of(error: OSError) -> str:
    """Return the system's message for an error, or the error's class name."""
    return error.strerror or str(error) or type(error).__name__


class UnwrittenFileError(MemdError):
    """The disk refused a file; what was there before is as it was."""

    code = 1012
    kind = "storage_failed"
    retryable = True
    of_disk = True
    hint = "free space or mend the disk or its permissions; no restart is needed"
    exit_status = 75

    def __init__(self, path: str, cause: str) -> None:
        sentence = f"{names.printable(path)} cannot be written: {cause}"
        super().__init__(sentence, path=path, cause=cause)
