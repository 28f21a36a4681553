"""Taking in what is new in a conversation, and keeping what a model has read of it before.

Blocks: call it from a worker thread. One extraction of a directory runs at a time, so nothing here
is used by two threads for one conversation.

Rules of this file
- What was read stays in memory in the form in which a model reads it, for a bounded number of
  conversations: the next turn costs only its new bytes. After a restart it is read once more, from
  the end of the transcript.
- Of a conversation that is read for the first time the end alone is taken (``TAIL_BYTES``).
- For the rules of the fixed extractor only the person's words and what the assistant wrote stay.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from memd.core.values import CursorMove, Message
from memd.extract import requests
from memd.extract.dialogue import Dialogue, extended
from memd.extract.requests import ExtractRequest, Unread
from memd.store import transcripts

_CONVERSATIONS = 16
_OUTSIDE = ("web", "mcp")
_VOUCHED = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Heard:
    """What is new, and the conversation with it.

    ``pieces`` is how many of the dialogue's last pieces are new, ``before`` how many there were at
    the last time. ``output`` and ``outside`` say that what is new holds output of tools, or of the
    web and of other servers' tools.
    """

    unread: Unread
    dialogue: Dialogue = field(default_factory=Dialogue)
    pieces: int = 0
    before: int = 0
    output: bool = False
    outside: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    """A conversation up to a cursor, and what its last request began with."""

    cursor: CursorMove
    dialogue: Dialogue
    prefix: Mapping[str, str] = field(default_factory=dict)


class Listener:
    """The conversations that were read last."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()

    def hear(
        self, directory: str, request: ExtractRequest, cursor: CursorMove | None, *, whole: bool
    ) -> Heard:
        """Return what is new since a cursor; with ``whole`` the conversation that it belongs to.

        Raises TranscriptRefusedError and InvalidMessagesError.
        """
        if request.transcript_path is None:
            return _from_messages(request, cursor)
        known = self._known.get((directory, request.session)) if whole else None
        if known is not None and known.cursor != cursor:
            known = None
        dialogue = known.dialogue if known else self._again(request, cursor, whole=whole)
        return _from_transcript(request, cursor, dialogue, whole=whole)

    def keep(
        self, directory: str, session: str, heard: Heard, prefix: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Remember a conversation that was looked at; return what its last request began with."""
        key = (directory, session)
        before = self._known.pop(key, None)
        self._known[key] = _Known(heard.unread.cursor, heard.dialogue, prefix)
        while len(self._known) > _CONVERSATIONS:
            self._known.popitem(last=False)
        return before.prefix if before else {}

    def _again(
        self, request: ExtractRequest, cursor: CursorMove | None, *, whole: bool
    ) -> Dialogue:
        """Return the conversation up to a cursor, read from the transcript's end once more."""
        path = request.transcript_path
        if not whole or cursor is None or path is None or cursor.source != path:
            return Dialogue()
        part = transcripts.read(path, tail=transcripts.TAIL_BYTES, most=cursor.position)
        return extended(Dialogue(), part.messages) if part.offset <= cursor.position else Dialogue()


def _from_messages(request: ExtractRequest, cursor: CursorMove | None) -> Heard:
    messages = transcripts.from_messages(request.messages)
    unread = requests.unread(messages, request.session, cursor)
    known = len(messages) - len(unread.messages)
    before = extended(Dialogue(), messages[:known])
    return _heard(unread, before, extended(before, unread.messages), unread.messages)


def _from_transcript(
    request: ExtractRequest, cursor: CursorMove | None, dialogue: Dialogue, *, whole: bool
) -> Heard:
    path = request.transcript_path or ""
    known = cursor is not None and cursor.source == path
    offset, marker = (cursor.position, cursor.marker) if cursor and known else (0, "")
    kept: list[Message] = []
    grown, flags = dialogue, [False, False]
    problem, complete = "", False
    while not complete:
        part = transcripts.read(path, offset, marker, tail=transcripts.TAIL_BYTES)
        if part.restarted and offset:
            dialogue = grown = Dialogue()
        kept += [item for item in part.messages if item.origin == "user" or item.writes]
        flags = [was or now for was, now in zip(flags, _flags(part.messages), strict=True)]
        if whole:
            grown = extended(grown, part.messages)
        offset, marker, complete = part.offset, part.marker, part.complete
        problem = problem or part.problem
    unread = Unread(tuple(kept), CursorMove(request.session, path, offset, marker), problem)
    heard = _heard(unread, dialogue, grown, ())
    return replace(heard, output=flags[0], outside=flags[1])


def _heard(unread: Unread, before: Dialogue, now: Dialogue, new: Iterable[Message]) -> Heard:
    had = before.dropped + len(before.pieces)
    fresh = now.dropped + len(now.pieces) - had
    output, outside = _flags(new)
    return Heard(unread, now, min(fresh, len(now.pieces)), had, output, outside)


def _flags(messages: Iterable[Message]) -> tuple[bool, bool]:
    origins = {message.origin for message in messages}
    return bool(origins - set(_VOUCHED)), bool(origins & set(_OUTSIDE))


def own_words(messages: Iterable[Message]) -> str:
    """Return what the person said in some messages."""
    return "\n".join(message.text for message in messages if message.origin == "user")
