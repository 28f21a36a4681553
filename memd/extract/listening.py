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

from memd.base.errors import Refused
from memd.base.recent import Recent
from memd.base.settings import Settings
from memd.base.text import sha256
from memd.base.values import Message, Project
from memd.conversation.dialogue import Dialogue, extended
from memd.conversation.pieces import AGENT
from memd.extract.cursors import ExtractionCursor
from memd.extract.evidence import Talk, Utterance
from memd.extract.requests import ExtractRequest
from memd.extract.sentences import BLANK, Sentence, sentences
from memd.model.port import Block
from memd.text.words import has_cjk
from memd.transcripts import reading
from memd.transcripts.reading import from_messages

_CONVERSATIONS = 16
_CACHE_SECONDS = 240.0  # a server's cache lives five minutes, of which a run may take one
_MESSAGES = "messages"  # the source of a cursor that counts messages instead of bytes
_MARKER_CHARACTERS = 16  # of the hash by which a cursor knows its message
_OUTSIDE = ("web", "mcp", AGENT)  # the origins of messages that hold words from outside
_LONG_QUOTATION = f"{BLANK}{{18,}}"
# A quotation is searched at the ends of so many transcripts, in so many bytes of each.
_RECENT, _RECENT_BYTES = 4, 1024 * 1024
_SPACES = 5  # a quotation with fewer is a name or a phrase and counts as the person's


class NewPart(Struct, frozen=True):
    """The new part of a conversation: its messages, the cursor behind them, and the dialogue."""

    messages: tuple[Message, ...]
    cursor: ExtractionCursor
    dialogue: Dialogue = field(default_factory=Dialogue)
    pieces: int = 0  # how many of the dialogue's last pieces are new
    # How many of all pieces the model's cache has from the last request, the fingerprints of that
    # request's prefix, and the monotonic second until which the cache lives.
    before: int = 0
    prefix: Mapping[str, str] = field(default_factory=dict)
    until: float = 0.0
    # Whether the new messages have output of the web, of MCP tools or of other agents.
    outside: bool = False
    problem: str = ""  # what in the transcript could not be understood

    @property
    def turns(self) -> int:
        """How many times the person spoke."""
        return sum(message.origin == "user" and bool(message.text) for message in self.messages)


class Extraction(Struct, frozen=True):
    """One extraction while it runs."""

    project: Project
    settings: Settings
    request: ExtractRequest
    new_part: NewPart
    job: str  # the id of its job, "" without one
    client: str
    at_end: bool = False  # a model reads what no model has read of the session

    @property
    def session(self) -> str:
        """The session of the conversation."""
        return self.request.session


class ConversationReader:
    """Reads conversations, and caches the last 16 that were read."""

    def __init__(self) -> None:
        # What was read last, by memory directory and session.
        self._known: Recent[tuple[str, str], NewPart] = Recent(_CONVERSATIONS)

    def read_new_part(
        self,
        directory: str,
        request: ExtractRequest,
        cursor: ExtractionCursor | None,
        *,
        whole: bool,
        now: float = 0.0,
    ) -> NewPart:
        """Return the messages since a cursor; with ``whole`` also the conversation before.

        ``now`` is in monotonic seconds. Raises Refused and Invalid.
        """
        cached = self._known.get((directory, request.session)) if whole else None
        if cached and not _is_same_position(cached.cursor, cursor):
            cached = None  # it ends at another position
        if request.transcript_path is None:
            new_part = _from_messages(request, cursor)
        else:
            dialogue = cached.dialogue if cached else _read_again(request, cursor, whole=whole)
            new_part = _from_transcript(request, cursor, dialogue, whole=whole)
        before = cursor or new_part.cursor
        heard = replace(
            new_part.cursor,
            messages=before.messages + new_part.turns,
            suggested=before.suggested,
            read=before.read if before.source == new_part.cursor.source else 0,
            read_marker=before.read_marker,
            unread_since=before.unread_since,
        )
        new_part = replace(new_part, cursor=heard)
        if cached and cached.prefix and now < cached.until:
            return replace(new_part, before=cached.before)
        return new_part

    def save(
        self,
        directory: str,
        session: str,
        new_part: NewPart,
        prefix: Mapping[str, str] | None = None,
        now: float = 0.0,
    ) -> Mapping[str, str]:
        """Remember a conversation; return the fingerprints of its last request's prefix.

        ``prefix`` are those of a request made at ``now`` (monotonic seconds), ``None`` if no model
        read the whole conversation.
        """
        earlier = self._known.pop((directory, session), NewPart((), new_part.cursor))
        current = replace(earlier, cursor=new_part.cursor, dialogue=new_part.dialogue)
        if prefix is not None:
            end, until = new_part.dialogue.end, now + _CACHE_SECONDS
            current = replace(current, before=end, prefix=prefix, until=until)
        self._known[directory, session] = current
        return earlier.prefix


def _is_same_position(one: ExtractionCursor, two: ExtractionCursor | None) -> bool:
    """Return whether two cursors stand at the same place of the same conversation."""
    places = [(each.source, each.position, each.marker) for each in (one, two) if each is not None]
    return len(set(places)) < len(places)


def _read_again(
    request: ExtractRequest, cursor: ExtractionCursor | None, *, whole: bool
) -> Dialogue:
    """Return the conversation up to a cursor, read again from the end of the transcript.

    The result is empty without ``whole``, without a cursor, or if the cursor is of another
    transcript.
    """
    path = request.transcript_path
    if not whole or cursor is None or path is None or cursor.source != path:
        return Dialogue()
    part = reading.read(path, tail=reading.TAIL_BYTES, most=cursor.position)
    if part.offset > cursor.position:
        return Dialogue()
    return extended(Dialogue(), part.messages)


def _from_messages(request: ExtractRequest, cursor: ExtractionCursor | None) -> NewPart:
    """Return the new messages of a request that has the messages themselves."""
    messages = from_messages(request.messages)
    start = _count_read(messages, cursor)
    new = messages[start:]
    marker = _hash_until(messages, len(messages)) if messages else ""
    moved = ExtractionCursor(
        request.session, _MESSAGES, len(messages), marker, _last_message_id(new)
    )
    before = extended(Dialogue(), messages[:start])
    outside = any(message.origin in _OUTSIDE for message in new)
    return _with_dialogue(NewPart(new, moved, outside=outside), before, extended(before, new))


def _count_read(messages: Sequence[Message], cursor: ExtractionCursor | None) -> int:
    """Return how many of the messages a cursor counts as read.

    If the cursor's message has moved, its last position counts. If it has vanished, since the
    client compacted, the result is 0 and all messages are new.
    """
    if cursor is None or cursor.source != _MESSAGES:
        return 0
    counts = range(1, len(messages) + 1)
    positions = [count for count in counts if _hash_until(messages, count) == cursor.marker]
    return cursor.position if cursor.position in positions else max(positions, default=0)


def _hash_until(messages: Sequence[Message], count: int) -> str:
    """Return a hash by which the end of the first messages is known in a later list.

    It is of the last two, since replies such as "Ok." are the same again and again.
    """
    # With the calls, since a message may have calls but no text.
    parts = [
        "\0".join((message.role, message.origin, message.text, *message.calls))
        for message in messages[max(0, count - 2) : count]
    ]
    return sha256("\1".join(parts).encode("utf-8", "replace"))[:_MARKER_CHARACTERS]


def _last_message_id(messages: Sequence[Message]) -> str:
    """Return the id of the person's last message with text, "" if there is none."""
    ids = (item.id for item in reversed(messages) if item.origin == "user" and item.text)
    return next(ids, "")


def _from_transcript(
    request: ExtractRequest, cursor: ExtractionCursor | None, dialogue: Dialogue, *, whole: bool
) -> NewPart:
    """Return the new messages of a request's transcript; ``dialogue`` is what came before."""
    path = request.transcript_path or ""
    offset, marker = 0, ""
    if cursor is not None and cursor.source == path:
        offset, marker = cursor.position, cursor.marker
    used: list[Message] = []
    extended_dialogue, outside = dialogue, False
    problem, complete = "", False
    while not complete:
        part = reading.read(path, offset, marker, tail=reading.TAIL_BYTES)
        if part.restarted and offset:  # the transcript is another one now
            dialogue = extended_dialogue = Dialogue()
        for message in part.messages:
            outside = outside or message.origin in _OUTSIDE
            if message.origin in ("user", "assistant") or message.writes:
                used.append(message)
        if whole:
            extended_dialogue = extended(extended_dialogue, part.messages)
        offset, marker, complete = part.offset, part.marker, part.complete
        problem = problem or part.problem
    moved = ExtractionCursor(request.session, path, offset, marker, _last_message_id(used))
    new_part = NewPart(tuple(used), moved, outside=outside, problem=problem)
    return _with_dialogue(new_part, dialogue, extended_dialogue)


def _with_dialogue(new_part: NewPart, before: Dialogue, now: Dialogue) -> NewPart:
    """Return the new messages with the dialogue ``now`` and how many of its pieces are new."""
    return replace(new_part, dialogue=now, pieces=min(now.end - before.end, len(now.pieces)))


def conversation(
    new_part: NewPart,
    sent: Sequence[Block] = (),
    earlier: Iterable[Utterance] = (),
    shown: Iterable[str] = (),
    now: float = 0.0,
) -> Talk:
    """Return who said what in all that a model is shown. Slow for a long conversation.

    ``sent`` are the messages of a client's own request, if the model is shown those. ``earlier``
    are the person's words in other conversations, ``shown`` other texts that the run is shown, and
    ``now`` the time of messages that have none.
    Pasted text and long quotations count as others' words.
    """
    person, assistant, outside, agents = [*earlier], list[str](), [*shown], list[str]()
    # The new messages are added too, since their pieces in the dialogue may be cut.
    for message in (*new_part.dialogue.pieces, *from_messages(sent), *new_part.messages):
        if message.origin == "user":
            own = own_words(message.text)
            person.append(Utterance(own, message.at or now))
            if own.split() == message.text.split():
                continue  # it has no others' words
        if message.origin == "assistant":
            assistant.append(message.text)
        elif message.origin == AGENT:
            agents.append(message.text)
        else:
            outside.append(message.text)
    return Talk(person, "\n".join(assistant), "\n".join(outside), "\n".join(agents))


def wrote_memory(project: Project, new_part: NewPart) -> bool:
    """Return whether the assistant wrote a memory file itself, also through a link. Blocks."""
    written = {path for message in new_part.messages for path in message.writes}
    real = {os.path.realpath(path) for path in written if path.endswith(".md")}
    directories = (project.memory_dir, os.path.realpath(project.memory_dir), reading.MEMORY_ROOT)
    starts = tuple(f"{directory.rstrip('/')}/" for directory in directories)
    return any(path.startswith(starts) for path in written | real)


def quoted(transcripts: Iterable[str], quotation: str) -> Utterance | None:
    """Return the person's last sentences that contain a quotation, ``None`` if there are none.

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
        with suppress(Refused):
            yield reading.read(path, tail=_RECENT_BYTES).messages


def _own_utterances(messages: Iterable[Message]) -> list[Utterance]:
    """Return the person's own words in each message of theirs."""
    of_person = (message for message in messages if message.origin == "user" and message.text)
    return [Utterance(own_words(message.text), message.at or 0.0) for message in of_person]


def own_words(text: str) -> str:
    """Return the sentences of a message that are the person's own, without long quotations."""
    return "\n".join(map(_unquoted, sentences(text)))


def _unquoted(sentence: Sentence) -> str:
    """Return a sentence without long quotations in it."""
    text = sentence.text
    # From the last to the first, so that the positions of the earlier ones stay right.
    for match in reversed(list(re.finditer(_LONG_QUOTATION, sentence.masked))):
        quotation = text[match.start() : match.end()]
        is_code = quotation.startswith("`")
        least_spaces = 0 if has_cjk(quotation) else _SPACES  # CJK text has no spaces
        if not is_code and quotation.count(" ") >= least_spaces:
            text = text[: match.start()] + text[match.end() :]
    return text
