"""List open suggestions, show them to a conversation or a model, and accept or dismiss them.

Rules of this file
- A suggestion is shown as a quotation, never as a memory. Assistants only get quotations of the
  person; other suggestions are only in the person's list.
- A suggestion whose words are already in a memory is closed before any are shown. For this the
  memories that changed since the last check are read, at most the newest 500.
- A suggestion whose words are in the project's instruction files is not shown.
- A hook waits at most for its time limit.
"""

from collections.abc import Sequence
from functools import partial

from anyio import to_thread
from msgspec import Struct

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
_SESSIONS_PER_SUGGESTION = 2  # one suggestion is shown in so many sessions
_MEMORIES_PER_CHECK = 500  # memories that one check reads at most
_SHOWN_CHARACTERS = 40


class SuggestionNotFoundError(MemdError):
    """The project has no such open suggestion: it was decided, has expired or never existed."""

    code = 1001
    kind = "suggestion_not_found"
    hint = "memctl suggestions lists those that wait"

    def __init__(self, suggestion: str) -> None:
        shown = suggestion[:_SHOWN_CHARACTERS]
        super().__init__(f"no suggestion {shown!r} waits in this project", suggestion=shown)


class Taken(Struct, frozen=True):
    """The memory that was made from a suggestion, and the change set that created it."""

    suggestion: str
    path: str
    change: str | None


class _Compared(Struct, frozen=True):
    """The last check of a directory: the compared suggestions, and the newest memory's mtime."""

    ids: frozenset[str] = frozenset()
    newest_ns: int = 0


class Suggestions:
    """The suggestions of all projects. Use it on the event loop.

    ``covered`` returns a function that finds a text in a project's instruction files.
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
        self._compared: Recent[str, _Compared] = Recent()  # by directory
        self._briefed: Recent[str, frozenset[str]] = Recent()  # ids returned for a model

    async def waiting(self, directory: str) -> tuple[OpenSuggestion, ...]:
        """Return the open suggestions of a directory, newest first. Raises StateUnusableError."""
        return await to_thread.run_sync(self._close_stated, directory)

    async def new_quotations(self, directory: str) -> tuple[OpenSuggestion, ...]:
        """Return the person's open quotations that were not returned before, for a model.

        The result is empty if the state file is unusable.
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
        """Return the block that a hook adds to a session's conversation, "" for none.

        After ``seconds`` the result is "", and the suggestions are shown with a later prompt.
        Never raises.
        """
        if not (project.enabled and settings.enabled and settings.extract.suggest):
            return ""
        directory, until = project.memory_dir, self._clock.monotonic() + seconds
        # The threads may be abandoned: a late one records nothing (see _choose).
        in_thread = partial(to_thread.run_sync, abandon_on_cancel=True)
        with self._clock.move_on_after(seconds):
            try:
                candidates = await in_thread(self._select_for_session, directory, session)
                if candidates:
                    covered = await self._covered(project, settings)
                    choose = partial(self._choose, directory, session, until)
                    return await in_thread(choose, candidates, covered)
            except MemdError:  # an unreadable file must not fail a prompt
                return ""
        return ""

    async def accept(
        self, directory: str, suggestion: str, *, client: str = "", text: str = "", kind: str = ""
    ) -> Taken:
        """Make a memory from a suggestion, in its own words or ``text``, as one change set.

        Raises SuggestionNotFoundError and the errors of ``Store.commit``; the suggestion then stays
        open.
        """
        path = ""
        chosen = await to_thread.run_sync(self._get_open, directory, suggestion)
        by = Provenance(
            Actor.CLIENT,
            client,
            chosen.session,
            reason=f"accepted suggestion {suggestion} {OTHER_WORDS if text else ''}".rstrip(),
            # Only a quotation of the person proves that the words are theirs.
            origin=PERSON if chosen.origin == PERSON else "assistant",
        )

        def plan(tree: Tree) -> Draft:
            nonlocal path
            # Commits run one at a time, so of two callers at once the second one gets the error.
            current = self._get_open(directory, suggestion)
            path, draft = memory.accepted(current, tree, self._clock.now(), text=text, kind=kind)
            return draft

        committed = await self._store.commit(directory, plan, by)
        return Taken(suggestion, path, committed.change)

    async def dismiss(self, directory: str, suggestion: str) -> None:
        """Dismiss a suggestion for good. Raises SuggestionNotFoundError."""
        decided = (SuggestionDecided(suggestion, DISMISSED),)
        if not await to_thread.run_sync(self._table.decide, directory, decided):
            raise SuggestionNotFoundError(suggestion)

    async def counts(self) -> SuggestionCounts:
        """Return the numbers of suggestions in all projects. Raises StateUnusableError."""
        return await to_thread.run_sync(self._table.counts, self._clock.now())

    def _get_open(self, directory: str, suggestion: str) -> OpenSuggestion:
        """Return the open suggestion with an id. Blocks; raises SuggestionNotFoundError."""
        for each in self._table.open_in(directory, self._clock.now()):
            if each.id == suggestion:
                return each
        raise SuggestionNotFoundError(suggestion)

    def _close_stated(self, directory: str) -> tuple[OpenSuggestion, ...]:
        """Close open suggestions whose words a memory has; return the other open ones. Blocks."""
        current = self._table.open_in(directory, self._clock.now())
        stated = self._find_stated(directory, current) if current else frozenset()
        if stated:
            self._table.decide(directory, [SuggestionDecided(id_, TAKEN) for id_ in stated])
        return tuple(each for each in current if each.id not in stated)

    def _find_stated(self, directory: str, current: Sequence[OpenSuggestion]) -> frozenset[str]:
        """Return the ids of suggestions whose words are in a memory. Blocks.

        Only memories that changed since the last check are read, or all if a suggestion is new.
        """
        ids = frozenset(each.id for each in current)
        last = self._compared.get(directory, _Compared())
        since = last.newest_ns if ids <= last.ids else 0
        try:
            headers = self._store.reading.snapshot(directory).snapshot.headers
        except MemdError:
            return frozenset()
        changed = [each for each in headers if each.mtime_ns >= since][:_MEMORIES_PER_CHECK]
        # Memories from others (tools, agents, imports, the team) do not repeat the person's words.
        own = [each for each in changed if each.origin not in FOREIGN]
        paths = [each.path for each in own if each.size <= limits.MEMORY_BYTES]
        files = self._store.reading.read_many(directory, paths)
        memories = [letters(decode(file.content)) for file in files]
        newest = max((each.mtime_ns for each in changed), default=since)
        self._compared[directory] = _Compared(ids, newest)
        # Only letters and digits are compared, so marks and line ends make no difference.
        texts = {each.id: letters(each.text) for each in current}
        return frozenset(id_ for id_, text in texts.items() if any(text in m for m in memories))

    def _select_for_session(self, directory: str, session: str) -> list[OpenSuggestion]:
        """Return the quotations to show in a session, those shown least first. Blocks.

        A quotation is shown once in a session, and in two sessions at most.
        """
        selected = [
            each
            for each in self._close_stated(directory)
            if each.origin == PERSON
            and session not in each.offered
            and len(each.offered) < _SESSIONS_PER_SUGGESTION
        ]
        selected.sort(key=lambda each: len(each.offered))  # stable, so equal ones stay newest first
        return selected

    def _choose(
        self,
        directory: str,
        session: str,
        until: float,
        candidates: Sequence[OpenSuggestion],
        covered: Covered,
    ) -> str:
        """Choose three suggestions for a session, record that they are shown, and render them.

        Blocks. Returns "" without recording anything after the monotonic second ``until``.
        ``covered`` returns whether a text is in the project's instruction files.
        """
        chosen = [each for each in candidates if not covered(each.text)][:SHOWN]
        if not chosen or self._clock.monotonic() >= until:
            return ""
        ids = [each.id for each in chosen]
        # Without those that were decided or shown elsewhere meanwhile.
        recorded = self._table.surface(directory, ids, session, self._clock.now())
        return block.render([each for each in chosen if each.id in recorded])
