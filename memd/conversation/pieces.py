"""What one block of a conversation says, before blocks become messages. Pure.

All formats of transcripts, and the Messages API's lists, come to these pieces.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memd.text import tags

TEXT_CHARACTERS = 256 * 1024  # of one block; a longer one is a paste, and its start tells enough
GIVEN_CHARACTERS = 64 * 1024  # of one text in a call's input
USER, ASSISTANT, AGENT = "user", "assistant", "agent"
BOUNDARY, TITLE, SIZE, BROUGHT = "boundary", "title", "size", "brought"


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call: its id, the tool's name, a line that tells of it, and the paths it writes.

    ``given`` is the call's input as it was recorded, long texts cut; an input that is one text
    has the name ``input``.
    """

    id: str
    name: str
    short: str = ""
    writes: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TranscriptPiece:
    """One block. ``origin`` is empty for a tool's output, which is told by its call's name.

    ``key`` joins pieces that are one message. ``answers`` is the id of the call whose output this
    is, ``failed`` the id of a call that came to nothing, ``tool`` the tool's name where the piece
    itself tells it. ``tokens`` estimates what the block takes of a context, ``context`` is how many
    tokens the server counted up to and with this reply, 0 where it did not say. With an ``event``
    nobody speaks: at a ``boundary`` the conversation was compacted (``tokens`` is the size of what
    stands for it; Claude Code's summary follows as a ``size``), a ``title`` names it (``text``), a
    ``size`` has ``tokens`` or ``context`` alone: images, thinking, what a client put there, and
    ``brought`` is a size too: what memd itself did. ``agents`` is what messages of other agents
    said in what memd put there: nobody's words here, and nothing to learn from.
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
    """Return a JSON text that can be written, "" for anything else."""
    if not isinstance(value, str):
        return ""
    # JSON may escape half a character, which nothing later can write.
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def recorded(value: Any) -> Any:
    """Return a JSON value that can be written, with long texts cut."""
    if isinstance(value, str):
        return string(value[:GIVEN_CHARACTERS])
    if isinstance(value, dict):
        return {string(name): recorded(item) for name, item in value.items()}
    return [recorded(item) for item in value] if isinstance(value, list) else value


def message_id(message: Mapping[str, Any], place: int) -> str:
    """Return the id of a message in a list: its own, or ``message N``, its place."""
    return string(message.get("uuid")) or string(message.get("id")) or f"message {place}"


def own_words(value: Any) -> str:
    """Return what the user said, without what memd or the client put there."""
    return tags.strip(string(value)[:TEXT_CHARACTERS]).strip()


def other_words(value: Any) -> str:
    """Return somebody else's words, without memd's insertions."""
    return tags.strip_own(string(value)[:TEXT_CHARACTERS]).strip()


def agents_words(value: Any) -> str:
    """Return what messages of other agents say in a text, or in the texts of a list of blocks."""
    if isinstance(value, str):
        return tags.messages_in(string(value)[:TEXT_CHARACTERS])
    parts = value if isinstance(value, list) else []
    texts = [part if isinstance(part, str) else members(part).get("text") for part in parts]
    return "\n".join(filter(None, (agents_words(text) for text in texts if text)))


def members(value: Any) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def joined(content: Any) -> str:
    """Return a tool's output: a text, or the texts of its blocks."""
    if isinstance(content, str):
        return other_words(content)
    parts = content if isinstance(content, list) else []
    return "\n".join(other_words(part.get("text")) for part in parts if isinstance(part, dict))


def parse_time(value: Any) -> float | None:
    """Return seconds since 1970 of an ISO 8601 time, or ``None``; without a zone it is UTC."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        seconds = (
            moment.timestamp()
            if moment.tzinfo
            else datetime.fromisoformat(value + "+00:00").timestamp()
        )
    except (ValueError, OverflowError):
        return None
    return seconds if seconds >= 0 else None
