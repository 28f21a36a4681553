"""Requests to the context services and their replies. Pure.

The replies are the wire shapes of the ``context`` methods.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from memd.context.values import Decision
from memd.core.settings import Settings
from memd.core.values import Project

# What a client's model or program can do (``supports``).
CONTEXT_MANAGEMENT, COMPACTION = "context_management", "compaction"
THREAD, MANAGED = "thread", "managed"  # the server holds the history; the client shrinks it itself
THINKING = "thinking"  # the request asks for thinking


class ContextRequest(Struct, frozen=True):
    """A conversation as its client describes it.

    ``conversation`` names a sub-agent or a fork of the session, "" for the session's main one.
    ``place`` is how many messages memd has (the wire's ``from``) and ``hash`` their hash as hex;
    ``messages`` are those that follow. ``usage`` is that of the last reply among all messages.
    ``reader`` is the name of the tool that reads stored results, "" if there is none. ``window``
    is in tokens, 0 if the client does not know it; then ``usual_window`` is used unless the model
    implies a window (``MEMD_CONTEXT_WINDOW``).
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


class ContextCount(Struct, frozen=True):
    """The size of a context in tokens; ``source`` is ``usage`` or ``estimate``."""

    tokens: int
    source: str


class ContextThresholds(Struct, frozen=True):
    """Tokens at which to warn, to urge, to compact and to stop, in a window of this size."""

    window: int
    warn: int
    urgent: int
    auto: int
    block: int


class ContextEdit(Struct, frozen=True):
    """What to send in the place of one block; ``content`` is ``None`` to remove the block."""

    message: int
    block: int
    tool_use_id: str
    content: str | None


class DueCompaction(Struct, frozen=True):
    """Whether a conversation has to be compacted now, and the first strategy to try."""

    due: bool
    strategy: str = ""


class CacheBreak(Struct, frozen=True):
    """A lost prompt cache: the tokens that were not read from it, and what changed.

    ``cause`` is ``model``, ``tools``, ``system``, ``betas``, ``message N`` or ``server``.
    """

    cause: str
    tokens: int


class Checkpoint(Struct, frozen=True):
    """The hash of a conversation after so many messages, as hex."""

    messages: int
    hash: str


class PlannedContext(Struct, frozen=True):
    """How to send a conversation.

    ``status`` is ``ok``, or ``resync``: memd has other messages or needs their text (``reason``),
    and the client sends all messages behind one of the ``checkpoints`` again. ``have`` is how many
    messages memd knows. ``edits`` change messages of this request, and older ones where results
    are cleared. ``request`` has members to add to the request, with ``betas``. ``problems`` say
    which results could not be stored and why.
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


class SpilledResult(Struct, frozen=True):
    """What to send in the place of one result; ``content`` is ``None`` if the result stays.

    ``reason`` says why it stays.
    """

    spilled: bool
    content: str | None = None
    path: str | None = None
    decision: Decision | None = None
    reason: str = ""


class ListedContext(Struct, frozen=True):
    """One conversation in a list; ``at`` is when it was last planned, in seconds since 1970.

    ``breaks`` counts lost caches, ``missed`` the tokens that were paid again because of them.
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


class StoredView(Struct, frozen=True):
    """A stored result for a person; ``action`` is ``spill`` or ``clear``, ``size`` in bytes."""

    tool_use_id: str
    action: str
    size: int
    path: str


class ContextView(Struct, frozen=True):
    """A session for a person: its conversations and the decisions about its results.

    ``decisions`` counts the decisions by action, ``largest`` has the largest stored results, and
    ``stored`` is the size of all stored results in bytes.
    """

    session: str
    conversations: tuple[ListedContext, ...]
    decisions: Mapping[str, int]
    largest: tuple[StoredView, ...]
    stored: int
