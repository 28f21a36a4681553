"""Read the new pieces of a transcript as it grows.

Rules of this file
- However a file grows between the readings, together they return what one reading of it all would:
  the reader keeps what it learnt from earlier lines.
- An offset counts only together with its marker, a fingerprint of the bytes before it. A file
  that was replaced, shortened or rewritten is read from its start.
- The rules of ``opening`` on lines and refusals hold here.
Blocks, and belongs to one thread at a time.
"""

from msgspec import Struct

from memd.conversation.pieces import BOUNDARY, BROUGHT, TranscriptPiece
from memd.transcripts.lines import PieceReader
from memd.transcripts.lines import message_pieces as message_pieces
from memd.transcripts.opening import _transcript_refused as _transcript_refused
from memd.transcripts.opening import first_record, marker_of, opened, records

PART_BYTES = 8 * 1024 * 1024  # of one reading, about


class StreamPart(Struct, frozen=True):
    """The result of one reading."""

    pieces: tuple[TranscriptPiece, ...]
    complete: bool = True  # whether nothing more can be read now
    restarted: bool = False  # whether the file is another one than before
    problem: str = ""  # a sentence if no line of the first reading had a known shape


class TranscriptStream:
    """A transcript that is read again as it grows."""

    def __init__(self, path: str, offset: int = 0, marker: str = "") -> None:
        self._path = path
        self._begin(offset, marker)

    def _begin(self, offset: int, marker: str) -> None:
        """Set the offset of the next reading and forget what earlier lines said."""
        self._reader = PieceReader()
        self._begun = False  # whether a part of this file was read
        self.offset, self.marker = offset, marker  # where the next reading goes on
        # ``boundary`` after a compaction until there is a new message or context of memd's hook.
        self.last_event = ""

    @property
    def sub_agent(self) -> bool:
        """Return whether the file is a sub-agent's, which gives no pieces."""
        return self._reader.sub_agent

    def more(self, *, most: int = PART_BYTES) -> StreamPart:
        """Return the pieces added since the last call, from about ``most`` bytes at most.

        Raises Refused.
        """
        with opened(self._path) as file:
            restarted = self.offset > 0 and marker_of(file, self.offset) != self.marker
            if restarted:
                self._begin(0, "")
            if self.offset and not self._begun:
                self._reader.pieces(first_record(file))  # it may say that the file is a sub-agent's
            start, line_count = self.offset, 0
            pieces: list[TranscriptPiece] = []
            for record, self.offset in records(file, start, most):
                line_count += 1
                pieces += self._reader.pieces(record)
            self.marker = marker_of(file, self.offset)
        events = [piece.event for piece in pieces if _has_content(piece)]
        if events:
            self.last_event = BOUNDARY if events[-1] == BOUNDARY else ""
        problem = ""
        if not self._begun and not events:
            problem = self._reader.problem(self._path, line_count)
        self._begun = True
        complete = self.offset - start < most
        return StreamPart(tuple(pieces), complete, restarted, problem)


def _has_content(piece: TranscriptPiece) -> bool:
    """Return whether a piece has a text, a call, an output, a boundary or a hook's context."""
    if piece.event:
        return piece.event in (BOUNDARY, BROUGHT)
    return bool(piece.text or piece.call or piece.answers)
