"""Read the results that memd stored for a session, without a daemon.

Rules of this file
- Nothing is read through a link in a session's folder, nor a file with several hard links.
- A part never ends within a character, so all parts joined are the whole text.
"""

import errno
import os
import stat

LEAST_BYTES, USUAL_BYTES, MOST_BYTES = 1_000, 20_000, 40_000  # at most what memd sends whole
_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER = _FILE | os.O_DIRECTORY
_CONTINUED = range(0x80, 0xC0)  # the bytes of a UTF-8 character after its first


def read_stored(path: str, offset: int = 0, limit: int = USUAL_BYTES) -> str:
    """Return a part of a stored result, below a line that says which bytes these are.

    Raises OSError where the file is gone or is not a stored result.
    """
    offset, limit = max(offset, 0), min(max(limit, LEAST_BYTES), MOST_BYTES)
    descriptor = _open(path)
    try:
        size = _checked(os.fstat(descriptor)).st_size
        content = os.pread(descriptor, limit + 1, offset)
    finally:
        os.close(descriptor)
    end = min(len(content), limit)
    while LEAST_BYTES // 2 < end < len(content) and content[end] in _CONTINUED:
        end -= 1
    rest = f"go on with offset {offset + end}" if offset + end < size else "its end"
    text = content[:end].decode("utf-8", "replace")
    return f"[bytes {offset} to {offset + end} of {size}, {rest}]\n{text}"


def _open(path: str) -> int:
    """Return a descriptor of a file; none of the last three names of its path may be a link."""
    base, *names = path.rsplit("/", 3)
    descriptor = os.open(base or "/", _FOLDER & ~os.O_NOFOLLOW)
    for flags, name in zip((_FOLDER, _FOLDER, _FILE), names, strict=True):
        try:
            below = os.open(name, flags, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def _checked(facts: os.stat_result) -> os.stat_result:
    """Return the facts of a file. Raises OSError unless it is a plain file of this user alone."""
    owned = facts.st_uid == os.geteuid() and facts.st_nlink == 1
    if stat.S_ISREG(facts.st_mode) and owned:
        return facts
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))
