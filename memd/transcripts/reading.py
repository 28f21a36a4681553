"""Read the messages of a transcript from where the last reading ended.

Rules of this file
- The blocks of one reply are one message; the outputs of tools stay apart.
- Output of memd's own tools is left out, and a failed tool call counts as writing nothing.
- The text of other agents' messages, wherever it was read, is a message of origin ``agent``.
- A first reading may be limited to the end of a file (``tail``): it begins with the user's first
  message in the last so many bytes.
Blocks: call it from a worker thread.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from memd.base.errors import Invalid
from memd.base.values import Message
from memd.conversation.history import floor
from memd.conversation.pieces import AGENT, USER, RecordedCall, TranscriptPiece
from memd.transcripts import tools
from memd.transcripts.calls import recent_calls as recent_calls
from memd.transcripts.lines import PieceReader, client_message, message_pieces
from memd.transcripts.lines import _invalid_messages as _invalid_messages
from memd.transcripts.opening import _transcript_refused as _transcript_refused
from memd.transcripts.opening import marker_of, opened, records
from memd.transcripts.stream import TranscriptStream
from memd.transcripts.tools import MEMORY_ROOT as MEMORY_ROOT

PART_BYTES = 64 * 1024 * 1024  # of one reading, about
TAIL_BYTES = 8 * 1024 * 1024  # more than is ever sent to a model
_LOOK_BACK_BYTES = 1024 * 1024  # a tool's name is searched only this far before its output


class TranscriptPart(Struct, frozen=True):
    """The result of one reading."""

    messages: tuple[Message, ...]
    offset: int  # where the next reading goes on
    marker: str  # the fingerprint of the bytes before that offset
    complete: bool = True  # whether nothing more can be read now
    restarted: bool = False  # whether the earlier offset did not fit this file
    problem: str = ""  # a sentence if there were lines and none had a known shape


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
    its last so many bytes. Raises Refused.
    """
    with opened(path) as file:
        is_continued = offset > 0 and marker_of(file, offset) == marker
        start = offset if is_continued else 0
        size = os.fstat(file.fileno()).st_size
        only_tail = start == 0 and tail is not None and size > tail
        if only_tail:  # ``records`` first yields the rest of a line; begin behind it
            start = next(records(file, size - (tail or 0) - 1), (None, 0))[1]
        stream = TranscriptStream(path, start, marker_of(file, start))
    if only_tail and not start:  # no line ends in the tail
        return TranscriptPart((), 0, "", restarted=offset > 0)
    part = stream.more(most=most)
    user_words = (n for n, piece in enumerate(part.pieces) if piece.origin == USER and piece.text)
    first = next(user_words, 0) if only_tail else 0
    assembly = Assembly()
    assembly.recall(part.pieces[:first])
    assembly.add(part.pieces[first:])
    if start and assembly.unnamed:
        assembly.recall(_before(path, start))
    return TranscriptPart(
        assembly.messages(),
        stream.offset,
        stream.marker,
        complete=part.complete,
        restarted=part.restarted or (offset > 0 and not is_continued),
        problem="" if is_continued else part.problem,
    )


def client_messages(path: str) -> list[dict[str, Any]]:
    """Return the messages of a transcript as its client sends them, each with its ``uuid``.

    Only Claude Code records them so. Each message before the last compaction is an empty dict.
    Raises Refused. Blocks.
    """
    result: list[dict[str, Any]] = []
    with opened(path) as file:
        for record, _ in records(file, 0):
            message = client_message(record)
            if message is None:
                continue
            if floor([message]):  # it is a boundary
                result = [{}] * len(result)
            result.append(message)
    return result


def check(path: str) -> None:
    """Check that a path is a readable transcript. Raises Refused. Blocks."""
    with opened(path):
        pass


def check_source(transcript_path: str | None, messages: object) -> None:
    """Check that a conversation is given as one of a transcript and messages. Raises Invalid."""
    if (transcript_path is None) == (messages is None):  # both or neither
        raise Invalid(
            "a conversation is given as either transcript_path or messages",
            hint="give transcript_path (absolute, *.jsonl) or messages, not both",
        )


def from_messages(messages: Any) -> tuple[Message, ...]:
    """Return the messages of a Messages-API list. Raises Invalid."""
    assembly = Assembly()
    assembly.add(message_pieces(messages))
    return assembly.messages()


def _before(path: str, end: int) -> Iterator[TranscriptPiece]:
    """Yield the pieces of the megabyte before an offset, whose calls later outputs answer."""
    reader, start = PieceReader(), max(0, end - _LOOK_BACK_BYTES)
    with opened(path) as file:
        for record, _ in records(file, start, end - start):
            yield from reader.pieces(record)


class _GrowingMessage(Struct):
    """A message that may still grow, as the next line may have its next block."""

    first: TranscriptPiece
    id: str  # of its last piece
    texts: list[str] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)


class Assembly:
    """Joins pieces to messages; call ``messages`` when all pieces were added."""

    def __init__(self) -> None:
        self._growing: list[_GrowingMessage] = []  # all messages so far
        self._failed: set[str] = set()  # ids of calls
        self._names: dict[str, str] = {}  # the tool of each call, by the call's id
        self._reading: set[str] = set()  # ids of calls that read messages of other agents
        self.unnamed: set[str] = set()  # ids of calls whose output came without the call

    def recall(self, pieces: Iterable[TranscriptPiece]) -> None:
        """Note the names and failures of tool calls without adding messages."""
        for piece in pieces:
            if piece.call is not None and piece.call.id:
                self._names[piece.call.id] = piece.call.name
                if tools.brings_messages(piece.call.name, piece.call.given):
                    self._reading.add(piece.call.id)
                self.unnamed.discard(piece.call.id)
            if piece.failed:
                self._failed.add(piece.failed)

    def add(self, pieces: Iterable[TranscriptPiece]) -> None:
        """Add each piece to the message that it belongs to, or begin a new message with it."""
        for piece in pieces:
            if piece.agents:
                words = TranscriptPiece(piece.role, piece.agents, AGENT, piece.id, at=piece.at)
                self._growing.append(_GrowingMessage(words, piece.id, [piece.agents]))
            if not piece.event:
                self._add(piece)

    def messages(self) -> tuple[Message, ...]:
        """Return the messages in order; a tool call that failed wrote nothing."""
        return tuple(self._closed())

    def _add(self, piece: TranscriptPiece) -> None:
        """Add a piece to the last message if it is another block of it, else to a new message."""
        self.recall((piece,))
        if piece.answers and piece.answers not in self._names:
            self.unnamed.add(piece.answers)
        no_agents = (item for item in reversed(self._growing) if item.first.origin != AGENT)
        message = next(no_agents, None)
        if message is None or not _is_same_message(message.first, piece):
            message = _GrowingMessage(piece, piece.id)
            self._growing.append(message)
        message.id = piece.id
        message.texts.append(piece.text)
        if piece.call is not None:
            message.calls.append(piece.call)

    def _closed(self) -> Iterator[Message]:
        """Yield the messages that have a text, a call or a write, or come from outside."""
        for item in self._growing:
            first = item.first
            tool = first.tool or self._names.get(first.answers, "")
            origin = first.origin or tools.origin(tool)
            text = "\n\n".join(text for text in item.texts if text)
            if first.answers in self._reading or tools.brings_messages(tool, {}):
                origin = AGENT
            elif first.answers and tools.is_own(tool):  # memories are not learnt from memories
                text = ""
            # A call without an id cannot be known to have failed.
            succeeded = [call for call in item.calls if not call.id or call.id not in self._failed]
            writes = tuple(path for call in succeeded for path in call.writes)
            calls = tuple(call.short for call in item.calls if call.short)
            is_outside = origin in tools.OTHERS
            if text or calls or is_outside or any(call.writes for call in item.calls):
                yield Message(item.id, first.role, text, origin, first.at, writes, calls, tool)


def _is_same_message(first: TranscriptPiece, piece: TranscriptPiece) -> bool:
    """Return whether a piece is another block of the message that begins with ``first``."""
    # Pieces without a key stay apart, and so do outputs, which have no origin.
    has_message = bool(piece.key) and bool(piece.origin)
    return has_message and (first.key, first.origin) == (piece.key, piece.origin)
