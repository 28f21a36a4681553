"""A transcript read piece by piece, each time what is new.

Rules of this file
- However a file grows between the readings, they find together what one reading finds: what
  earlier lines tell of later ones stays with the stream.
- A place is only trusted together with its marker, a fingerprint of the bytes before it. A file
  that was replaced, cut or written anew is read from its start.
- What ``opening`` says of lines and refusals holds here.
Blocks, and belongs to one thread at a time.
"""

from dataclasses import dataclass

from memd.conversation.pieces import BOUNDARY, BROUGHT, TranscriptPiece
from memd.transcripts.lines import PieceReader
from memd.transcripts.lines import message_pieces as message_pieces
from memd.transcripts.opening import TranscriptRefusedError as TranscriptRefusedError
from memd.transcripts.opening import first_record, marker_of, opened, records

PART_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StreamPart:
    """What one reading found.

    ``complete`` is false when there is more to read at once. ``restarted`` says that the file is
    another than before and these pieces its first. ``problem`` is a sentence when the first lines
    had no shape that memd knows.
    """

    pieces: tuple[TranscriptPiece, ...]
    complete: bool = True
    restarted: bool = False
    problem: str = ""


class TranscriptStream:
    """The pieces of one transcript, as it grows.

    ``last_event`` is ``boundary`` while nothing was said, and by memd nothing brought, after a
    compaction. ``offset`` and ``marker`` are where the next reading goes on, at first where an
    earlier one ended.
    """

    def __init__(self, path: str, offset: int = 0, marker: str = "") -> None:
        self._path = path
        self._begin(offset, marker)

    def _begin(self, offset: int, marker: str) -> None:
        self._reader = PieceReader()
        self._begun = False
        self.offset, self.marker = offset, marker
        self.last_event = ""

    @property
    def sub_agent(self) -> bool:
        """Whether the file is a sub-agent's, of which nothing counts."""
        return self._reader.sub_agent

    def more(self, *, most: int = PART_BYTES) -> StreamPart:
        """Return what is new, in a part of at most about ``most`` bytes.

        Raises TranscriptRefusedError.
        """
        with opened(self._path) as file:
            restarted = self.offset > 0 and marker_of(file, self.offset) != self.marker
            if restarted:
                self._begin(0, "")
            if self.offset and not self._begun:
                self._reader.pieces(first_record(file))
            start, lines = self.offset, 0
            pieces: list[TranscriptPiece] = []
            for record, self.offset in records(file, start, most):
                lines += 1
                pieces += self._reader.pieces(record)
            self.marker = marker_of(file, self.offset)
        said = [piece.event for piece in pieces if _says(piece)]
        if said:
            self.last_event = BOUNDARY if said[-1] == BOUNDARY else ""
        problem = "" if self._begun or said else self._reader.problem(self._path, lines)
        self._begun = True
        return StreamPart(tuple(pieces), self.offset - start < most, restarted, problem)


def _says(piece: TranscriptPiece) -> bool:
    """Return whether a piece is more than a name or a size."""
    if piece.event:
        return piece.event in (BOUNDARY, BROUGHT)
    return bool(piece.text or piece.call or piece.answers)
