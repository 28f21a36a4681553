"""A session's conversations under its one lock: what memd knows of them and decided. Blocks.

Rules of this file
- Decisions are on the disk before anybody hears of them.
- Facts of messages are in memory alone, of the conversations used last.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from memd.context.errors import MessagesRefusedError
from memd.context.requests import (
    ContextCount,
    ContextRequest,
    ContextThresholds,
    ContextView,
    CountedContext,
    ListedContext,
    PlannedContext,
)
from memd.context.values import BlockKey, Decision
from memd.conversation.history import count, thresholds
from memd.core.canonical import START, chained
from memd.core.clock import Clock
from memd.core.recent import Recent
from memd.projects.project import slug
from memd.state.tables import ContextRow, ContextTable

_LISTED = [item.name for item in fields(ListedContext)[1:]]
MakeLock = Callable[[], AbstractContextManager[Any]]


@dataclass(slots=True)
class _Conversation:
    """What is known of one conversation; ``hashes`` are those after each message."""

    hashes: tuple[bytes, ...] = ()


@dataclass(slots=True)
class _SessionContexts:
    lock: AbstractContextManager[Any]
    decisions: dict[BlockKey, Decision] = field(default_factory=dict)
    conversations: dict[str, _Conversation] = field(default_factory=dict)
    loaded: bool = False


class ContextKeeper:
    """The conversations of all sessions; methods may be called at once.

    ``lock`` makes a lock between threads. Methods raise StateUnusableError.
    """

    def __init__(self, clock: Clock, lock: MakeLock, table: ContextTable) -> None:
        self._clock = clock
        self._lock = lock
        self._table = table
        self._sessions: Recent[str, _SessionContexts] = Recent()

    def plan(self, request: ContextRequest) -> PlannedContext:
        """Return what to send of a conversation."""
        folder = folder_of(request)
        with self._open(folder) as session:
            known = session.conversations.setdefault(request.conversation, _Conversation())
            before = known.hashes[: request.place]
            if request.place > len(known.hashes) or request.hash not in ("", _last(before).hex()):
                return _resync(request, known)
            known.hashes = (*before, *_hashes(before, request.messages))
            counted = _counted(request)
            limits = _thresholds(request)
            planned = PlannedContext(
                "ok",
                len(known.hashes),
                _last(known.hashes).hex(),
                counted,
                limits,
                _level(counted.tokens, limits),
            )
            row = ContextRow(
                folder,
                request.conversation,
                self._clock.now(),
                model=request.model,
                window=limits.window,
                messages=planned.have,
                tokens=counted.tokens,
                source=counted.source,
                level=planned.level,
            )
            self._table.note(row)
            return planned

    def count(self, request: ContextRequest) -> CountedContext:
        """Return the size of a conversation; nothing is noted."""
        counted, limits = _counted(request), _thresholds(request)
        return CountedContext(counted.tokens, counted.source, _level(counted.tokens, limits))

    def restore(self, folder: str, decisions: Sequence[Decision], fork_of: str = "") -> int:
        """Take over what a client or another session was sent, and return how many they are."""
        with self._open(folder) as session:
            copied = [Decision(*row) for row in self._table.decisions(fork_of)] if fork_of else []
            taken = {decision.key: decision for decision in (*copied, *decisions)}
            self._table.save(folder, map(astuple, taken.values()))
            session.decisions.update(taken)
            return len(taken)

    def forget(self, folder: str) -> bool:
        """Remove all that is known of a session, and say whether there was anything."""
        with self._open(folder) as session:
            session.conversations.clear()
            session.decisions.clear()
            return bool(self._table.forget(folder))

    def show(self, folder: str) -> ContextView:
        """Return a session for a person."""
        with self._open(folder) as session:
            rows = self._table.rows(folder)
            decisions = sorted(session.decisions.values(), key=lambda each: -each.size)
            window = rows[0].window if rows else 0
            return ContextView(
                _session_of(folder),
                tuple(map(_listed, rows)),
                _limits(window),
                tuple(decisions),
                self._table.stored(folder),
            )

    def list(self, folders: str, limit: int) -> tuple[ListedContext, ...]:
        """Return the conversations planned last, of the sessions below a folder or of all."""
        rows = self._table.rows()
        return tuple(_listed(row) for row in rows if row.folder.startswith(folders))[:limit]

    @contextmanager
    def _open(self, folder: str) -> Iterator[_SessionContexts]:
        session = self._sessions.setdefault(folder, _SessionContexts(self._lock()))
        with session.lock:
            if not session.loaded:
                rows = (Decision(*row) for row in self._table.decisions(folder))
                session.decisions = {decision.key: decision for decision in rows}
                session.loaded = True
            yield session


def folder_of(request: ContextRequest) -> str:
    """Return the folder of a session."""
    return session_folder(request.project.transcripts, request.project.cwd, request.session)


def session_folder(base: str, cwd: str, session: str) -> str:
    """Return the folder of a session of a working directory."""
    return f"{base}/{slug(cwd)}/{session}"


def _session_of(folder: str) -> str:
    return folder.rpartition("/")[2]


def _listed(row: ContextRow) -> ListedContext:
    return ListedContext(_session_of(row.folder), *(getattr(row, name) for name in _LISTED))


def _last(hashes: Sequence[bytes]) -> bytes:
    return hashes[-1] if hashes else START


def _hashes(before: Sequence[bytes], messages: Sequence[Any]) -> Iterator[bytes]:
    last = _last(before)
    for number, message in enumerate(messages, len(before)):
        try:
            last = chained(last, message)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            place = f"messages.{number}"
            raise MessagesRefusedError(place, str(error)) from error
        yield last


def _counted(request: ContextRequest) -> ContextCount:
    counted = count(request.messages)
    return ContextCount(counted.tokens, counted.source)


def _thresholds(request: ContextRequest) -> ContextThresholds:
    return _limits(request.window or request.usual_window)


def _limits(window: int) -> ContextThresholds:
    window = window or 200_000
    limits = thresholds(window)
    return ContextThresholds(window, limits.warn, limits.urgent, limits.auto, limits.block)


def _level(tokens: int, limits: ContextThresholds) -> str:
    levels = {name: getattr(limits, name) for name in ("block", "auto", "urgent", "warn")}
    return next((name for name, least in levels.items() if tokens >= least), "ok")


def _resync(request: ContextRequest, known: _Conversation) -> PlannedContext:
    known.hashes = ()
    limits = _thresholds(request)
    counted = _counted(request)
    return PlannedContext("resync", 0, START.hex(), counted, limits, _level(counted.tokens, limits))
