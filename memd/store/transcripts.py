"""Reading transcripts from where the last reading ended.

Rules of this file
- A transcript may have hundreds of megabytes and single lines of many: no more than one line of
  ``LINE_BYTES`` and one part of about ``PART_BYTES`` is in memory, and longer lines are passed
  over unread.
- A line counts once it ends. A torn last line is left for the next reading.
- An offset is only trusted together with its marker, a fingerprint of the bytes before it. A file
  that was replaced, cut or written anew is read from its start.
- Only a regular file of this user is read; a FIFO or a device is refused without waiting on it.
Blocks: call it from a worker thread.
"""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from memd.core.errors import MemdError
from memd.core.text import sha256
from memd.core.values import Message
from memd.store.transcript_lines import MEMORY_ROOT, Assembly, InvalidMessagesError, from_messages

__all__ = [
    "MEMORY_ROOT",
    "InvalidMessagesError",
    "TranscriptPart",
    "TranscriptRefusedError",
    "from_messages",
    "read",
]

LINE_BYTES = 4 * 1024 * 1024  # a longer line is a copy of a request or an image, never a turn
PART_BYTES = 64 * 1024 * 1024
_NO_NAME = "its path is not absolute or does not end in .jsonl"
_NO_TEXT = "its name is no text"
_NO_FILE = "it is not a regular file of yours"
_CHUNK_BYTES = 1024 * 1024
_MARKER_BYTES = 256
_MARKER_CHARACTERS = 16
# A line without one of these cannot be of a kind that counts; most need no parsing at all.
_HINTS = (b'"user"', b'"assistant"', b'"compact_boundary"')


class TranscriptRefusedError(MemdError):
    """A transcript that is not a readable regular file of this user with a proper name."""

    code = 1006
    kind = "transcript_refused"
    hint = "give the absolute path of your own *.jsonl file"
    exit_status = 65

    def __init__(self, path: str, why: str) -> None:
        shown = path.encode("unicode_escape").decode("ascii")
        super().__init__(f"the transcript {shown} is not read: {why}", path=shown, why=why)


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """What one reading found.

    ``offset`` and ``marker`` are where the next one goes on; ``complete`` is false when there is
    more to read at once. ``restarted`` says that the earlier offset did not fit this file.
    ``problem`` is a sentence when there were lines and none had a shape that memd knows.
    """

    messages: tuple[Message, ...]
    offset: int
    marker: str
    complete: bool = True
    restarted: bool = False
    problem: str = ""


def read(path: str, offset: int = 0, marker: str = "", *, most: int = PART_BYTES) -> TranscriptPart:
    """Return the messages behind an offset, in a part of at most about ``most`` bytes.

    Raises TranscriptRefusedError.
    """
    try:
        with _open(path) as file:
            return _part(file, path, offset, marker, most)
    except OSError as error:
        raise TranscriptRefusedError(path, error.strerror or type(error).__name__) from error


def check(path: str) -> None:
    """Refuse a path that is no transcript, before anybody waits for it.

    Raises TranscriptRefusedError. Blocks.
    """
    try:
        _open(path).close()
    except OSError as error:
        raise TranscriptRefusedError(path, error.strerror or type(error).__name__) from error


def _open(path: str) -> BinaryIO:
    if not path.startswith("/") or not path.endswith(".jsonl") or "\0" in path:
        raise TranscriptRefusedError(path, _NO_NAME)
    try:
        # A FIFO without a writer would hold a plain open for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except UnicodeEncodeError:
        raise TranscriptRefusedError(path, _NO_TEXT) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)
        raise TranscriptRefusedError(path, _NO_FILE)
    return os.fdopen(descriptor, "rb", buffering=_CHUNK_BYTES)


def _part(file: BinaryIO, path: str, offset: int, marker: str, most: int) -> TranscriptPart:
    start = offset if offset > 0 and _marker(file, offset) == marker else 0
    file.seek(start)
    assembly = Assembly()
    seen, end, complete = 0, start, True
    for line, position in _lines(file, start):
        seen += 1
        end = position
        if any(hint in line for hint in _HINTS):
            assembly.add_line(_parsed(line))
        if end - start >= most:
            complete = False
            break
    unknown = seen > 0 and start == 0 and assembly.recognised == 0
    return TranscriptPart(
        messages=assembly.messages(),
        offset=end,
        marker=_marker(file, end),
        complete=complete,
        restarted=start != offset,
        problem=f"{path}: none of {seen} lines has a shape that memd knows" if unknown else "",
    )


def _lines(file: BinaryIO, start: int) -> Iterator[tuple[bytes, int]]:
    """Yield each whole line, b"" for one that is too long, with the offset behind it."""
    position = start
    while True:
        line = file.readline(LINE_BYTES)
        length, long = len(line), not line.endswith(b"\n")
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(_CHUNK_BYTES)
            length += len(rest)
        if not rest:
            return
        position += length
        yield (b"" if long else line), position


def _parsed(line: bytes) -> object:
    try:
        value: object = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value


def _marker(file: BinaryIO, offset: int) -> str:
    """Return a fingerprint of what stands before an offset, "" when the file does not reach it."""
    start = max(0, offset - _MARKER_BYTES)
    file.seek(start)
    before = file.read(offset - start)
    return sha256(before)[:_MARKER_CHARACTERS] if len(before) == offset - start else ""
