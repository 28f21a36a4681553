"""A transcript read piece by piece, each time what is new.

Rules of this file
- However a file grows between the readings, they find together what one reading finds: a line
  counts once it ends, and what earlier lines tell of later ones stays with the stream.
- What was read is only trusted together with its marker, a fingerprint of the bytes before it. A
  file that was replaced, cut or written anew is read from its start.
- What ``reading`` says of parts, long lines and refusals holds here.
Blocks, and belongs to one thread at a time.
"""

from dataclasses import dataclass

from memd.conversation.pieces import BOUNDARY, BROUGHT, TranscriptPiece
from memd.transcripts.lines import PieceReader, message_pieces
from memd.transcripts.reading import TranscriptRefusedError, marker_of, opened, problem, records

__all__ = ["StreamPart", "TranscriptRefusedError", "TranscriptStream", "message_pieces"]

PART_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StreamPart:
    """What one reading found.

    ``complete`` is false when there is more to read at once. ``restarted`` says that the file is
    another than before and these pieces its first. ``problem`` is a sentence when there were lines
    and none had a shape that memd knows.
    """

    pieces: tuple[TranscriptPiece, ...]
    complete: bool = True
    restarted: bool = False
    problem: str = ""


class TranscriptStream:
    """The pieces of one transcript, as it grows.

    ``last_event`` is ``boundary`` while nothing was said, and by memd nothing brought, after a
    compaction.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._begin()

    def _begin(self) -> None:
        self._reader = PieceReader()
        self._offset, self._marker = 0, ""
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
            restarted = self._offset > 0 and marker_of(file, self._offset) != self._marker
            if restarted:
                self._begin()
            start, seen, complete = self._offset, 0, True
            pieces: list[TranscriptPiece] = []
            for record, end in records(file, start):
                seen += 1
                self._offset = end
                pieces += self._reader.pieces(record)
                if end - start >= most:
                    complete = False
                    break
            self._marker = marker_of(file, self._offset)
        said = False
        for piece in pieces:
            if piece.event == BOUNDARY:
                self.last_event = BOUNDARY
            elif piece.event == BROUGHT:
                self.last_event = ""
            elif not piece.event and (piece.text or piece.call or piece.answers):
                self.last_event, said = "", True
        fault = problem(self._path, seen, self._reader) if not (start or said) else ""
        return StreamPart(tuple(pieces), complete, restarted, fault)
