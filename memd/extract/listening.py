"""Taking in what is new in a conversation, and keeping what a model has read of it before.

Blocks: call it from a worker thread. One extraction of a directory runs at a time, so nothing here
is used by two threads for one conversation.

Rules of this file
- What was read stays in memory in the form in which a model reads it, for a bounded number of
  conversations: the next turn costs only its new bytes. After a restart it is read once more, from
  the end of the transcript.
- Of a conversation that is read for the first time the end alone is taken (``TAIL_BYTES``).
- For the rules of the local extractor only the person's words and what the assistant wrote stay.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from memd.conversation.dialogue import Dialogue, extended
from memd.conversation.pieces import AGENT
from memd.core.recent import Recent
from memd.core.text import sha256
from memd.core.values import CursorMove, Message
from memd.extract.evidence import Talk, Utterance
from memd.extract.requests import ExtractRequest
from memd.extract.sentences import BLANK, Sentence, sentences
from memd.model.port import Block
from memd.text.words import has_cjk
from memd.transcripts import reading
from memd.transcripts.reading import TranscriptRefusedError, from_messages

_CONVERSATIONS = 16
_CACHE_SECONDS = 240.0  # a server's cache forgets after five minutes; a run may take one
_MESSAGES = "messages"  # the source of a cursor that counts messages instead of bytes
_MARKER_CHARACTERS = 16
_OUTSIDE = ("web", "mcp", AGENT)
_QUOTATION = re.compile(f"{BLANK}{{18,}}")
_RECENT, _RECENT_BYTES = 4, 1024 * 1024  # transcripts in which a quotation is looked up
_SPACES = 5  # in a quotation: one with fewer is a name or a turn of phrase


@dataclass(frozen=True, slots=True)
class Heard:
    """What is new in a conversation, the cursor that counts it as read, and the conversation.

    ``pieces`` is how many of the dialogue's last pieces are new, ``before`` how many of all a
    model's cache still knows: those of the last request, which began with ``prefix``, ``until``
    some monotonic second. ``outside`` says that what is new holds output of the web or of other
    servers' tools, ``problem`` why a transcript could not be understood.
    """

    messages: tuple[Message, ...]
    cursor: CursorMove
    dialogue: Dialogue = field(default_factory=Dialogue)
    pieces: int = 0
    before: int = 0
    prefix: Mapping[str, str] = field(default_factory=dict)
    until: float = 0.0
    outside: bool = False
    problem: str = ""

    @property
    def turns(self) -> int:
        """How many times the person spoke."""
        return sum(message.origin == "user" and bool(message.text) for message in self.messages)


class ConversationReader:
    """The conversations that were read last."""

    def __init__(self) -> None:
        self._known: Recent[tuple[str, str], Heard] = Recent(_CONVERSATIONS)

    def hear(
        self,
        directory: str,
        request: ExtractRequest,
        cursor: CursorMove | None,
        *,
        whole: bool,
        now: float = 0.0,
    ) -> Heard:
        """Return what is new since a cursor; with ``whole`` the conversation that it belongs to.

        ``now`` is monotonic seconds.
        Raises TranscriptRefusedError and InvalidMessagesError.
        """
        known = self._known.get((directory, request.session)) if whole else None
        known = known if known and known.cursor == cursor else None
        if request.transcript_path is None:
            heard = _from_messages(request, cursor)
        else:
            dialogue = known.dialogue if known else _again(request, cursor, whole=whole)
            heard = _from_transcript(request, cursor, dialogue, whole=whole)
        warm = known and known.prefix and now < known.until
        return replace(heard, before=known.before) if known and warm else heard

    def save(
        self,
        directory: str,
        session: str,
        heard: Heard,
        prefix: Mapping[str, str] | None = None,
        now: float = 0.0,
    ) -> Mapping[str, str]:
        """Remember a conversation that was looked at; return what its last request began with.

        ``prefix`` is what a request of ``now`` (monotonic seconds) began with, ``None`` where no
        model was asked over the whole conversation.
        """
        past = self._known.pop((directory, session), Heard((), heard.cursor))
        known = replace(past, cursor=heard.cursor, dialogue=heard.dialogue)
        if prefix is not None:
            end, until = heard.dialogue.end, now + _CACHE_SECONDS
            known = replace(known, before=end, prefix=prefix, until=until)
        self._known[directory, session] = known
        return past.prefix


def _again(request: ExtractRequest, cursor: CursorMove | None, *, whole: bool) -> Dialogue:
    """Return the conversation up to a cursor, read from the transcript's end once more."""
    path = request.transcript_path
    if not whole or cursor is None or path is None or cursor.source != path:
        return Dialogue()
    part = reading.read(path, tail=reading.TAIL_BYTES, most=cursor.position)
    return extended(Dialogue(), part.messages) if part.offset <= cursor.position else Dialogue()


def _from_messages(request: ExtractRequest, cursor: CursorMove | None) -> Heard:
    messages = from_messages(request.messages)
    start = _start(messages, cursor)
    new = messages[start:]
    marker = _mark(messages[-1]) if messages else ""
    moved = CursorMove(request.session, _MESSAGES, len(messages), marker, _last_said(new))
    before = extended(Dialogue(), messages[:start])
    outside = any(message.origin in _OUTSIDE for message in new)
    return _heard(Heard(new, moved, outside=outside), before, extended(before, new))


def _start(messages: Sequence[Message], cursor: CursorMove | None) -> int:
    """Return how many of the messages a cursor counts as read.

    A cursor whose message is not where it was is looked for from the end; one that vanished (the
    client compacted) falls back to all that is there.
    """
    if cursor is None or cursor.source != _MESSAGES:
        return 0
    here = [number for number, item in enumerate(messages, 1) if _mark(item) == cursor.marker]
    return cursor.position if cursor.position in here else max(here, default=0)


def _mark(message: Message) -> str:
    # A message of calls alone has no words to be known by.
    said = "\0".join((message.role, message.origin, message.text, *message.calls))
    return sha256(said.encode("utf-8", "replace"))[:_MARKER_CHARACTERS]


def _last_said(messages: Sequence[Message]) -> str:
    """Return the id of the person's last message, "" where the person said nothing."""
    said = (item.id for item in reversed(messages) if item.origin == "user" and item.text)
    return next(said, "")


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
        for item in part.messages:
            outside = outside or item.origin in _OUTSIDE
            if item.origin in ("user", "assistant") or item.writes:
                retained.append(item)
        if whole:
            grown = extended(grown, part.messages)
        offset, marker, complete = part.offset, part.marker, part.complete
        problem = problem or part.problem
    moved = CursorMove(request.session, path, offset, marker, _last_said(retained))
    heard = Heard(tuple(retained), moved, outside=outside, problem=problem)
    return _heard(heard, dialogue, grown)


def _heard(heard: Heard, before: Dialogue, now: Dialogue) -> Heard:
    return replace(heard, dialogue=now, pieces=min(now.end - before.end, len(now.pieces)))


def conversation(
    heard: Heard,
    sent: Sequence[Block] = (),
    earlier: Iterable[Utterance] = (),
    shown: Iterable[str] = (),
) -> Talk:
    """Return who said what in all that a model is shown. Takes a moment on a long conversation.

    ``sent`` are the messages that a client sends itself, where a model is shown those; ``earlier``
    is what the person said in other conversations, ``shown`` whatever else a run is shown. What the
    person pasted or quoted at length is others' words.
    """
    person, assistant, outside, agents = [*earlier], list[str](), [*shown], list[str]()
    # A piece may be cut; what is new is there whole.
    for message in (*heard.dialogue.pieces, *from_messages(sent), *heard.messages):
        if message.origin == "user":
            own = own_words(message.text)
            person.append(Utterance(own, message.at or 0.0))
            if own.split() == message.text.split():
                continue
        others = agents if message.origin == AGENT else outside
        (assistant if message.origin == "assistant" else others).append(message.text)
    return Talk(person, *map("\n".join, (assistant, outside, agents)))


def quoted(transcripts: Iterable[str], quotation: str) -> Utterance | None:
    """Return what the person said last that has a quotation, ``None`` where nothing has it.

    Only the ends of the few transcripts that changed last are read.
    """
    for messages in _recent(transcripts):
        if message := Talk(_said(messages)).quoted(quotation):
            return message
    return None


def repeats_agents(transcripts: Iterable[str], text: str) -> bool:
    """Say whether a text repeats what messages of other agents say, and the person does not.

    Looked up where ``quoted`` looks.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    for messages in _recent(transcripts):
        agents = "\n".join(item.text for item in messages if item.origin == AGENT)
        if agents and Talk(_said(messages), agents=agents).repeats(lines, ""):
            return True
    return False


def _recent(transcripts: Iterable[str]) -> Iterator[Sequence[Message]]:
    """Yield the ends of the few transcripts that changed last, the newest first."""
    changed: list[tuple[float, str]] = []
    for path in transcripts:
        with suppress(OSError):
            changed.append((os.stat(path).st_mtime, path))
    for _, path in sorted(changed, reverse=True)[:_RECENT]:
        with suppress(TranscriptRefusedError):
            yield reading.read(path, tail=_RECENT_BYTES).messages


def _said(messages: Iterable[Message]) -> list[Utterance]:
    said = (item for item in messages if item.origin == "user" and item.text)
    return [Utterance(own_words(item.text), item.at or 0.0) for item in said]


def own_words(text: str) -> str:
    """Return the sentences of a message that are the person's own, without long quotations."""
    return "\n".join(_unquoted(sentence) for sentence in sentences(text))


def _unquoted(sentence: Sentence) -> str:
    """Return a sentence without what stands in it in quotation marks at length."""
    text = sentence.text
    for match in reversed(list(_QUOTATION.finditer(sentence.masked))):
        quoted = text[match.start() : match.end()]
        spaces = _SPACES if not has_cjk(quoted) else 0
        if not quoted.startswith("`") and quoted.count(" ") >= spaces:
            text = text[: match.start()] + text[match.end() :]
    return text
