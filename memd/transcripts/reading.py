"""Reading transcripts from where the last reading ended.

Rules of this file
- A transcript may have hundreds of megabytes and single lines of many: no more than one line of
  ``LINE_BYTES`` and one part of about ``PART_BYTES`` is in memory, and longer lines are passed
  over unread.
- A line counts once it ends. A torn last line is left for the next reading.
- An offset is only trusted together with its marker, a fingerprint of the bytes before it. A file
  that was replaced, cut or written anew is read from its start.
- A first reading may be told to take the end of a file alone (``tail``): it begins where the user
  speaks, at most so many bytes before the end, and says how much it passed over.
- Only a regular file of this user is read; a FIFO or a device is refused without waiting on it.
Blocks: call it from a worker thread.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import msgspec

from memd.core.errors import MemdError
from memd.core.text import read_json, sha256
from memd.core.values import Message
from memd.core.yielding import yield_to_requests
from memd.transcripts.assembly import Assembly, from_messages
from memd.transcripts.lines import InvalidMessagesError, PieceReader
from memd.transcripts.tools import MEMORY_ROOT

__all__ = [
    "MEMORY_ROOT",
    "TAIL_BYTES",
    "InvalidMessagesError",
    "TranscriptPart",
    "TranscriptRefusedError",
    "from_messages",
    "read",
]

LINE_BYTES = 4 * 1024 * 1024  # a longer line is a copy of a request or an image, never a turn
PART_BYTES = 64 * 1024 * 1024
TAIL_BYTES = 8 * 1024 * 1024  # more than any model is shown of a conversation
_NO_NAME = "its path is not absolute or does not end in .jsonl"
_NO_TEXT = "its name is no text"
_NO_FILE = "it is not a regular file of yours"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK_BYTES = 1024 * 1024
_MARKER_BYTES = 256
_MARKER_CHARACTERS = 16
_LOOK_BACK_BYTES = 1024 * 1024  # an answer stands that close to its call, or goes without a name
_HEAD_BYTES = 256  # a line's kind stands there
# A line without one of these cannot be of a kind that counts; most need no parsing at all.
_HINT = re.compile(
    rb'"type": ?"(?:user|assistant|custom-title|ai-title|gemini|response_item|event_msg|'
    rb'session_meta|turn_context|compacted|token_usage_record)"|"compact_boundary"|'
    rb'"hook_additional_context"|"projectHash"'
)
_FIRST = (b'"session_meta"', b'"projectHash"')
_CALLS = (b'_use"', b'_call"')


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
    ``passed_over`` counts the bytes before what was read, when only the end was asked for.
    """

    messages: tuple[Message, ...]
    offset: int
    marker: str
    complete: bool = True
    restarted: bool = False
    problem: str = ""
    passed_over: int = 0


def read(
    path: str,
    offset: int = 0,
    marker: str = "",
    *,
    most: int = PART_BYTES,
    tail: int | None = None,
) -> TranscriptPart:
    """Return the messages behind an offset, in a part of at most about ``most`` bytes.

    With ``tail``, a reading from the start of a file that is longer begins at the first turn in
    its last so many bytes. Raises TranscriptRefusedError.
    """
    with opened(path) as file:
        start = offset if offset > 0 and marker_of(file, offset) == marker else 0
        size = os.fstat(file.fileno()).st_size
        if start == 0 and tail is not None and size > tail:
            part = _end(file, path, size - tail)
        else:
            part = _part(file, path, start, most)
        return replace(part, restarted=start != offset)


def check(path: str) -> None:
    """Refuse a path that is no transcript, before anybody waits for it.

    Raises TranscriptRefusedError. Blocks.
    """
    with opened(path):
        pass


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open a transcript that may be read; what fails meanwhile is a TranscriptRefusedError."""
    try:
        with open_transcript(path) as file:
            yield file
    except OSError as error:
        raise TranscriptRefusedError(path, error.strerror or type(error).__name__) from error


def open_transcript(path: str) -> BinaryIO:
    """Open a transcript that may be read. Raises TranscriptRefusedError and OSError."""
    if not path.startswith("/") or not path.endswith(".jsonl") or "\0" in path:
        raise TranscriptRefusedError(path, _NO_NAME)
    try:
        # A FIFO without a writer would hold a plain open for ever.
        descriptor = os.open(path, _READ)
    except UnicodeEncodeError:
        raise TranscriptRefusedError(path, _NO_TEXT) from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise TranscriptRefusedError(path, _NO_FILE) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)
        raise TranscriptRefusedError(path, _NO_FILE)
    return os.fdopen(descriptor, "rb", buffering=_CHUNK_BYTES)


def _part(file: BinaryIO, path: str, start: int, most: int) -> TranscriptPart:
    """Read messages from an offset until a part is full."""
    reader, assembly = PieceReader(), Assembly()
    _first_line(file, start, reader)
    seen, end, complete = 0, start, True
    for record, position in records(file, start):
        seen += 1
        end = position
        assembly.add(reader.pieces(record))
        if end - start >= most:
            complete = False
            break
    _look_back(file, start, assembly)
    messages = assembly.messages()
    fault = problem(path, seen, reader) if start == 0 and not messages else ""
    return TranscriptPart(messages, end, marker_of(file, end), complete, problem=fault)


def _end(file: BinaryIO, path: str, start: int) -> TranscriptPart:
    """Read from the first turn behind a place that may be in the middle of a line."""
    reader, assembly = PieceReader(), Assembly()
    _first_line(file, start, reader)
    end = begin = seen = 0
    for record, position in records(file, start - 1):
        if not end:  # what is left of a line, or the end of the one before
            end = begin = position
            continue
        seen += 1
        end = position
        assembly.add(reader.pieces(record))
        begin = begin if assembly.spoken else end
    messages = assembly.messages(from_a_turn=True)
    fault = "" if messages else problem(path, seen, reader)
    return TranscriptPart(messages, end, marker_of(file, end), problem=fault, passed_over=begin)


def _first_line(file: BinaryIO, start: int, reader: PieceReader) -> None:
    """Show the file's first line, where it says whose a file is, to who begins behind it."""
    head = os.pread(file.fileno(), _HEAD_BYTES, 0) if start else b""
    if any(mark in head for mark in _FIRST):
        file.seek(0)
        reader.pieces(_parsed(file.readline(LINE_BYTES)))


def _look_back(file: BinaryIO, start: int, assembly: Assembly) -> None:
    """Find the calls whose outputs were read and that stand before the part."""
    if not (start and assembly.unnamed):
        return
    first, reader = max(0, start - _LOOK_BACK_BYTES), PieceReader()
    file.seek(first)
    for line in file.read(start - first).splitlines():
        if any(hint in line for hint in _CALLS):
            assembly.recall(reader.pieces(_parsed(line)))


def problem(path: str, seen: int, reader: PieceReader) -> str:
    """Return what is wrong with a file of which so many lines said nothing, "" for nothing."""
    if seen and not reader.recognised:
        return f"{path}: none of {seen} lines has a shape that memd knows"
    if reader.strange:
        return f"{path}: none of {reader.strange} messages has a shape that memd knows"
    return ""


def records(file: BinaryIO, start: int) -> Iterator[tuple[Any, int]]:
    """Yield each whole line from an offset on, parsed, with the offset behind it.

    Of a line that cannot count, or is too long, the value is ``None``.
    """
    file.seek(start)
    position = start
    while True:
        yield_to_requests()
        line = file.readline(LINE_BYTES)
        length, long = len(line), not line.endswith(b"\n")
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(_CHUNK_BYTES)
            length += len(rest)
        if not rest:
            return
        position += length
        counts = not long and _HINT.search(line)
        yield (_parsed(line) if counts else None), position


def _parsed(line: bytes) -> object:
    try:
        return msgspec.json.decode(line)
    except (ValueError, RecursionError):  # bytes that are no text, half characters, NaN
        return read_json(line.decode("utf-8", "replace"))


def marker_of(file: BinaryIO, offset: int) -> str:
    """Return a fingerprint of what stands before an offset, "" when the file does not reach it."""
    start = max(0, offset - _MARKER_BYTES)
    file.seek(start)
    before = file.read(offset - start)
    return sha256(before)[:_MARKER_CHARACTERS] if len(before) == offset - start else ""
