"""Open a transcript and read the lines that may matter.

Rules of this file
- A transcript may have hundreds of megabytes and single lines of many: no more than one line of
  ``LINE_BYTES`` is in memory, and longer lines are skipped.
- A line counts once it ends. A torn last line is left for the next reading.
- Only a regular file of this user is read, no link; a FIFO or a device is refused without waiting.
Blocks: call it from a worker thread.
"""

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import msgspec

from memd.base.errors import Refused
from memd.base.text import read_json, sha256
from memd.base.yielding import yield_to_requests

LINE_BYTES = 4 * 1024 * 1024  # a longer line is a copy of a request or an image, never a turn
_NO_NAME = "its path is not absolute or does not end in .jsonl"
_NO_TEXT = "its name is no text"
_NO_FILE = "it is not a regular file of yours"
_NOT_REGULAR = (errno.ELOOP, errno.EISDIR, errno.ENXIO)  # a link, a folder, a socket
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BUFFER_BYTES, _CHUNK_BYTES = 128 * 1024, 1024 * 1024
_HEAD_BYTES = 256  # contains the kind of the first line
_MARKER_BYTES = 256  # before an offset
_MARKER_CHARACTERS = 16  # of the hash of these bytes
_SESSION_LINES = (b'"session_meta"', b'"projectHash"')  # in a first line that names the session
# A line without a match is of no kind that memd reads, and is not parsed.
_HINT = (
    rb'"type": ?"(?:user|assistant|custom-title|ai-title|gemini|response_item|event_msg|'
    rb'session_meta|turn_context|compacted|token_usage_record)"|"compact_boundary"|'
    rb'"hook_additional_context"|"projectHash"'
)


def _transcript_refused(path: str, why: str) -> Refused:
    shown = path.encode("unicode_escape").decode("ascii")
    return Refused(
        f"the transcript {shown} is not read: {why}",
        kind="transcript_refused",
        hint="give the absolute path of your own *.jsonl file",
        path=shown,
        why=why,
    )


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open a transcript for the block. Raises Refused, also for any OSError."""
    if not path.startswith("/") or not path.endswith(".jsonl") or "\0" in path:
        raise _transcript_refused(path, _NO_NAME)
    try:
        # A FIFO without a writer would hold a plain open for ever.
        with os.fdopen(os.open(path, _OPEN_FLAGS), "rb", buffering=_BUFFER_BYTES) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                raise _transcript_refused(path, _NO_FILE)
            yield file
    except UnicodeEncodeError:
        raise _transcript_refused(path, _NO_TEXT) from None
    except OSError as error:
        why = _NO_FILE if error.errno in _NOT_REGULAR else error.strerror or type(error).__name__
        raise _transcript_refused(path, why) from error


def records(file: BinaryIO, start: int, most: int = sys.maxsize) -> Iterator[tuple[Any, int]]:
    """Yield each whole line from an offset on, parsed, with the offset behind it.

    For a line of an unused kind, or one too long, the value is ``None``. It stops after the line
    that reaches ``most`` bytes, and before a torn last line.
    """
    file.seek(start)
    position = start
    while position - start < most:
        yield_to_requests()
        line = file.readline(LINE_BYTES)
        length, too_long = len(line), not line.endswith(b"\n")
        chunk = line
        while chunk and not chunk.endswith(b"\n"):  # a line that is too long is read to its end
            chunk = file.readline(_CHUNK_BYTES)
            length += len(chunk)
        if not chunk:  # the file ends within this line, which may still grow
            return
        position += length
        is_used = not too_long and re.search(_HINT, line)
        yield (_parsed(line) if is_used else None), position


def first_record(file: BinaryIO) -> Any:
    """Return the first line, parsed, if it names the session (Codex, Gemini), else ``None``."""
    head = os.pread(file.fileno(), _HEAD_BYTES, 0)
    if not any(kind in head for kind in _SESSION_LINES):
        return None
    for record, _ in records(file, 0):
        return record
    return None


def marker_of(file: BinaryIO, offset: int) -> str:
    """Return a fingerprint of the bytes before an offset, "" if the file is shorter."""
    start = max(0, offset - _MARKER_BYTES)
    file.seek(start)
    before = file.read(offset - start)
    is_complete = len(before) == offset - start
    return sha256(before)[:_MARKER_CHARACTERS] if is_complete else ""


def _parsed(line: bytes) -> object:
    """Return the JSON value of a line, also if it is not quite valid JSON."""
    try:
        return msgspec.json.decode(line)
    except (ValueError, RecursionError):  # bytes that are no text, half characters, NaN
        return read_json(line.decode("utf-8", "replace"))
