"""Read a conversation's transcript incrementally, and collect what its notes need. Blocks.

Rules of this file
- Facts, sizes and counts are folds over the pieces of a transcript, so the result does not depend
  on how often it is read. A rewritten transcript is read from its start.
- Growth and calls are counted from the message that the notes cover. After a compaction behind it,
  growth is counted from the new size.
"""

from collections.abc import Iterable

from memd.conversation.dialogue import NewPieces
from memd.conversation.history import ContextMeter
from memd.conversation.pieces import BOUNDARY, TranscriptPiece
from memd.notes.facts import FindStatements, SessionFacts
from memd.notes.sections import NotesCursor
from memd.transcripts.stream import TranscriptStream


class SessionReader:
    """Reads one conversation; not thread-safe.

    ``cursor`` is that of the notes, ``None`` if there are none yet. With an empty ``path`` the
    conversation consists of the pieces given to ``add``.
    """

    def __init__(self, path: str, cursor: NotesCursor | None, find: FindStatements) -> None:
        self.path = path
        self.cursor = cursor
        self._find = find
        self._stream = TranscriptStream(path) if path else None
        self._start()

    def _start(self) -> None:
        """Reset all facts and counts to those of an empty conversation."""
        covers = self.cursor.covers if self.cursor else ""
        self.facts = SessionFacts(self._find, covers)
        self.news = NewPieces(covers)  # the messages behind the one that the notes cover
        self.meter = ContextMeter()
        # The size in tokens that growth is counted from, None without notes.
        self.growth_start = self.cursor.tokens if self.cursor and covers else None
        self.last_at: float | None = None  # the time of the last message, in seconds since 1970
        self._is_just_compacted = False  # whether nothing was said since the last compaction

    @property
    def sub_agent(self) -> bool:
        """Whether the transcript is a sub-agent's."""
        return self._stream is not None and self._stream.sub_agent

    @property
    def ends_at_boundary(self) -> bool:
        """Whether nothing was said since the last compaction."""
        return self._stream is not None and self._stream.last_event == BOUNDARY

    def read(self) -> None:
        """Read what was added to the transcript since the last call; read a rewritten one anew.

        Raises Refused.
        """
        is_complete = False
        while self._stream is not None and not is_complete:
            part = self._stream.more()
            if part.restarted:
                self._start()
            self.add(part.pieces)
            is_complete = part.complete
        if self.growth_start is not None:  # a rewritten or rewound conversation is smaller
            self.growth_start = min(self.growth_start, self.meter.tokens)

    def add(self, pieces: Iterable[TranscriptPiece]) -> None:
        """Add the next pieces of the conversation to facts, sizes and counts."""
        for piece in pieces:
            self.facts.add(piece)
            self.meter.add(piece)
            self.news.add(piece)
            self.last_at = piece.at or self.last_at
            if piece.event == BOUNDARY:
                self._is_just_compacted = True
            elif not piece.event:  # other events say nothing
                self._is_just_compacted = False
            if self.growth_start is not None and self._is_just_compacted:
                self.growth_start = self.meter.tokens  # the new, smaller size
            elif self.cursor and piece.id and piece.id == self.cursor.covers:
                self.growth_start = self.cursor.tokens

    def count_from_here(self, cursor: NotesCursor) -> None:
        """Count growth and calls from here on, after notes with this cursor were written."""
        self.cursor = cursor
        self.facts.covered(cursor.covers)
        self.news = NewPieces(cursor.covers)
        self.growth_start = self.meter.tokens
