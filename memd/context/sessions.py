"""Hold the sessions in memory: their decisions, conversations and locks. Blocks.

Rules of this file
- Decisions are on the disk before they are used.
- Facts of messages are only in memory, for the conversations planned last; for others a client
  sends its messages again.
- All threads that use one session share one object, even after newer sessions pushed it out.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct, field
from msgspec.structs import astuple

from memd.context import results
from memd.context.breaks import CacheBaseline, SentRequest
from memd.context.planning import KnownConversation
from memd.context.results import ResultsPlace
from memd.context.values import BlockKey, Decision, StoredResult, StoredSizes
from memd.core.recent import Recent
from memd.files.disk import Disk
from memd.state.tables import ContextRow, ContextTable

_MOST_SESSIONS = 64  # in memory
_MOST_CONVERSATIONS = 256  # in memory, of each session
_MOST_MESSAGES = 100_000  # in memory, of all conversations but the one that is being planned
_UNKNOWN_CONVERSATION = KnownConversation()

Lock = AbstractContextManager[Any]


class OpenConversation(Struct):
    """A conversation as last planned, with what is needed to detect cache breaks."""

    row: ContextRow
    known: KnownConversation = _UNKNOWN_CONVERSATION  # without decisions, which are the session's
    sent: SentRequest | None = None  # the last request, until its reply is known
    baseline: CacheBaseline | None = None  # the last request with a reply


class ContextSession(Struct, weakref=True):
    """A session in memory."""

    place: ResultsPlace
    lock: Lock  # guards all other fields; not held while results are stored
    storing: Lock  # held while results are stored
    decisions: dict[BlockKey, Decision] = field(default_factory=dict)
    # Decisions in use that could not be saved; they are saved with the next ones.
    unsaved: dict[BlockKey, Decision] = field(default_factory=dict)
    conversations: Recent[str, OpenConversation] = field(
        default_factory=lambda: Recent(_MOST_CONVERSATIONS)
    )
    loaded: bool = False  # whether the decisions were read from the state file


class ContextSessions:
    """All sessions. Methods are thread-safe; for those with a session its lock must be held.

    ``lock`` makes a lock between threads. Methods raise StateUnusableError.
    """

    def __init__(self, lock: Callable[[], Lock], table: ContextTable, disk: Disk | None) -> None:
        self._make_lock = lock
        self._table = table
        self._disk = disk
        self._stored_bytes: int | None = None  # of all stored results; None until counted
        # By results folder: the sessions used last, and all sessions that somebody still uses.
        self._recent: Recent[str, ContextSession] = Recent(_MOST_SESSIONS)
        self._sessions: WeakValueDictionary[str, ContextSession] = WeakValueDictionary()
        self._sessions_lock = lock()  # guards these two

    @contextmanager
    def open(self, place: ResultsPlace) -> Iterator[ContextSession]:
        """Yield the session of a place, its decisions loaded and its lock held."""
        with self._sessions_lock:
            session = self._sessions.get(place.folder)
            if session is None:
                session = ContextSession(place, self._make_lock(), self._make_lock())
                self._sessions[place.folder] = session
            self._recent.renewed(place.folder, session)
        with session.lock:
            if not session.loaded:
                rows = (Decision(*row) for row in self._table.decisions(place.folder))
                session.decisions = {each.key: each for each in rows}
                session.loaded = True
            yield session

    def conversation(self, session: ContextSession, name: str) -> OpenConversation:
        """Return a conversation of a session, and mark it as the one used last."""
        result = session.conversations.get(name)
        if result is None:
            folder = session.place.folder
            result = OpenConversation(self._table.row(folder, name) or ContextRow(folder, name))
        return session.conversations.renewed(name, result)

    def stored(self, session: ContextSession, call: str, text: str) -> StoredResult:
        """Store a result's text; the caller holds the session's ``storing``, not its lock.

        ``call`` is the id of the result's call. Raises StoredResultTooLargeError and
        UnwrittenFileError.
        """
        used = StoredSizes(self.size(session), self._size_of_all())
        result = results.store(session.place, call, text, used=used, disk=self._disk)
        # Counted before it is decided on; the next decision with a file counts all anew.
        self._stored_bytes = used.all + result.size
        return result

    def size(self, session: ContextSession) -> int:
        """Return how many bytes are stored for a session."""
        sizes = {each.path: each.size for each in tuple(session.decisions.values())}
        return sum(sizes.values())

    def _size_of_all(self) -> int:
        """Return how many bytes are stored for all sessions."""
        if self._stored_bytes is None:
            _, self._stored_bytes = self._table.stored()
        return self._stored_bytes

    def decide(
        self, session: ContextSession, row: ContextRow, decisions: Iterable[Decision]
    ) -> None:
        """Save new decisions and the conversation's row, with decisions refused earlier."""
        new = {each.key: each for each in decisions if session.decisions.get(each.key) != each}
        to_save = session.unsaved | new
        self._table.save(row, [astuple(each) for each in to_save.values()])
        session.unsaved.clear()
        session.decisions.update(new)
        if any(each.path for each in to_save.values()):
            self._stored_bytes = None  # it is counted again when it is needed

    def forget(self, session: ContextSession) -> bool:
        """Remove a session's rows and stored results; return whether there were rows.

        Raises UnwrittenFileError.
        """
        folder = session.place.folder
        # The files first: after a crash in between, the rows still name the rest of them.
        rows_with_files = self._table.own_results(folder)
        paths = (
            path for call, path, size in rows_with_files if results.is_stored(call, path, size)
        )
        results.remove(session.place.base, paths, self._disk)
        rows = self._table.forget(folder)
        session.conversations.clear()
        session.decisions.clear()
        session.unsaved.clear()
        self._stored_bytes = None
        return rows > 0

    def trim(self, current: OpenConversation) -> None:
        """Drop the facts of the conversations that were planned longest ago, beyond the limit."""
        with self._sessions_lock:
            sessions = tuple(self._recent.values())
        others = [
            each
            for session in sessions
            for each in tuple(session.conversations.values())
            if each is not current
        ]
        messages = sum(len(each.known.facts) for each in others)
        for each in others:
            if messages <= _MOST_MESSAGES:
                return
            messages -= len(each.known.facts)
            each.known = _UNKNOWN_CONVERSATION
