"""Read the new part of a conversation. Blocks: call it from a worker thread.

Rules of this file
- At the first reading only the end of a conversation is read (``TAIL_BYTES``).
- The local extractor gets only the person's and the assistant's messages, and calls that write.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from memd.base.errors import Refused
from memd.base.settings import Settings
from memd.base.text import sha256
from memd.base.values import Message, Project
from memd.conversation.dialogue import extended
from memd.conversation.pieces import AGENT
from memd.extract.cursors import ExtractionCursor
from memd.extract.evidence import Talk, Utterance
from memd.extract.requests import ExtractRequest
from memd.extract.sentences import BLANK, Sentence, sentences
from memd.model.port import Block
from memd.text.words import has_cjk
from memd.transcripts import reading
from memd.transcripts.reading import from_messages

_MESSAGES = "messages"  # the source of a cursor that counts messages instead of bytes
_MARKER_CHARACTERS = 16  # of the hash by which a cursor knows its message
_OUTSIDE = ("web", "mcp", AGENT)  # the origins of messages that hold words from outside
_LONG_QUOTATION = f"{BLANK}{{18,}}"
# A quotation is searched at the ends of so many transcripts, in so many bytes of each.
_RECENT, _RECENT_BYTES = 4, 1024 * 1024
_BEFORE_BYTES = 256 * 1024  # before the new part, which a model may quote
_SPACES = 5  # a quotation with fewer is a name or a phrase and counts as the person's


class NewPart(Struct, frozen=True):
    """The new part of a conversation: its messages, and the cursor behind them.

    ``pieces`` are the same as a model reads them, with output of tools, and ``before`` those just
    before; both are empty if no model is to read them.
    """

    messages: tuple[Message, ...]
    cursor: ExtractionCursor
    pieces: tuple[Message, ...] = ()
    before: tuple[Message, ...] = ()
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


def read_new_part(
    request: ExtractRequest, cursor: ExtractionCursor | None, *, whole: bool
) -> NewPart:
    """Return the messages since a cursor; with ``whole`` also as a model reads them.

    Raises Refused and Invalid.
    """
    if request.transcript_path is None:
        new_part = _from_messages(request, cursor)
    else:
        new_part = _from_transcript(request.session, request.transcript_path, cursor, whole=whole)
    before = cursor or new_part.cursor
    heard = replace(
        new_part.cursor,
        messages=before.messages + new_part.turns,
        suggested=before.suggested,
        read=before.read if before.source == new_part.cursor.source else 0,
        read_marker=before.read_marker,
        unread_since=before.unread_since,
    )
    return replace(new_part, cursor=heard)


def _from_messages(request: ExtractRequest, cursor: ExtractionCursor | None) -> NewPart:
    """Return the new messages of a request that has the messages themselves."""
    messages = from_messages(request.messages)
    start = _count_read(messages, cursor)
    new = messages[start:]
    marker = _hash_until(messages, len(messages)) if messages else ""
    moved = ExtractionCursor(
        request.session, _MESSAGES, len(messages), marker, _last_message_id(new)
    )
    before = extended((), messages[:start])
    outside = any(message.origin in _OUTSIDE for message in new)
    return NewPart(new, moved, extended((), new), before, outside=outside)


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
    session: str, path: str, cursor: ExtractionCursor | None, *, whole: bool
) -> NewPart:
    """Return the new messages of a transcript."""
    offset, marker = 0, ""
    if cursor is not None and cursor.source == path:
        offset, marker = cursor.position, cursor.marker
    before = _read_before(path, offset) if whole and offset else ()
    used: list[Message] = []
    pieces: tuple[Message, ...] = ()
    problem, complete, outside = "", False, False
    while not complete:
        part = reading.read(path, offset, marker, tail=reading.TAIL_BYTES)
        if part.restarted and offset:  # the transcript is another one now
            before = pieces = ()
        for message in part.messages:
            outside = outside or message.origin in _OUTSIDE
            if message.origin in ("user", "assistant") or message.writes:
                used.append(message)
        if whole:
            pieces = extended(pieces, part.messages)
        offset, marker, complete = part.offset, part.marker, part.complete
        problem = problem or part.problem
    moved = ExtractionCursor(session, path, offset, marker, _last_message_id(used))
    return NewPart(tuple(used), moved, pieces, before, outside=outside, problem=problem)


def _read_before(path: str, position: int) -> tuple[Message, ...]:
    """Return the pieces just before a position in a transcript."""
    part = reading.read(path, tail=_BEFORE_BYTES, most=position)
    return extended((), part.messages) if part.offset <= position else ()


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
    known = (*new_part.before, *new_part.pieces)
    # The new messages are added too, since their pieces may be cut.
    for message in (*known, *from_messages(sent), *new_part.messages):
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
