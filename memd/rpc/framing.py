r"""Split bytes into frames: lines, bodies behind ``Content-Length``, or POST requests of HTTP.

Rules of this file
- White space before the first byte is skipped. ``{`` or ``[`` means one JSON text per line for the
  life of the connection (MCP stdio, ``nc -U``); ``C`` or ``c`` means ``Content-Length`` headers
  (LSP); ``P`` means HTTP, whose every request is a POST with a ``Content-Length``, of any path;
  anything else is answered with an error and ends the connection.
- HTTP is for programs that can send nothing else to a socket (a mod of Claude Code, ``curl``). Each
  JSON text comes back as the body of a 200; that a connection has one request at a time and no
  subscription is the client's part.
- A frame whose end cannot be found (too long, a bad header) is fatal: ``failure`` is set, and later
  bytes are ignored. The content of a frame is not checked here.
- Work is linear in the bytes that come: no byte is searched twice, and no more than one frame and
  one chunk are in memory. Frames are taken one by one, so that a chunk with thousands of them does
  not block other connections.
- A last line counts without its newline. A frame cut off by the end is dropped: its sender is gone.
- Headers are read with any case and with or without ``\r``; others than the length are ignored.
"""

from enum import Enum

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.strict_json import NotJsonError
from memd.rpc.errors import message_too_large, out_of_memory

_WHITE = b" \t\r\n"
_HTTP_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_LENGTH_DIGITS = 10  # a longer Content-Length is too large, and is not converted


class Framing(Enum):
    """How a peer marks where a frame ends."""

    UNKNOWN = "unknown"
    LINES = "lines"
    HEADERS = "headers"
    HTTP = "http"


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
        """Whether bytes are left that no frame has taken."""
        return self.failure is None and bool(self._buffer or self._header_bytes or self._in_body)

    def feed(self, data: bytes) -> None:
        """Add bytes of the peer."""
        try:
            if self.failure is None:
                self._buffer += data
        except MemoryError:
            self.failure = out_of_memory()

    def next_frame(self) -> bytes | None:
        """Return the next whole frame, ``None`` without enough bytes or where ``failure`` is set.

        An empty body is b" ": JSON would have at least one character.
        """
        frame: bytes | None = b""
        while frame == b"" and self.failure is None:  # blank lines and headers are b""
            try:
                if self.framing is Framing.LINES and self._buffer[:1] == b"{":
                    frame = self._take_line("a frame", limits.FRAME_BYTES)
                else:
                    frame = self._take_part()
            except MemoryError:
                self.failure = out_of_memory()
        if self.failure is not None:
            self._buffer.clear()  # the remaining bytes are not used
            return None
        return frame

    def end(self) -> bytes | None:
        """Return the last line at the end of the peer's bytes, if it has no newline."""
        rest = bytes(self._buffer).strip(_WHITE)
        self._buffer.clear()
        self._in_body, self._header_bytes = False, 0
        return rest if self.framing is Framing.LINES and rest else None

    def _take_part(self) -> bytes | None:
        """Return a frame, b"" for a header or blank line, ``None`` without enough bytes."""
        if self._in_body:
            return self._take_body()
        if not (self._searched or self._header_bytes) and self._buffer[:1].isspace():
            del self._buffer[: len(self._buffer) - len(self._buffer.lstrip(_WHITE))]
        if self.framing is Framing.LINES:
            return self._take_line("a frame", limits.FRAME_BYTES)
        return self._detect_framing() if self.framing is Framing.UNKNOWN else self._take_header()

    def _detect_framing(self) -> bytes | None:
        """Set ``framing`` or ``failure`` by the first byte, if there is one."""
        if not self._buffer:
            return None
        first = bytes(self._buffer[:1])
        if first in b"{[":
            self.framing = Framing.LINES
        elif first in b"Cc":
            self.framing = Framing.HEADERS
        elif first == b"P":
            self.framing = Framing.HTTP
        else:
            self.failure = NotJsonError("a connection begins with {, [, Content-Length or POST")
        return b""

    def _take(self, size: int) -> bytes:
        """Remove and return so many bytes from the beginning of the buffer."""
        with memoryview(self._buffer) as view:  # one copy instead of two
            taken = bytes(view[:size])
        del self._buffer[:size]
        self._searched = 0
        return taken

    def _take_line(self, what: str, limit: int) -> bytes | None:
        """Take the next line without its white space, ``None`` while it is incomplete.

        A line of more than ``limit`` bytes, those of earlier header lines included, is a failure.
        """
        end = self._buffer.find(b"\n", self._searched)
        self._searched = len(self._buffer)
        if self._header_bytes + (end if end >= 0 else self._searched) > limit:
            self.failure = message_too_large(what, limit, "bytes")
            return None
        return None if end < 0 else self._take(end + 1).strip(_WHITE)

    def _take_header(self) -> bytes | None:
        """Take one header line, or HTTP's first; return b"" for it, ``None`` while incomplete."""
        before = len(self._buffer)
        line = self._take_line("a header block", limits.HEADER_BYTES)
        if line is None:
            return None
        if line:
            if self._header_bytes or self.framing is not Framing.HTTP:
                self.failure = self._read_field(line)
            elif not line.startswith(b"POST "):
                self.failure = NotJsonError("a request over HTTP is a POST")
            self._header_bytes += before - len(self._buffer)
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
        return self._take(length) or b" "


def encode(framing: Framing, body: bytes) -> bytes:
    """Return one frame in the peer's framing; while that is unknown, as a line."""
    if framing is Framing.HEADERS:
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    if framing is Framing.HTTP:
        return _HTTP_HEAD % len(body) + body
    return body + b"\n"
