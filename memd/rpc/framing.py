r"""Split bytes into frames: lines, or bodies behind ``Content-Length`` if the first byte says so.

Rules of this file
- White space before the first byte is skipped. ``{`` or ``[`` means one JSON text per line for the
  life of the connection (MCP stdio, ``nc -U``); ``C`` or ``c`` means ``Content-Length`` headers
  (LSP); anything else is answered with an error and ends the connection.
- A frame whose end cannot be found (too long, a bad header) is fatal: ``failure`` is set, and later
  bytes are ignored. The content of a frame is not checked here.
- Work is linear in the bytes that come: no byte is searched twice, and no more than one frame and
  one chunk are in memory. Frames are yielded one by one, so that a chunk with thousands of them
  does not block other connections.
- A last line counts without its newline. A frame cut off by the end is dropped: its sender is gone.
- Headers are read with any case and with or without ``\r``; others than the length are ignored.
"""

from collections.abc import Iterator
from enum import Enum

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.strict_json import NotJsonError
from memd.rpc.errors import message_too_large, out_of_memory

_WHITE = b" \t\r\n"
_LENGTH_DIGITS = 10  # a longer Content-Length is too large, and is not converted


class Framing(Enum):
    """How a peer marks where a frame ends."""

    UNKNOWN = "unknown"
    LINES = "lines"
    HEADERS = "headers"


class FrameReader:
    """Makes frames of the bytes of one connection. ``framing`` is known after the first byte."""

    def __init__(self) -> None:
        self.framing = Framing.UNKNOWN
        self.failure: MemdError | None = None
        self._buffer = bytearray()  # bytes that no frame has taken yet
        self._searched = 0  # bytes of the buffer that are known to hold no newline
        self._header_bytes = 0  # of the header block so far, without the line that has not ended
        self._body_length: int | None = None  # the Content-Length, once it was read
        self._in_body = False  # the header block has ended, and its body has not

    @property
    def pending(self) -> bool:
        """Whether a frame has begun and is not complete."""
        return self.failure is None and bool(self._buffer or self._header_bytes or self._in_body)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Return the frames that these bytes complete; look at ``failure`` after the last one."""
        try:
            if self.failure is None:
                self._buffer += data
        except MemoryError:
            self.failure = out_of_memory()
        return self._frames()

    def _frames(self) -> Iterator[bytes]:
        """Yield the complete frames in the buffer, up to the first failure."""
        while self.failure is None:
            try:
                frame = self._next_frame()
            except MemoryError:
                self.failure = out_of_memory()
                break
            if frame is None:
                break
            if frame:
                yield frame
        if self.failure is not None:  # the remaining bytes are not used
            self._buffer.clear()

    def end(self) -> list[bytes]:
        """Return the last line at the end of the peer's bytes, if it has no newline."""
        rest = bytes(self._buffer).strip(_WHITE)
        self._buffer.clear()
        self._in_body, self._header_bytes = False, 0
        return [rest] if self.framing is Framing.LINES and rest else []

    def _next_frame(self) -> bytes | None:
        """Return the next frame, b"" for a header or blank line, ``None`` without enough bytes."""
        if self.framing is Framing.UNKNOWN and not self._detect_framing():
            return None
        if self.framing is Framing.LINES:
            return self._take_line()
        return self._take_body() if self._in_body else self._take_header_line()

    def _skip_white_space(self) -> None:
        """Remove the white space at the start of the buffer."""
        if self._buffer[:1].isspace():
            del self._buffer[: len(self._buffer) - len(self._buffer.lstrip(_WHITE))]

    def _detect_framing(self) -> bool:
        """Set ``framing`` by the first byte, or ``failure``; return whether it is known."""
        self._skip_white_space()
        first = bytes(self._buffer[:1])
        if first in (b"{", b"["):
            self.framing = Framing.LINES
        elif first in (b"C", b"c"):
            self.framing = Framing.HEADERS
        elif first:
            self.failure = NotJsonError("a connection begins with {, [ or Content-Length")
        return self.framing is not Framing.UNKNOWN

    def _take(self, size: int) -> bytes:
        """Remove and return so many bytes from the beginning of the buffer."""
        with memoryview(self._buffer) as view:  # one copy instead of two
            taken = bytes(view[:size])
        del self._buffer[:size]
        self._searched = 0
        return taken

    def _find_newline(self) -> int:
        """Return the index of the next line feed, -1 for none; no byte is searched twice."""
        end = self._buffer.find(b"\n", self._searched)
        self._searched = len(self._buffer)
        return end

    def _take_line(self) -> bytes | None:
        """Take the next line without its white space, ``None`` while it is incomplete."""
        if self._searched == 0:
            self._skip_white_space()
        end = self._find_newline()
        size = end if end >= 0 else len(self._buffer)
        if size > limits.FRAME_BYTES:
            self.failure = message_too_large("a frame", limits.FRAME_BYTES, "bytes")
            return None
        if end < 0:
            return None
        return self._take(end + 1).strip(_WHITE)

    def _take_header_line(self) -> bytes | None:
        """Take one header line; return b"" for it, ``None`` while it is incomplete."""
        if self._header_bytes == 0 and self._searched == 0:
            self._skip_white_space()
        end = self._find_newline()
        line_size = end + 1 if end >= 0 else len(self._buffer)
        size = self._header_bytes + line_size
        if size > limits.HEADER_BYTES:
            self.failure = message_too_large("a header block", limits.HEADER_BYTES, "bytes")
            return None
        if end < 0:
            return None
        line = self._take(end + 1).strip(_WHITE)
        if line:
            self._header_bytes = size
            self.failure = self._read_field(line)
        elif self._body_length is not None:  # an empty line ends the header block
            self._in_body = True
        elif self._header_bytes:
            self.failure = NotJsonError("a header block has no Content-Length")
        return b""

    def _read_field(self, line: bytes) -> MemdError | None:
        """Store the length of a Content-Length line; return what is wrong with the line."""
        name, colon, value = line.partition(b":")
        if not colon:
            return NotJsonError("a header line has no colon")
        if name.strip().lower() != b"content-length":
            return None
        value = value.strip()
        if not value.isdigit():
            return NotJsonError("Content-Length is not a number")
        if self._body_length is not None:
            return NotJsonError("a header block has two Content-Length lines")
        if len(value) > _LENGTH_DIGITS or int(value) > limits.FRAME_BYTES:
            return message_too_large("a frame", limits.FRAME_BYTES, "bytes")
        self._body_length = int(value)
        return None

    def _take_body(self) -> bytes | None:
        """Take the body behind a header, ``None`` while it is incomplete."""
        length = self._body_length or 0
        if len(self._buffer) < length:
            return None
        self._in_body, self._body_length, self._header_bytes = False, None, 0
        # An empty body is a frame of its own: JSON would have at least one character.
        return self._take(length) or b" "


def encode(framing: Framing, body: bytes) -> bytes:
    """Return one frame in the peer's framing; while that is unknown, as a line."""
    if framing is Framing.HEADERS:
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    return body + b"\n"
