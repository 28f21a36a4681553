"""What memd has of sessions: decisions, conversations, and the lock of each. Blocks.

Rules of this file
- Decisions are on the disk before they hold.
- Facts of messages are in memory alone, of the conversations planned last; a client sends its
  messages again where they are gone.
- All that are at work with a session have one object of it, however many others came since.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from memd.context import results
from memd.context.breaks import CacheBaseline, SentRequest
from memd.context.planning import KnownConversation
from memd.context.results import ResultsPlace
from memd.context.values import BlockKey, Decision, StoredResult, StoredSizes
from memd.core.recent import Recent
from memd.files.disk import Disk
from memd.state.tables import ContextRow, ContextTable

_SESSIONS = 64  # of which anything is in memory
_CONVERSATIONS = 256  # of one session
_MESSAGES = 100_000  # in memory, of all conversations but the one that is planned
_NOTHING = KnownConversation()

Lock = AbstractContextManager[Any]


@dataclass(slots=True)
class OpenConversation:
    """A conversation as it was last planned, and its last request and reply for the cache.

    ``known`` has no decisions; these are the session's. ``usage`` is that of a reply which no plan
    has had yet.
    """

    row: ContextRow
    known: KnownConversation = _NOTHING
    sent: SentRequest | None = None
    baseline: CacheBaseline | None = None
    usage: Mapping[str, Any] | None = None


@dataclass(slots=True, weakref_slot=True)
class ContextSession:
    """What memd has of a session.

    ``unsaved`` are decisions that hold and that the state file refused. While results are stored
    ``storing`` is held, and ``lock`` is not.
    """

    place: ResultsPlace
    lock: Lock
    storing: Lock
    decisions: dict[BlockKey, Decision] = field(default_factory=dict)
    unsaved: dict[BlockKey, Decision] = field(default_factory=dict)
    conversations: Recent[str, OpenConversation] = field(
        default_factory=lambda: Recent(_CONVERSATIONS)
    )
    loaded: bool = False


class ContextSessions:
    """All sessions; methods may be called at once, those with a session while its lock is held.

    ``lock`` makes a lock between threads. Methods raise StateUnusableError.
    """

    def __init__(self, lock: Callable[[], Lock], table: ContextTable, disk: Disk | None) -> None:
        self._lock = lock
        self._table = table
        self._disk = disk
        self._bytes: int | None = None  # of all stored results, once somebody needs it
        self._recent: Recent[str, ContextSession] = Recent(_SESSIONS)
        self._alive: WeakValueDictionary[str, ContextSession] = WeakValueDictionary()
        self._opening = lock()

    @contextmanager
    def open(self, place: ResultsPlace) -> Iterator[ContextSession]:
        """Open a session and hold its lock."""
        with self._opening:
            session = self._alive.get(place.folder)
            if session is None:
                session = ContextSession(place, self._lock(), self._lock())
                self._alive[place.folder] = session
            self._recent.renewed(place.folder, session)
        with session.lock:
            if not session.loaded:
                rows = (Decision(*row) for row in self._table.decisions(place.folder))
                session.decisions = {each.key: each for each in rows}
                session.loaded = True
            yield session

    def conversation(self, session: ContextSession, name: str) -> OpenConversation:
        """Return what is known of a conversation, which counts as the newest of its session."""
        result = session.conversations.get(name)
        if result is None:
            folder = session.place.folder
            result = OpenConversation(self._table.row(folder, name) or ContextRow(folder, name))
        return session.conversations.renewed(name, result)

    def stored(self, session: ContextSession, call: str, text: str) -> StoredResult:
        """Store a result; its session's ``storing`` is held, not its lock.

        Raises StoredResultTooLargeError and UnwrittenFileError.
        """
        used = StoredSizes(self.size(session), self._size())
        result = results.store(session.place, call, text, used=used, disk=self._disk)
        # It counts at once, whatever is decided; the next decision counts anew.
        self._bytes = used.all + result.size
        return result

    def size(self, session: ContextSession) -> int:
        """Return how many bytes are stored for a session."""
        sizes = {each.path: each.size for each in tuple(session.decisions.values())}
        return sum(sizes.values())

    def _size(self) -> int:
        if self._bytes is None:
            _, self._bytes = self._table.stored()
        return self._bytes

    def decide(
        self, session: ContextSession, row: ContextRow, decisions: Iterable[Decision]
    ) -> None:
        """Bring what is newly decided to the disk, with what it refused before."""
        new = {each.key: each for each in decisions if session.decisions.get(each.key) != each}
        unsaved = session.unsaved | new
        self._table.save(row, [astuple(each) for each in unsaved.values()])
        session.unsaved.clear()
        session.decisions.update(new)
        if any(each.path for each in unsaved.values()):
            self._bytes = None

    def forget(self, session: ContextSession) -> bool:
        """Remove all that is known of a session, and say whether there was anything.

        Raises UnwrittenFileError.
        """
        folder = session.place.folder
        # The files first: after a crash in between, the rows still name what is to go.
        own = self._table.own_results(folder)
        paths = (path for call, path, size in own if results.is_stored(call, path, size))
        results.remove(session.place.base, paths, self._disk)
        rows = self._table.forget(folder)
        session.conversations.clear()
        session.decisions.clear()
        session.unsaved.clear()
        self._bytes = None
        return rows > 0

    def trim(self, current: OpenConversation) -> None:
        """Forget messages of the conversations planned longest ago where there are too many."""
        with self._opening:
            sessions = tuple(self._recent.values())
        others = [
            each
            for session in sessions
            for each in tuple(session.conversations.values())
            if each is not current
        ]
        messages = sum(len(each.known.facts) for each in others)
        for each in others:
            if messages <= _MESSAGES:
                return
            messages -= len(each.known.facts)
            each.known = _NOTHING
