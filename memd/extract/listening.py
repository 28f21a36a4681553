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

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memd.core.values import CursorMove, Message
from memd.extract import requests
from memd.extract.dialogue import Dialogue, extended
from memd.extract.evidence import Voices
from memd.extract.requests import ExtractRequest, NewMessages
from memd.extract.sentences import BLANK, Sentence, sentences
from memd.model.port import Block
from memd.text.words import words
from memd.transcripts import reading
from memd.transcripts.reading import from_messages

_CONVERSATIONS = 16
_OUTSIDE = ("web", "mcp")
_THE_TWO = ("user", "assistant")
_QUOTATION = re.compile(f"{BLANK}{{24,}}")  # a shorter one is a name that was put in quotes
_QUOTED_WORDS = 3  # that stand in a message and in none of the person's own sentences


@dataclass(frozen=True, slots=True)
class Heard:
    """What is new, and the conversation with it.

    ``pieces`` is how many of the dialogue's last pieces are new, ``before`` how many there were
    when a model was asked the last time. ``outside`` says that what is new holds output of the web
    or of other servers' tools.
    """

    unread: NewMessages
    dialogue: Dialogue = field(default_factory=Dialogue)
    pieces: int = 0
    before: int = 0
    outside: bool = False


@dataclass(frozen=True, slots=True)
class _ReadConversation:
    """A conversation up to a cursor, and what its last request began with.

    ``requested`` is how many pieces that request had.
    """

    cursor: CursorMove
    dialogue: Dialogue
    prefix: Mapping[str, str] = field(default_factory=dict)
    requested: int = 0


class ConversationReader:
    """The conversations that were read last."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], _ReadConversation] = OrderedDict()

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
        heard = _from_transcript(request, cursor, dialogue, whole=whole)
        return replace(heard, before=known.requested) if known and known.prefix else heard

    def save(
        self,
        directory: str,
        session: str,
        heard: Heard,
        prefix: Mapping[str, str] | None = None,
    ) -> Mapping[str, str]:
        """Remember a conversation that was looked at; return what its last request began with.

        ``prefix`` is what a request of now began with, ``None`` where no model was asked.
        """
        key = (directory, session)
        before = self._known.pop(key, None)
        last = before.prefix if before else {}
        request = heard.dialogue.dropped + len(heard.dialogue.pieces)
        if prefix is None:
            prefix, request = last, before.requested if before else 0
        self._known[key] = _ReadConversation(heard.unread.cursor, heard.dialogue, prefix, request)
        while len(self._known) > _CONVERSATIONS:
            self._known.popitem(last=False)
        return last

    def _again(
        self, request: ExtractRequest, cursor: CursorMove | None, *, whole: bool
    ) -> Dialogue:
        """Return the conversation up to a cursor, read from the transcript's end once more."""
        path = request.transcript_path
        if not whole or cursor is None or path is None or cursor.source != path:
            return Dialogue()
        part = reading.read(path, tail=reading.TAIL_BYTES, most=cursor.position)
        return extended(Dialogue(), part.messages) if part.offset <= cursor.position else Dialogue()


def _from_messages(request: ExtractRequest, cursor: CursorMove | None) -> Heard:
    messages = reading.from_messages(request.messages)
    unread = requests.unread(messages, request.session, cursor)
    known = len(messages) - len(unread.messages)
    before = extended(Dialogue(), messages[:known])
    outside = _from_outside(unread.messages)
    return _heard(unread, before, extended(before, unread.messages), outside=outside)


def _from_transcript(
    request: ExtractRequest, cursor: CursorMove | None, dialogue: Dialogue, *, whole: bool
) -> Heard:
    path = request.transcript_path or ""
    known = cursor is not None and cursor.source == path
    offset, marker = (cursor.position, cursor.marker) if cursor and known else (0, "")
    retained: list[Message] = []
    grown, outside = dialogue, False
    problem, complete = "", False
    while not complete:
        part = reading.read(path, offset, marker, tail=reading.TAIL_BYTES)
        if part.restarted and offset:
            dialogue = grown = Dialogue()
        retained += [item for item in part.messages if item.origin == "user" or item.writes]
        outside = outside or _from_outside(part.messages)
        if whole:
            grown = extended(grown, part.messages)
        offset, marker, complete = part.offset, part.marker, part.complete
        problem = problem or part.problem
    last = requests.last_said(retained)
    unread = NewMessages(
        tuple(retained), CursorMove(request.session, path, offset, marker, last), problem
    )
    return _heard(unread, dialogue, grown, outside=outside)


def _heard(unread: NewMessages, before: Dialogue, now: Dialogue, *, outside: bool) -> Heard:
    had = before.dropped + len(before.pieces)
    fresh = now.dropped + len(now.pieces) - had
    return Heard(unread, now, min(fresh, len(now.pieces)), had, outside)


def _from_outside(messages: Iterable[Message]) -> bool:
    return any(message.origin in _OUTSIDE for message in messages)


def voices(heard: Heard, sent: Sequence[Block] = (), seen: str = "") -> Voices:
    """Return what the person said in what is new, and what others said in all that is shown.

    ``sent`` are the messages that a client sends itself, where a model is shown those; ``seen`` is
    what the run looked at. What the person pasted or quoted is others' words. Takes a moment on a
    long conversation.
    """
    own: list[str] = []
    others = [heard.dialogue.others]
    shown = from_messages(sent)
    others += [message.text for message in shown if message.origin not in _THE_TWO]
    for message in heard.unread.messages:
        if message.origin == "user":
            spoken = own_words(message.text)
            own.append(spoken)
            if len(set(words(message.text)) - set(words(spoken))) >= _QUOTED_WORDS:
                others.append(message.text)
    return Voices("\n".join(own), "\n".join(filter(None, others)), seen)


def own_words(text: str) -> str:
    """Return the sentences of a message that are the person's own, without long quotations."""
    return "\n".join(_unquoted(sentence) for sentence in sentences(text))


def _unquoted(sentence: Sentence) -> str:
    """Return a sentence without what stands in it in quotation marks at length."""
    retained, position = "", 0
    for match in _QUOTATION.finditer(sentence.masked):
        retained += sentence.text[position : match.start()]
        position = match.end()
    return retained + sentence.text[position:]
