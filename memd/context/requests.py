"""What is asked of the context services, and what they answer. Pure.

The answers are what goes over the wire.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memd.context.values import Decision
from memd.core.settings import Settings
from memd.core.values import Project

# What a client's model or program can do (``supports``).
CONTEXT_MANAGEMENT, COMPACTION = "context_management", "compaction"
THREAD, MANAGED = "thread", "managed"  # the server holds the history; the client shrinks it itself
BOUND_THINKING = "bound_thinking"  # thinking is refused behind a changed prefix
THINKING = "thinking"  # the request asks for thinking


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """A conversation as its client describes it.

    ``conversation`` names a sub-agent or a fork of the session, "" is the session's own.
    ``place`` is how many messages memd has (the wire's ``from``), ``hash`` theirs as hex, and
    ``messages`` are those behind them. ``usage`` is that of the last reply among all of them.
    ``reader`` is the name of the tool that reads stored results, "" where there is none.
    ``window`` is in tokens, 0 where the client does not know it; ``usual_window`` counts where
    nothing else says it (``MEMD_CONTEXT_WINDOW``).
    """

    project: Project
    settings: Settings
    session: str
    conversation: str = ""
    place: int = 0
    hash: str = ""
    messages: Sequence[Any] = ()
    model: str = ""
    system: Any = None
    tools: Sequence[Any] | None = None
    betas: Sequence[str] = ()
    usage: Mapping[str, Any] | None = None
    diagnostics: Mapping[str, Any] | None = None
    reader: str = ""
    supports: frozenset[str] = frozenset()
    window: int = 0
    usual_window: int = 0
    may_drop_thinking: bool = False


@dataclass(frozen=True, slots=True)
class ContextCount:
    """The size of a context in tokens; ``source`` is ``usage`` or ``estimate``."""

    tokens: int
    source: str


@dataclass(frozen=True, slots=True)
class ContextThresholds:
    """Tokens at which to warn, to urge, to compact and to stop, for a window of so many."""

    window: int
    warn: int
    urgent: int
    auto: int
    block: int


@dataclass(frozen=True, slots=True)
class ContextEdit:
    """What to send in the place of one block; ``content`` is ``None`` for a block that goes."""

    message: int
    block: int
    tool_use_id: str
    content: str | None


@dataclass(frozen=True, slots=True)
class DueCompaction:
    """Whether a conversation has to be compacted now, and the first way to try."""

    due: bool
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """Tokens that a cache did not give back, and what changed.

    ``cause`` is ``model``, ``tools``, ``system``, ``betas``, ``message N`` or ``server``.
    """

    cause: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The hash of a conversation after so many messages, as hex."""

    messages: int
    hash: str


@dataclass(frozen=True, slots=True)
class PlannedContext:
    """What to send of a conversation.

    ``status`` is ``ok``, or ``resync``: memd's messages are others, or their text is needed
    (``reason``), and the client sends all behind one of the ``checkpoints`` again. ``edits`` are
    those of the messages sent, and of older ones at a declared break. ``request`` has members to
    add to the request, with ``betas``. ``problems`` say why something stayed as it was.
    """

    status: str
    have: int
    hash: str
    count: ContextCount
    thresholds: ContextThresholds
    level: str
    edits: tuple[ContextEdit, ...] = ()
    request: Mapping[str, Any] = field(default_factory=dict)
    compact: DueCompaction = DueCompaction(due=False)
    cache_break: CacheBreak | None = None
    decisions: tuple[Decision, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    reason: str = ""
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SpilledResult:
    """What to send in the place of one result; ``content`` is ``None`` where it stays as it is.

    ``reason`` says why it stays.
    """

    spilled: bool
    content: str | None = None
    path: str | None = None
    decision: Decision | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CountedContext:
    """The size of a context in tokens, how it is known, and the level that it has reached."""

    tokens: int
    source: str
    level: str


@dataclass(frozen=True, slots=True)
class ListedContext:
    """One conversation in a list; ``at`` is when it was planned last, in seconds since 1970.

    ``breaks`` are lost caches, ``missed`` the tokens that were paid again for them.
    """

    session: str
    thresholds: ContextThresholds
    conversation: str
    at: float
    model: str
    messages: int
    tokens: int
    source: str
    level: str
    breaks: int
    missed: int


@dataclass(frozen=True, slots=True)
class StoredView:
    """A stored result for a person: its call, ``spill`` or ``clear``, its bytes and its file."""

    tool_use_id: str
    action: str
    size: int
    path: str


@dataclass(frozen=True, slots=True)
class ContextView:
    """A session for a person: its conversations, and what was decided about its results.

    ``decisions`` counts them by action, ``largest`` has the largest stored ones, and all of them
    have ``stored`` bytes.
    """

    session: str
    conversations: tuple[ListedContext, ...]
    decisions: Mapping[str, int]
    largest: tuple[StoredView, ...]
    stored: int
