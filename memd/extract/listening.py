"""Read the new part of a conversation, and cache what a model has read of it before.

Blocks: call it from a worker thread. Extractions of a directory run one at a time, so no two
threads use it for one conversation.

Rules of this file
- The last 16 conversations stay in memory as a model reads them, so that the next turn reads only
  its new bytes. After a restart a conversation is read again from the end of its transcript.
- At the first reading only the end of a conversation is read (``TAIL_BYTES``).
- The local extractor gets only the person's and the assistant's messages, and calls that write.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace

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
_CACHE_SECONDS = 240.0  # a server's cache lives five minutes, of which a run may take one
_MESSAGES = "messages"  # the source of a cursor that counts messages instead of bytes
_MARKER_CHARACTERS = 16
_OUTSIDE = ("web", "mcp", AGENT)
_QUOTATION = re.compile(f"{BLANK}{{18,}}")
_RECENT, _RECENT_BYTES = 4, 1024 * 1024  # transcripts in which a quotation is searched
_SPACES = 5  # a quotation with fewer is a name or a phrase and counts as the person's


class Heard(Struct, frozen=True):
    """The new part of a conversation: its messages, the cursor behind them, and the dialogue.

    ``pieces`` is how many of the dialogue's last pieces are new. ``before`` is how many of all
    pieces the model's cache has from the last request, which had the fingerprints ``prefix``; the
    cache lives ``until`` that monotonic second. ``outside`` says that the new messages have output
    of the web, of MCP tools or of other agents. ``problem`` says what in a transcript could not be
    understood.
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
    """Reads conversations, and caches the last 16 that were read."""

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
        """Return the messages since a cursor; with ``whole`` also the conversation before.

        ``now`` is in monotonic seconds. Raises TranscriptRefusedError and InvalidMessagesError.
        """
        cached = self._known.get((directory, request.session)) if whole else None
        # The state file does not store the message of a cursor, so it is not compared.
        if cached and (cursor is None or replace(cached.cursor, message=cursor.message) != cursor):
            cached = None
        if request.transcript_path is None:
            heard = _from_messages(request, cursor)
        else:
            dialogue = cached.dialogue if cached else _read_again(request, cursor, whole=whole)
            heard = _from_transcript(request, cursor, dialogue, whole=whole)
        warm = cached and cached.prefix and now < cached.until
        return replace(heard, before=cached.before) if cached and warm else heard

    def save(
        self,
        directory: str,
        session: str,
        heard: Heard,
        prefix: Mapping[str, str] | None = None,
        now: float = 0.0,
    ) -> Mapping[str, str]:
        """Remember a conversation; return the fingerprints of its last request's prefix.

        ``prefix`` are those of a request made at ``now`` (monotonic seconds), ``None`` if no model
        read the whole conversation.
        """
        past = self._known.pop((directory, session), Heard((), heard.cursor))
        known = replace(past, cursor=heard.cursor, dialogue=heard.dialogue)
        if prefix is not None:
            end, until = heard.dialogue.end, now + _CACHE_SECONDS
            known = replace(known, before=end, prefix=prefix, until=until)
        self._known[directory, session] = known
        return past.prefix


def _read_again(request: ExtractRequest, cursor: CursorMove | None, *, whole: bool) -> Dialogue:
    """Return the conversation up to a cursor, read again from the end of the transcript.

    Empty without ``whole``, without a cursor, or if the cursor is of another transcript.
    """
    path = request.transcript_path
    if not whole or cursor is None or path is None or cursor.source != path:
        return Dialogue()
    part = reading.read(path, tail=reading.TAIL_BYTES, most=cursor.position)
    return extended(Dialogue(), part.messages) if part.offset <= cursor.position else Dialogue()


def _from_messages(request: ExtractRequest, cursor: CursorMove | None) -> Heard:
    """Return the new messages of a request that has the messages themselves."""
    messages = from_messages(request.messages)
    start = _count_read(messages, cursor)
    new = messages[start:]
    marker = _message_hash(messages[-1]) if messages else ""
    moved = CursorMove(request.session, _MESSAGES, len(messages), marker, _last_message_id(new))
    before = extended(Dialogue(), messages[:start])
    outside = any(message.origin in _OUTSIDE for message in new)
    return _with_dialogue(Heard(new, moved, outside=outside), before, extended(before, new))


def _count_read(messages: Sequence[Message], cursor: CursorMove | None) -> int:
    """Return how many of the messages a cursor counts as read.

    If the cursor's message has moved, its last position counts. If it has vanished, since the
    client compacted, the result is 0 and all messages are new.
    """
    if cursor is None or cursor.source != _MESSAGES:
        return 0
    positions = [
        n for n, message in enumerate(messages, 1) if _message_hash(message) == cursor.marker
    ]
    return cursor.position if cursor.position in positions else max(positions, default=0)


def _message_hash(message: Message) -> str:
    """Return a hash that identifies a message in a later list of messages."""
    # With the calls, since a message may have calls but no text.
    content = "\0".join((message.role, message.origin, message.text, *message.calls))
    return sha256(content.encode("utf-8", "replace"))[:_MARKER_CHARACTERS]


def _last_message_id(messages: Sequence[Message]) -> str:
    """Return the id of the person's last message with text, "" if there is none."""
    ids = (item.id for item in reversed(messages) if item.origin == "user" and item.text)
    return next(ids, "")


def _from_transcript(
    request: ExtractRequest, cursor: CursorMove | None, dialogue: Dialogue, *, whole: bool
) -> Heard:
    """Return the new messages of a request's transcript; ``dialogue`` is what came before."""
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
    moved = CursorMove(request.session, path, offset, marker, _last_message_id(retained))
    heard = Heard(tuple(retained), moved, outside=outside, problem=problem)
    return _with_dialogue(heard, dialogue, grown)


def _with_dialogue(heard: Heard, before: Dialogue, now: Dialogue) -> Heard:
    """Return the new messages with the dialogue ``now`` and how many of its pieces are new."""
    return replace(heard, dialogue=now, pieces=min(now.end - before.end, len(now.pieces)))


def conversation(
    heard: Heard,
    sent: Sequence[Block] = (),
    earlier: Iterable[Utterance] = (),
    shown: Iterable[str] = (),
) -> Talk:
    """Return who said what in all that a model is shown. Slow for a long conversation.

    ``sent`` are the messages of a client's own request, if the model is shown those. ``earlier``
    are the person's words in other conversations, ``shown`` other texts that the run is shown.
    Pasted text and long quotations count as others' words.
    """
    person, assistant, outside, agents = [*earlier], list[str](), [*shown], list[str]()
    # The new messages are added too, since their pieces in the dialogue may be cut.
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
    """Return the person's last message that contains a quotation, ``None`` if none does.

    Only the ends of the four transcripts that changed last are searched.
    """
    for messages in _recent_messages(transcripts):
        if message := Talk(_own_utterances(messages)).quoted(quotation):
            return message
    return None


def repeats_agents(transcripts: Iterable[str], text: str) -> bool:
    """Return whether a text repeats messages of other agents that the person did not say too.

    The same transcripts as for ``quoted`` are searched.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    for messages in _recent_messages(transcripts):
        agents = "\n".join(item.text for item in messages if item.origin == AGENT)
        if agents and Talk(_own_utterances(messages), agents=agents).repeats(lines, ""):
            return True
    return False


def _recent_messages(transcripts: Iterable[str]) -> Iterator[Sequence[Message]]:
    """Yield the messages at the ends of the four last changed transcripts, the newest first."""
    changed: list[tuple[float, str]] = []
    for path in transcripts:
        with suppress(OSError):
            changed.append((os.stat(path).st_mtime, path))
    for _, path in sorted(changed, reverse=True)[:_RECENT]:
        with suppress(TranscriptRefusedError):
            yield reading.read(path, tail=_RECENT_BYTES).messages


def _own_utterances(messages: Iterable[Message]) -> list[Utterance]:
    """Return the person's own words in each message of theirs."""
    of_person = (item for item in messages if item.origin == "user" and item.text)
    return [Utterance(own_words(item.text), item.at or 0.0) for item in of_person]


def own_words(text: str) -> str:
    """Return the sentences of a message that are the person's own, without long quotations."""
    return "\n".join(_unquoted(sentence) for sentence in sentences(text))


def _unquoted(sentence: Sentence) -> str:
    """Return a sentence without long quotations in it."""
    text = sentence.text
    for match in reversed(list(_QUOTATION.finditer(sentence.masked))):
        quoted = text[match.start() : match.end()]
        spaces = _SPACES if not has_cjk(quoted) else 0
        if not quoted.startswith("`") and quoted.count(" ") >= spaces:
            text = text[: match.start()] + text[match.end() :]
    return text
