"""What an extraction is asked, what it answers, and where a conversation goes on. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memd.core import text
from memd.core.settings import Settings
from memd.core.values import CursorMove, Message, Project
from memd.model.port import LOCAL

MEMORY_OFF = "memory_off"
EXTRACTION_OFF = "extraction_off"
NOTHING_NEW = "nothing_new"
EVERY_TURNS = "every_turns"
ALREADY_WRITTEN = "already_written"
OUTSIDE = "outside_words"

COMPLETED = "completed"
SKIPPED = "skipped"
MESSAGES = "messages"  # the source of a cursor that counts messages instead of bytes

_MARKER_CHARACTERS = 16
_USAGE = ("input", "output", "cache_read", "cache_created")  # tokens; none without a model


@dataclass(frozen=True, slots=True)
class ExtractRequest:
    """What to look at: a session and either its transcript's path or its messages.

    ``cache`` is what the client itself sends to its model: system, tools, model and messages.
    """

    session: str
    transcript_path: str | None = None
    messages: Any = None
    cache: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """How an extraction ended; paths relative to the memory directory.

    ``status`` is completed or skipped (with a ``reason``); ``refused`` names the rule of each
    candidate that held a credential. ``problem`` is a sentence about a transcript that could not
    be understood. ``suggested`` is how many statements wait for somebody to decide, ``passed_over``
    the reason for each message of which nothing was kept.
    ``engine`` is ``local`` or the model's name, ``turns`` how often it was asked, and
    ``prefix_changed`` what of its request's prefix was not as at the session's last run.
    """

    status: str
    reason: str = ""
    saved: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    suggested: int = 0
    change: str | None = None
    problem: str = ""
    engine: str = LOCAL
    usage: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_USAGE, 0))
    turns: int = 0
    prefix_changed: tuple[str, ...] = ()

    def without(self, left: Collection[str]) -> "ExtractionResult":
        """Return it without the files that were left as others made them meanwhile."""
        return replace(
            self,
            saved=tuple(path for path in self.saved if path not in left),
            updated=tuple(path for path in self.updated if path not in left),
            removed=tuple(path for path in self.removed if path not in left),
        )

    def facts(self) -> dict[str, Any]:
        """Return it as JSON values, as a job's result and on the wire."""
        facts: dict[str, Any] = {
            "status": self.status,
            "saved": list(self.saved),
            "updated": list(self.updated),
            "removed": list(self.removed),
            "refused": len(self.refused),
            "refused_rules": sorted(set(self.refused)),
            "suggested": self.suggested,
            "passed_over": dict(sorted(Counter(self.passed_over).items())),
            "engine": self.engine,
            "usage": dict(self.usage),
        }
        optional = {
            "reason": self.reason,
            "problem": self.problem,
            "change": self.change,
            "turns": self.turns,
            "prefix_changed": list(self.prefix_changed),
            "hit_rate": self._hit_rate(),
        }
        return facts | {key: value for key, value in optional.items() if value}

    def _hit_rate(self) -> float:
        """Return the share of the tokens read that came from the server's cache."""
        used = self.usage
        read = used["input"] + used["cache_read"] + used["cache_created"]
        return round(used["cache_read"] / read, 4) if read else 0.0


@dataclass(frozen=True, slots=True)
class NewMessages:
    """What is new in a conversation, and the cursor that counts it as read."""

    messages: tuple[Message, ...]
    cursor: CursorMove
    problem: str = ""


def gate(settings: Settings, project: Project) -> str:
    """Return the reason to extract nothing, "" to go on."""
    if not (project.enabled and settings.enabled):
        return MEMORY_OFF
    return "" if settings.extract.enabled else EXTRACTION_OFF


def unread(messages: Sequence[Message], session: str, cursor: CursorMove | None) -> NewMessages:
    """Return the messages behind a cursor.

    A cursor whose message is not where it was is looked for from the end; one that vanished (the
    client compacted) falls back to all that is there.
    """
    start = 0
    if cursor is not None and cursor.source == MESSAGES and cursor.position > 0:
        here = [number for number, item in enumerate(messages, 1) if _mark(item) == cursor.marker]
        if cursor.position in here:
            start = cursor.position
        elif here:
            start = here[-1]
    marker = _mark(messages[-1]) if messages else ""
    new = tuple(messages[start:])
    return NewMessages(new, CursorMove(session, MESSAGES, len(messages), marker, last_said(new)))


def last_said(messages: Sequence[Message]) -> str:
    """Return the id of the person's last message, "" where the person said nothing."""
    said = (item.id for item in reversed(messages) if item.origin == "user" and item.text)
    return next(said, "")


def turns(messages: Sequence[Message]) -> int:
    """Return how many times the person spoke."""
    return sum(message.origin == "user" and bool(message.text) for message in messages)


def wrote_memory(paths: Iterable[str], directories: Iterable[str], root: str) -> bool:
    """Return whether one of the paths that the assistant wrote is a memory's.

    ``root`` is where the memory tool's paths begin.
    """
    below = tuple(f"{directory.rstrip('/')}/" for directory in (*directories, root))
    return any(path.startswith(below) for path in paths)


def _mark(message: Message) -> str:
    # A message of calls alone has no words to be known by.
    said = "\0".join((message.role, message.origin, message.text, *message.calls))
    return text.sha256(said.encode("utf-8", "replace"))[:_MARKER_CHARACTERS]
