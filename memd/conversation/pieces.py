"""Define the pieces of a transcript: one for each block of a message, or an event. Pure.

All transcript formats and the Messages API's lists are converted to these pieces.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from memd.text import tags

TEXT_CHARACTERS = 256 * 1024  # of one block; of a longer one, a paste, only the start is read
GIVEN_CHARACTERS = 64 * 1024  # of one text in a call's input
USER, ASSISTANT, AGENT = "user", "assistant", "agent"
BOUNDARY, TITLE, SIZE, BROUGHT = "boundary", "title", "size", "brought"


class RecordedCall(Struct, frozen=True):
    """A tool call: its id, the tool's name, a line that describes it, and the paths it writes.

    ``given`` is the call's recorded input with long texts cut; an input that is a mere text is
    under ``input``.
    """

    id: str
    name: str
    short: str = ""
    writes: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)


class TranscriptPiece(Struct, frozen=True):
    """One block of a message, or an event.

    ``origin`` is the author of the text, "" for a tool's output. Pieces with the same ``key`` are
    one message. ``answers`` is the id of the call whose output this is, ``failed`` the id of a call
    that failed, ``tool`` the tool's name if the piece has it. ``tokens`` is an estimate of the
    block's size; ``context`` is what the server counted up to and including this reply, 0 if
    unknown. ``agents`` are messages of other agents that memd inserted; nothing is learnt from
    them. An ``event`` is no text of anybody: ``boundary`` is a compaction (``tokens`` is the size
    of the summary; Claude Code's follows as a ``size``), ``title`` names the conversation in
    ``text``, ``size`` has only ``tokens`` or ``context`` of images, thinking and insertions of
    clients, and ``brought`` is the same for insertions of memd.
    """

    role: str
    text: str = ""
    origin: str = ""
    id: str = ""
    key: str = ""
    at: float | None = None
    call: RecordedCall | None = None
    answers: str = ""
    failed: str = ""
    tool: str = ""
    tokens: int = 0
    context: int = 0
    event: str = ""
    agents: str = ""


def string(value: Any) -> str:
    """Return a JSON text with everything replaced that UTF-8 cannot encode, "" for other values."""
    if not isinstance(value, str):
        return ""
    # JSON may contain half of a surrogate pair, which cannot be encoded.
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def recorded(value: Any) -> Any:
    """Return a JSON value that UTF-8 can encode, with long texts cut."""
    if isinstance(value, str):
        return string(value[:GIVEN_CHARACTERS])
    if isinstance(value, dict):
        return {string(name): recorded(item) for name, item in value.items()}
    return [recorded(item) for item in value] if isinstance(value, list) else value


def message_id(message: Mapping[str, Any], place: int) -> str:
    """Return the id of a message in a list, or ``message N`` with its index."""
    return string(message.get("uuid")) or string(message.get("id")) or f"message {place}"


def own_words(value: Any) -> str:
    """Return the user's own text, without what memd and the client inserted."""
    return tags.strip(string(value)[:TEXT_CHARACTERS]).strip()


def other_words(value: Any) -> str:
    """Return a text of anybody else, without what memd inserted."""
    return tags.strip_own(string(value)[:TEXT_CHARACTERS]).strip()


def agents_words(value: Any) -> str:
    """Return the messages of other agents in a text, or in the texts of a list of blocks."""
    if isinstance(value, str):
        return tags.messages_in(string(value)[:TEXT_CHARACTERS])
    parts = value if isinstance(value, list) else []
    texts = [part if isinstance(part, str) else members(part).get("text") for part in parts]
    messages = [agents_words(text) for text in texts if text]
    return "\n".join(message for message in messages if message)


def members(value: Any) -> dict[str, Any]:
    """Return a JSON object, an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def joined(content: Any) -> str:
    """Return a tool's output as one text, joined from its blocks."""
    if isinstance(content, str):
        return other_words(content)
    parts = content if isinstance(content, list) else []
    return "\n".join(other_words(part.get("text")) for part in parts if isinstance(part, dict))


def parse_time(value: Any) -> float | None:
    """Return an ISO 8601 time in seconds since 1970, ``None`` for anything else.

    A time without a zone is UTC.
    """
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = datetime.fromisoformat(value + "+00:00")
        seconds = moment.timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds >= 0 else None
