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
    conversation consists of the pieces given to ``add``. ``since`` is the size in tokens that
    growth is counted from, ``None`` without notes.
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
        self.news = NewPieces(covers)
        self.meter = ContextMeter()
        self.since = self.cursor.tokens if self.cursor and covers else None
        self.at: float | None = None
        self._compacted = False  # whether nothing was said since the last compaction

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

        Raises TranscriptRefusedError.
        """
        complete = self._stream is None
        while self._stream is not None and not complete:
            part = self._stream.more()
            if part.restarted:
                self._start()
            self.add(part.pieces)
            complete = part.complete
        if self.since is not None:  # a rewritten or rewound conversation is smaller
            self.since = min(self.since, self.meter.tokens)

    def add(self, pieces: Iterable[TranscriptPiece]) -> None:
        """Add the next pieces of the conversation to facts, sizes and counts."""
        for piece in pieces:
            self.facts.add(piece)
            self.meter.add(piece)
            self.news.add(piece)
            self.at = piece.at or self.at
            self._compacted = piece.event == BOUNDARY or (self._compacted and bool(piece.event))
            if self.since is not None and self._compacted:  # growth starts at the new, smaller size
                self.since = self.meter.tokens
            elif self.cursor and piece.id and piece.id == self.cursor.covers:
                self.since = self.cursor.tokens

    def count_from_here(self, cursor: NotesCursor) -> None:
        """Count growth and calls from here on, after notes with this cursor were written."""
        self.cursor = cursor
        self.facts.covered(cursor.covers)
        self.news = NewPieces(cursor.covers)
        self.since = self.meter.tokens
