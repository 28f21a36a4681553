"""Requests to the context services and their replies. Pure.

The replies are the wire shapes of the ``context`` methods.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from memd.base.settings import Settings
from memd.base.values import Project
from memd.context.values import Decision, Decisions

# What a client's model or program can do (``supports``).
CONTEXT_MANAGEMENT, COMPACTION = "context_management", "compaction"
THREAD, MANAGED = "thread", "managed"  # the server holds the history; the client shrinks it itself
THINKING = "thinking"  # the request asks for thinking


class CacheBaseline(Struct, frozen=True):
    """A planned request as hashes and numbers, which the client sends back with the next plan.

    ``messages`` has a hash of each message. ``tokens`` is what the reply before read from the
    cache, 0 if the next reply cannot be compared with it, and ``seconds`` how long that cache
    lives. ``cause`` and ``message`` are the first part and the first message that differ from the
    request before, "" if there is none.
    """

    model: str
    tools: str
    system: str
    betas: str
    messages: tuple[str, ...]
    tokens: int = 0
    seconds: float = 0.0
    cause: str = ""
    message: str = ""


class ContextRequest(Struct, frozen=True):
    """A conversation as its client describes it.

    ``conversation`` names a sub-agent or a fork of the session, "" for the session's main one.
    ``usage`` is that of the last reply, ``idle_seconds`` the time since then. ``reader`` is the
    name of the tool that reads stored results, "" if there is none. ``window`` is in tokens, 0 if
    the client does not know it; then ``usual_window`` is used unless the model implies a window
    (``MEMD_CONTEXT_WINDOW``). ``decisions``, ``members`` (None before the first plan) and
    ``baseline`` come from earlier plans.
    """

    project: Project
    settings: Settings
    session: str
    conversation: str = ""
    messages: Sequence[Any] = ()
    decisions: Decisions = field(default_factory=dict)
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
    idle_seconds: float = 0.0
    members: Mapping[str, Any] | None = None
    baseline: CacheBaseline | None = None


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


class PlannedContext(Struct, frozen=True):
    """How to send a conversation.

    ``edits`` change blocks of its messages. ``decisions`` are the new and the replaced ones.
    ``request`` has members to add to the request, with ``betas``. The client sends ``decisions``,
    ``request`` and ``baseline`` back with the next plan. ``problems`` say which results could not
    be stored and why.
    """

    edits: tuple[ContextEdit, ...]
    decisions: tuple[Decision, ...]
    count: ContextCount
    thresholds: ContextThresholds
    level: str
    request: Mapping[str, Any]
    compact: DueCompaction
    cache_break: CacheBreak | None
    baseline: CacheBaseline
    problems: tuple[str, ...]


class SpilledResult(Struct, frozen=True):
    """What to send in the place of one result; ``content`` is ``None`` if the result stays.

    ``reason`` says why it stays.
    """

    spilled: bool
    content: str | None = None
    path: str | None = None
    decision: Decision | None = None
    reason: str = ""
