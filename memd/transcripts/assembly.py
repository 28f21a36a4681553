"""From pieces to messages, as extraction reads them. Pure.

Rules of this file
- The blocks of one reply are one message; the outputs of tools stay apart.
- What memd's own tools answered is left out, and a tool call that failed wrote nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from memd.conversation.pieces import USER, RecordedCall, TranscriptPiece
from memd.core.values import Message
from memd.transcripts import tools as known
from memd.transcripts.lines import message_pieces


@dataclass(slots=True)
class _GrowingMessage:
    """A message that may still grow: the next line can hold its next block."""

    first: TranscriptPiece
    id: str
    texts: list[str] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)


class Assembly:
    """Puts messages together from pieces; ask ``messages`` when all were added.

    ``unnamed`` are the ids of calls whose output came without the call.
    """

    def __init__(self) -> None:
        self._open: list[_GrowingMessage] = []
        self._failed: set[str] = set()
        self._names: dict[str, str] = {}
        self._first = -1  # the place of the user's first words
        self.unnamed: set[str] = set()

    @property
    def spoken(self) -> bool:
        """Whether the user has said something."""
        return self._first >= 0

    def recall(self, pieces: Iterable[TranscriptPiece]) -> None:
        """Take from pieces that were read before only what their tool calls are called."""
        for piece in pieces:
            if piece.call is not None and piece.call.id:
                self._names[piece.call.id] = piece.call.name
                self.unnamed.discard(piece.call.id)
            if piece.failed:
                self._failed.add(piece.failed)

    def add(self, pieces: Iterable[TranscriptPiece]) -> None:
        """Add each piece to the message that it belongs to, or begin one with it."""
        for piece in pieces:
            if not piece.event:
                self._add(piece)

    def messages(self, *, from_a_turn: bool = False) -> tuple[Message, ...]:
        """Return what was said, in order; a tool call that failed wrote nothing.

        ``from_a_turn`` leaves out what stands before the user's first words, if there are any.
        """
        return tuple(self._closed(max(0, self._first) if from_a_turn else 0))

    def _add(self, piece: TranscriptPiece) -> None:
        self.recall((piece,))
        if piece.answers and piece.answers not in self._names:
            self.unnamed.add(piece.answers)
        last = self._open[-1] if self._open else None
        # The blocks of one line belong together when they are one speaker's; outputs stay apart.
        same = (
            last is not None
            and bool(piece.key)
            and (last.first.key, last.first.origin) == (piece.key, piece.origin)
            and bool(piece.origin)
        )
        if last is None or not same:
            last = _GrowingMessage(piece, piece.id)
            self._open.append(last)
        if piece.origin == USER and piece.text and not self.spoken:
            self._first = len(self._open) - 1
        last.id = piece.id
        last.texts.append(piece.text)
        if piece.call is not None:
            last.calls.append(piece.call)

    def _closed(self, start: int) -> Iterator[Message]:
        """Yield the messages from a place on, without writes of failed calls."""
        for item in self._open[start:]:
            first = item.first
            tool = first.tool or self._names.get(first.answers, "")
            origin = first.origin or known.origin(tool)
            text = "\n\n".join(text for text in item.texts if text)
            if first.answers and known.is_own(tool):
                text = ""
            retained = [call for call in item.calls if call.id not in self._failed or not call.id]
            writes = tuple(path for call in retained for path in call.writes)
            calls = tuple(call.short for call in item.calls if call.short)
            outside = origin in (known.WEB, known.MCP)
            if text or calls or outside or any(call.writes for call in item.calls):
                yield Message(item.id, first.role, text, origin, first.at, writes, calls, tool)


def from_messages(messages: Any) -> tuple[Message, ...]:
    """Return the messages of a Messages-API list. Raises InvalidMessagesError."""
    assembly = Assembly()
    assembly.add(message_pieces(messages))
    return assembly.messages()
