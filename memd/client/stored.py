"""Read the results that memd stored for a session, without a daemon.

Rules of this file
- Nothing is read through a link in a session's folder, nor a file with several hard links.
- A part never ends within a character, so all parts joined are the whole text.
"""

import errno
import os
import stat

# Of one part: limits and default. The largest part is at most what memd sends whole.
LEAST_BYTES, USUAL_BYTES, MOST_BYTES = 1_000, 20_000, 40_000
# O_NONBLOCK: opening a named pipe must not wait for a writer.
_FILE_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER_FLAGS = _FILE_FLAGS | os.O_DIRECTORY
_CONTINUATION_BYTES = range(0x80, 0xC0)  # the bytes of a UTF-8 character after its first


def read_stored(path: str, offset: int = 0, limit: int = USUAL_BYTES) -> str:
    """Return a part of a stored result, below a line that says which bytes these are.

    Raises OSError where the file is gone or is not a stored result.
    """
    offset, limit = max(offset, 0), min(max(limit, LEAST_BYTES), MOST_BYTES)
    descriptor = _open(path)
    try:
        size = _checked_facts(os.fstat(descriptor)).st_size
        content = os.pread(descriptor, limit + 1, offset)  # one byte more, to see what follows
    finally:
        os.close(descriptor)
    end = min(len(content), limit)
    # Only binary data has so many continuation bytes that the search for a character would go on.
    while LEAST_BYTES // 2 < end < len(content) and content[end] in _CONTINUATION_BYTES:
        end -= 1
    continuation = f"go on with offset {offset + end}" if offset + end < size else "its end"
    text = content[:end].decode("utf-8", "replace")
    return f"[bytes {offset} to {offset + end} of {size}, {continuation}]\n{text}"


def _open(path: str) -> int:
    """Return a descriptor of a file; none of the last three names of its path may be a link."""
    base, *names = path.rsplit("/", 3)
    descriptor = os.open(base or "/", _FOLDER_FLAGS & ~os.O_NOFOLLOW)  # above it links are allowed
    for flags, name in zip((_FOLDER_FLAGS, _FOLDER_FLAGS, _FILE_FLAGS), names, strict=True):
        try:
            below = os.open(name, flags, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def _checked_facts(facts: os.stat_result) -> os.stat_result:
    """Return the facts of a file. Raises OSError unless it is a plain file of this user alone."""
    is_own = facts.st_uid == os.geteuid() and facts.st_nlink == 1
    if not stat.S_ISREG(facts.st_mode) or not is_own:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))
    return facts
