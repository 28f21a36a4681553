"""Suggestions while they wait: listed, given to a conversation or a model, accepted or dismissed.

Rules of this file
- A suggestion is never a memory and no memory's text: it goes out as a quotation, and only a
  quotation of the person goes to an assistant; what else waits is for the person to see.
- What a memory says by now is closed before anything is shown. A look reads the memories that
  changed since the last one, the newest first and a bounded number.
- What a project's instruction files say by now is offered to nobody.
- A hook waits for none of this longer than the time it is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from anyio import to_thread

from memd.core import limits
from memd.core.clock import Clock
from memd.core.covered import Covered, CoveredIn, in_no_project
from memd.core.errors import MemdError
from memd.core.recent import Recent
from memd.core.settings import Settings
from memd.core.text import decode
from memd.core.values import (
    FOREIGN,
    PERSON,
    Actor,
    Draft,
    Project,
    Provenance,
    SuggestionDecided,
    Tree,
)
from memd.state.database import StateUnusableError
from memd.state.tables import (
    DISMISSED,
    OTHER_WORDS,
    TAKEN,
    OpenSuggestion,
    SuggestionCounts,
    SuggestionTable,
    letters,
)
from memd.store.service import Store
from memd.suggestions import block, memory

SHOWN = 3  # at a time
_OFFERS = 2  # of one suggestion, to different sessions
_LOOKED_AT = 500  # memories that one look reads at most
_SHOWN_CHARACTERS = 40


class SuggestionNotFoundError(MemdError):
    """There is no such suggestion in this project, or it was decided or has expired."""

    code = 1001
    kind = "suggestion_not_found"
    hint = "memctl suggestions lists those that wait"

    def __init__(self, suggestion: str) -> None:
        shown = suggestion[:_SHOWN_CHARACTERS]
        super().__init__(f"no suggestion {shown!r} waits in this project", suggestion=shown)


@dataclass(frozen=True, slots=True)
class Taken:
    """The memory that a suggestion became."""

    suggestion: str
    path: str
    change: str | None


@dataclass(frozen=True, slots=True)
class _Compared:
    """What the last look at a directory compared: suggestions, and memories up to which change."""

    ids: frozenset[str] = frozenset()
    newest_ns: int = 0


class Suggestions:
    """The suggestions of all projects. Use it on the event loop.

    ``covered`` gives what tells which texts a project's instruction files say.
    """

    def __init__(
        self,
        store: Store,
        table: SuggestionTable,
        clock: Clock,
        covered: CoveredIn = in_no_project,
    ) -> None:
        self._store = store
        self._covered = covered
        self._table = table
        self._clock = clock
        self._looked: Recent[str, _Compared] = Recent()
        self._briefed: Recent[str, frozenset[str]] = Recent()

    async def waiting(self, directory: str) -> tuple[OpenSuggestion, ...]:
        """Return the open suggestions of a directory, newest first. Raises StateUnusableError."""
        return await to_thread.run_sync(self._open, directory)

    async def open_ones(self, directory: str) -> tuple[OpenSuggestion, ...]:
        """Return the quotations that no model has seen yet, for the next one that reads here.

        Each is returned once by this daemon. A state file that cannot be used has none.
        """
        try:
            current = await self.waiting(directory)
        except StateUnusableError:
            return ()
        seen = self._briefed.get(directory, frozenset())
        self._briefed[directory] = frozenset(each.id for each in current)
        return tuple(each for each in current if each.origin == PERSON and each.id not in seen)

    async def surface(
        self, project: Project, settings: Settings, session: str, seconds: float
    ) -> str:
        """Return what a hook adds to a session's conversation, "" for nothing, in so much time.

        What was not ready is not lost: it comes with a later prompt. Raises nothing.
        """
        if not (project.enabled and settings.enabled and settings.extract.suggest):
            return ""
        directory, until = project.memory_dir, self._clock.monotonic() + seconds
        in_thread = partial(to_thread.run_sync, abandon_on_cancel=True)
        with self._clock.move_on_after(seconds):
            try:
                fitting = await in_thread(self._fitting, directory, session)
                if fitting:
                    covered = await self._covered(project, settings)
                    choose = partial(self._surface, directory, session, until)
                    return await in_thread(choose, fitting, covered)
            except MemdError:  # a file or a directory that cannot be read costs no prompt anything
                return ""
        return ""

    async def accept(
        self, directory: str, suggestion: str, *, client: str = "", text: str = "", kind: str = ""
    ) -> Taken:
        """Make a memory of a suggestion, in its own words or other ones, as one change set.

        Raises SuggestionNotFoundError and what ``Store.commit`` raises; then it still waits.
        """
        path = ""
        chosen = await to_thread.run_sync(self._find, directory, suggestion)
        by = Provenance(
            Actor.CLIENT,
            client,
            chosen.session,
            reason=f"accepted suggestion {suggestion} {OTHER_WORDS if text else ''}".rstrip(),
            # Without a quotation nothing shows that the person ever said it.
            origin=PERSON if chosen.origin == PERSON else "assistant",
        )

        def plan(tree: Tree) -> Draft:
            nonlocal path
            # Here no other commit comes between: of two who accept it at once the second is told.
            current = self._find(directory, suggestion)
            path, draft = memory.accepted(current, tree, self._clock.now(), text=text, kind=kind)
            return draft

        committed = await self._store.commit(directory, plan, by)
        return Taken(suggestion, path, committed.change)

    async def dismiss(self, directory: str, suggestion: str) -> None:
        """Close a suggestion; it does not come back. Raises SuggestionNotFoundError."""
        decided = (SuggestionDecided(suggestion, DISMISSED),)
        if not await to_thread.run_sync(self._table.decide, directory, decided):
            raise SuggestionNotFoundError(suggestion)

    async def counts(self) -> SuggestionCounts:
        """Return how many there are of all projects. Raises StateUnusableError."""
        return await to_thread.run_sync(self._table.counts, self._clock.now())

    def _find(self, directory: str, suggestion: str) -> OpenSuggestion:
        for each in self._table.open_in(directory, self._clock.now()):
            if each.id == suggestion:
                return each
        raise SuggestionNotFoundError(suggestion)

    def _open(self, directory: str) -> tuple[OpenSuggestion, ...]:
        """Return what is open once what a memory says by now is closed. Blocks."""
        current = self._table.open_in(directory, self._clock.now())
        taken = self._stated(directory, current) if current else frozenset()
        if taken:
            self._table.decide(directory, [SuggestionDecided(id_, TAKEN) for id_ in taken])
        return tuple(each for each in current if each.id not in taken)

    def _stated(self, directory: str, current: Sequence[OpenSuggestion]) -> frozenset[str]:
        """Return those suggestions whose words stand in a memory that this look reads."""
        ids = frozenset(each.id for each in current)
        last = self._looked.get(directory, _Compared())
        since = last.newest_ns if ids <= last.ids else 0
        try:
            headers = self._store.reading.snapshot(directory).snapshot.headers
        except MemdError:
            return frozenset()
        fresh = [each for each in headers if each.mtime_ns >= since][:_LOOKED_AT]
        # What came from outside says nothing for the person.
        own = [each for each in fresh if each.origin not in FOREIGN]
        paths = [each.path for each in own if each.size <= limits.MEMORY_BYTES]
        files = self._store.reading.read_many(directory, paths)
        memories = [letters(decode(file.content)) for file in files]
        newest = max((each.mtime_ns for each in fresh), default=since)
        self._looked[directory] = _Compared(ids, newest)
        known = {each.id: letters(each.text) for each in current}
        return frozenset(id_ for id_, text in known.items() if any(text in m for m in memories))

    def _fitting(self, directory: str, session: str) -> list[OpenSuggestion]:
        """Return what a session may be given, what few others were given first. Blocks."""
        fitting = [
            each
            for each in self._open(directory)
            if each.origin == PERSON and session not in each.offered and len(each.offered) < _OFFERS
        ]
        fitting.sort(key=lambda each: len(each.offered))  # of the same number the newest first
        return fitting

    def _surface(
        self,
        directory: str,
        session: str,
        until: float,
        fitting: Sequence[OpenSuggestion],
        covered: Covered,
    ) -> str:
        """Choose, note and render what goes to a session. Blocks; too late it notes nothing."""
        chosen = [each for each in fitting if not covered(each.text)][:SHOWN]
        if not chosen or self._clock.monotonic() >= until:
            return ""
        ids = [each.id for each in chosen]
        going = self._table.surface(directory, ids, session, self._clock.now())
        return block.render([each for each in chosen if each.id in going])
