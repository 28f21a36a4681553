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
from typing import Annotated, Literal

import msgspec
from anyio import to_thread
from msgspec import Struct

from memd.base import limits
from memd.base.clock import Clock
from memd.base.covered import Covered, CoveredIn, in_no_project
from memd.base.errors import MemdError, NotFound
from memd.base.recent import Recent
from memd.base.settings import Settings
from memd.base.text import decode
from memd.base.values import (
    FOREIGN,
    PERSON,
    Actor,
    Draft,
    Project,
    Provenance,
    Tree,
)
from memd.methods.callers import Callers
from memd.methods.method import SessionId, method
from memd.rpc.call import Call
from memd.state.database import StateUnusableError
from memd.state.period import OTHER_WORDS
from memd.state.suggestions import (
    DISMISSED,
    TAKEN,
    OpenSuggestion,
    SuggestionCounts,
    SuggestionTable,
    letters,
)
from memd.store.store import Store
from memd.suggestions import block, memory

SHOWN = 3  # at a time
_SESSIONS_PER_SUGGESTION = 2  # one suggestion is shown in so many sessions
_MEMORIES_PER_CHECK = 500  # memories that one check reads at most
Words = Annotated[str, msgspec.Meta(max_length=10_000)]
Kind = Literal["user", "feedback", "project", "reference"]
_SURFACE_SECONDS = 1.0  # that suggestion.offer may take; its caller names no time
_SHOWN_CHARACTERS = 40  # of a suggestion's id in an error


def _suggestion_not_found(suggestion: str) -> NotFound:
    shown = suggestion[:_SHOWN_CHARACTERS]
    return NotFound(
        f"no suggestion {shown!r} waits in this project",
        hint="memctl suggestions lists those that wait",
        suggestion=shown,
    )


class Taken(Struct, frozen=True):
    """The memory that was made from a suggestion, and the change set that created it."""

    suggestion: str
    path: str
    change: str | None


class Waiting(Struct, frozen=True):
    """The open suggestions of a project, newest first; ``at`` is in seconds since 1970."""

    suggestions: tuple[OpenSuggestion, ...]


class Dismissed(Struct, frozen=True):
    """The suggestion that was dismissed."""

    suggestion: str


class Offered(Struct, frozen=True):
    """A text to add to the conversation, "" where there is nothing to show."""

    block: str


class _LastCheck(Struct, frozen=True):
    """The last check whether memories say a directory's suggestions already."""

    ids: frozenset[str] = frozenset()  # of the suggestions that were compared
    newest_ns: int = 0  # the mtime of the newest memory


class Suggestions:
    """The suggestions of all projects. Use it on the event loop.

    ``covered`` returns a function that finds a text in a project's instruction files.
    """

    def __init__(
        self,
        store: Store,
        table: SuggestionTable,
        clock: Clock,
        callers: Callers,
        covered: CoveredIn = in_no_project,
    ) -> None:
        self._callers = callers
        self._store = store
        self._covered_in = covered
        self._table = table
        self._clock = clock
        self._last_checks: Recent[str, _LastCheck] = Recent()  # by directory
        # By directory, the ids of the suggestions that were last returned for a model.
        self._ids_for_model: Recent[str, frozenset[str]] = Recent()

    @method("suggestion.list", "read")
    def list_open(self, call: Call, *, cwd: str) -> Waiting:
        """The open suggestions of a project: statements that may be worth remembering.

        A suggestion with the ``origin`` ``user`` is a quotation. Any other is a model's wording
        without evidence in the conversation, or with the origin ``outside`` perhaps another's text.
        """
        return Waiting(suggestions=self.waiting(self._callers.readable(call, cwd).memory_dir))

    async def new_quotations(self, directory: str) -> tuple[OpenSuggestion, ...]:
        """Return the person's open quotations that were not returned before, for a model.

        The result is empty if the state file is unusable.
        """
        try:
            current = await to_thread.run_sync(self.waiting, directory)
        except StateUnusableError:
            return ()
        earlier_ids = self._ids_for_model.get(directory, frozenset())
        self._ids_for_model[directory] = frozenset(suggestion.id for suggestion in current)
        new = (suggestion for suggestion in current if suggestion.id not in earlier_ids)
        return tuple(suggestion for suggestion in new if suggestion.origin == PERSON)

    @method("suggestion.offer", "read")
    async def for_session(self, call: Call, *, cwd: str, session_id: SessionId) -> Offered:
        """Suggestions that a client may add to a session's conversation for its assistant to
        decide.

        They are at most three in 600 characters, and each is shown to at most two sessions. A hook
        gets them with its own answer and need not call this.
        """
        project, settings, _ = await to_thread.run_sync(self._callers.where, call, cwd)
        return Offered(block=await self.surface(project, settings, session_id, _SURFACE_SECONDS))

    async def surface(
        self, project: Project, settings: Settings, session: str, seconds: float
    ) -> str:
        """Return the block that a hook adds to a session's conversation, "" for none.

        After ``seconds`` the result is "", and the suggestions are shown with a later prompt.
        Never raises.
        """
        if not (project.enabled and settings.extract.suggest):
            return ""
        directory, until = project.memory_dir, self._clock.monotonic() + seconds
        # The threads may be abandoned: a late one records nothing (see _choose).
        in_thread = partial(to_thread.run_sync, abandon_on_cancel=True)
        with self._clock.move_on_after(seconds):
            try:
                candidates = await in_thread(self._select_for_session, directory, session)
                if candidates:
                    covered = await self._covered_in(project, settings)
                    choose = partial(self._choose, session, until)
                    return await in_thread(choose, candidates, covered)
            except MemdError:  # an unreadable file must not fail a prompt
                return ""
        return ""

    @method("suggestion.accept", "write")
    async def accept(
        self,
        call: Call,
        *,
        cwd: str,
        suggestion: str,
        text: Words = "",
        type_: Kind | None = None,
    ) -> Taken:
        """Make a memory of a suggestion, as one change.

        ``text`` replaces the suggested wording and ``type`` the guessed type. The quotation stays
        in the memory.
        """

        def begin() -> tuple[str, OpenSuggestion]:
            """Return the directory and the suggestion. Blocks."""
            directory = self._callers.writable(call, cwd).memory_dir
            return directory, self._get_open(directory, suggestion)

        path = ""
        directory, accepted = await to_thread.run_sync(begin)
        provenance = Provenance(
            Actor.CLIENT,
            call.caller.client,
            accepted.session,
            reason=f"accepted suggestion {suggestion} {OTHER_WORDS if text else ''}".rstrip(),
            # Only a quotation of the person proves that the words are theirs.
            origin=PERSON if accepted.origin == PERSON else "assistant",
        )

        def plan(tree: Tree) -> Draft:
            """Return the change set that creates the memory, and set the memory's path."""
            nonlocal path
            # Commits run one at a time, so of two callers at once the second one gets the error.
            current = self._get_open(directory, suggestion)
            path, draft = memory.accepted(
                directory, current, tree, self._clock.now(), text=text, kind=type_ or ""
            )
            return draft

        committed = await self._store.commit(directory, plan, provenance)
        return Taken(suggestion, path, committed.change)

    @method("suggestion.dismiss", "write")
    def dismiss(self, call: Call, *, cwd: str, suggestion: str) -> Dismissed:
        """Drop a suggestion; the same text is not suggested again."""
        directory = self._callers.place(call, cwd).memory_dir
        if not self._table.decide(directory, [suggestion], DISMISSED):
            raise _suggestion_not_found(suggestion)
        return Dismissed(suggestion=suggestion)

    async def counts(self) -> SuggestionCounts:
        """Return the numbers of suggestions in all projects. Raises StateUnusableError."""
        return await to_thread.run_sync(self._table.counts)

    def _get_open(self, directory: str, suggestion: str) -> OpenSuggestion:
        """Return the open suggestion with an id. Blocks; raises NotFound."""
        for entry in self._table.open_in(directory):
            if entry.id == suggestion:
                return entry
        raise _suggestion_not_found(suggestion)

    def waiting(self, directory: str) -> tuple[OpenSuggestion, ...]:
        """Close open suggestions whose words a memory has; return the others, newest first.

        Blocks. Raises StateUnusableError.
        """
        current = self._table.open_in(directory)
        stated_ids = self._find_stated(directory, current) if current else frozenset()
        if stated_ids:
            self._table.decide(directory, stated_ids, TAKEN)
        return tuple(suggestion for suggestion in current if suggestion.id not in stated_ids)

    def _find_stated(self, directory: str, current: Sequence[OpenSuggestion]) -> frozenset[str]:
        """Return the ids of suggestions whose words are in a memory. Blocks.

        Only memories that changed since the last check are read, or all if a suggestion is new.
        """
        ids = frozenset(suggestion.id for suggestion in current)
        last_check = self._last_checks.get(directory, _LastCheck())
        since_ns = last_check.newest_ns if ids <= last_check.ids else 0
        try:
            headers = self._store.reading.headers(directory)
        except MemdError:
            return frozenset()
        changed = [header for header in headers if header.mtime_ns >= since_ns]
        changed = changed[:_MEMORIES_PER_CHECK]
        # Memories from others (tools, agents, imports, the team) do not repeat the person's words.
        own = [header for header in changed if header.origin not in FOREIGN]
        paths = [header.path for header in own if header.size <= limits.MEMORY_BYTES]
        files = self._store.reading.read_many(directory, paths)
        newest_ns = max((header.mtime_ns for header in changed), default=since_ns)
        self._last_checks[directory] = _LastCheck(ids, newest_ns)
        # Only letters and digits are compared, so marks and line ends make no difference.
        memories = [letters(decode(file.content)) for file in files]
        texts = {suggestion.id: letters(suggestion.text) for suggestion in current}
        return frozenset(id_ for id_, text in texts.items() if any(text in m for m in memories))

    def _select_for_session(self, directory: str, session: str) -> list[OpenSuggestion]:
        """Return the quotations to show in a session, those shown least first. Blocks.

        A quotation is shown once in a session, and in two sessions at most.
        """
        selected = [
            suggestion
            for suggestion in self.waiting(directory)
            if suggestion.origin == PERSON
            and session not in suggestion.offered
            and len(suggestion.offered) < _SESSIONS_PER_SUGGESTION
        ]
        # The sort is stable, so equal ones stay newest first.
        selected.sort(key=lambda suggestion: len(suggestion.offered))
        return selected

    def _choose(
        self,
        session: str,
        until: float,
        candidates: Sequence[OpenSuggestion],
        covered: Covered,
    ) -> str:
        """Choose three suggestions for a session, record that they are shown, and render them.

        The result is "" if there is none, or after the monotonic second ``until``; then nothing is
        recorded. ``covered`` returns the instruction file that says a text. Blocks.
        """
        uncovered = [suggestion for suggestion in candidates if not covered(suggestion.text)]
        chosen = uncovered[:SHOWN]
        if not chosen or self._clock.monotonic() >= until:
            return ""
        ids = [suggestion.id for suggestion in chosen]
        # Without those that were decided or shown elsewhere meanwhile.
        recorded_ids = self._table.surface(ids, session)
        return block.render([suggestion for suggestion in chosen if suggestion.id in recorded_ids])
