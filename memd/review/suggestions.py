"""Suggestions: statements that may be worth remembering, as items of the inbox.

Rules of this file
- A suggestion is shown as a quotation, never as a memory. Assistants only get quotations of the
  person; other suggestions are only in the person's list.
- A suggestion whose words are already in a memory is closed before any are shown. For this the
  memories that changed since the last check are read, at most the newest 500.
- The decision is committed in the same transaction as the memory.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from memd.base import limits
from memd.base.clock import Clock
from memd.base.errors import Invalid, MemdError
from memd.base.inbox import (
    Answer,
    Decided,
    InboxItem,
    ItemDecision,
    ItemKind,
    PlacedItem,
    decided_before,
)
from memd.base.recent import Recent
from memd.base.text import decode, iso_time, said_line
from memd.base.threads import in_thread
from memd.base.values import (
    ASSISTANT,
    FOREIGN,
    PERSON,
    Actor,
    Draft,
    FileEdit,
    MemoryType,
    Project,
    Provenance,
    Tree,
)
from memd.state.database import StateUnusableError
from memd.state.period import OTHER_WORDS
from memd.state.suggestions import (
    DISMISSED,
    OPEN,
    TAKEN,
    StoredSuggestion,
    SuggestionTable,
    letters,
    suggestion_taken,
)
from memd.store import memory
from memd.store.store import Store

_MEMORIES_PER_CHECK = 500  # memories that one check reads at most
# The label of a quotation, such as "**Said:**"; removed, so that no wording poses as a quotation.
_QUOTATION_LABEL = r"(?im)^[^\w\n]{0,8}said[^\w\n]{0,4}?[:\uff1a][ *]{0,4}"
_TITLES = {
    PERSON: "You said this in a conversation.",
    "outside": "This was said in a conversation, perhaps in another's words.",
}
_OTHER_TITLE = "A model worded this; the conversation has no evidence for it."


class _LastCheck(Struct, frozen=True):
    """The last check whether memories say a directory's suggestions already."""

    ids: frozenset[str] = frozenset()  # of the suggestions that were compared
    newest_ns: int = 0  # the mtime of the newest memory


class Suggestions:
    """The suggestions of all projects, a ``Source``. Use it on the event loop."""

    def __init__(self, store: Store, table: SuggestionTable, clock: Clock) -> None:
        self._store = store
        self.table = table
        self._clock = clock
        self._last_checks: Recent[str, _LastCheck] = Recent()  # by directory
        # By directory, the ids of the suggestions that were last returned for a model.
        self._ids_for_model: Recent[str, frozenset[str]] = Recent()

    async def items(self, project: Project | None, id_: str = "") -> Sequence[PlacedItem]:
        """Return open suggestions with their directories, or the one with an id.

        Raises Conflict if that is decided, and StateUnusableError.
        """
        directory = project.memory_dir if project else ""
        return await in_thread(lambda: list(self._items(directory, id_)))

    def _items(self, directory: str, id_: str) -> Iterator[PlacedItem]:
        """Yield what ``items`` returns. Blocks."""
        if id_:
            for place, each in self.table.all(directory):
                if each.id == id_:
                    if each.state != OPEN:
                        raise decided_before(id_, each.state)
                    yield place, _item(each)
            return
        everywhere = () if directory else self.table.all()
        places = [place for place, each in everywhere if each.state == OPEN]
        for place in dict.fromkeys([directory] if directory else places):
            for suggestion in self.waiting(place):
                yield place, _item(suggestion)

    async def decide(self, directory: str, item: InboxItem, decision: ItemDecision) -> Decided:
        """Make a memory of a suggestion, as one change, or drop it: it is not suggested again.

        Raises Conflict if it was decided before.
        """
        if decision.answer is Answer.DISMISS:
            ids = [item.id]
            table = self.table
            if not await in_thread(table.decide, directory, ids, DISMISSED):
                raise decided_before(item.id)
            return Decided(item.id, DISMISSED)
        path = ""

        def plan(tree: Tree) -> Draft:
            """Return the change set that creates the memory, and set the memory's path."""
            nonlocal path
            # Commits run one at a time, and a model's run may have taken the suggestion meanwhile.
            current = self._get_open(directory, item.id)
            path, draft = accepted(directory, current, tree, self._clock.now(), decision)
            return draft

        suggestion = await in_thread(self._get_open, directory, item.id)
        words = OTHER_WORDS if decision.text else ""
        provenance = Provenance(
            Actor.CLIENT,
            decision.client,
            suggestion.session,
            reason=f"accepted suggestion {item.id} {words}".rstrip(),
            # Only a quotation of the person proves that the words are theirs.
            origin=PERSON if suggestion.origin == PERSON else ASSISTANT,
        )
        committed = await self._store.commit(directory, plan, provenance)
        return Decided(item.id, "accepted", path, committed.change)

    def _get_open(self, directory: str, suggestion: str) -> StoredSuggestion:
        """Return the open suggestion with an id. Blocks; raises Conflict."""
        for entry in self.table.open_in(directory):
            if entry.id == suggestion:
                return entry
        raise decided_before(suggestion)

    async def new_quotations(self, directory: str) -> tuple[StoredSuggestion, ...]:
        """Return the person's open quotations that were not returned before, for a model.

        The result is empty if the state file is unusable.
        """
        try:
            current = await in_thread(self.waiting, directory)
        except StateUnusableError:
            return ()
        earlier_ids = self._ids_for_model.get(directory, frozenset())
        self._ids_for_model[directory] = frozenset(suggestion.id for suggestion in current)
        new = (suggestion for suggestion in current if suggestion.id not in earlier_ids)
        return tuple(suggestion for suggestion in new if suggestion.origin == PERSON)

    def waiting(self, directory: str) -> tuple[StoredSuggestion, ...]:
        """Close open suggestions whose words a memory has; return the others, newest first.

        Blocks. Raises StateUnusableError.
        """
        current = self.table.open_in(directory)
        stated_ids = self._find_stated(directory, current) if current else frozenset()
        if stated_ids:
            self.table.decide(directory, stated_ids, TAKEN)
        return tuple(suggestion for suggestion in current if suggestion.id not in stated_ids)

    def _find_stated(self, directory: str, current: Sequence[StoredSuggestion]) -> frozenset[str]:
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


def accepted(
    directory: str, suggestion: StoredSuggestion, tree: Tree, now: float, decision: ItemDecision
) -> tuple[str, Draft]:
    """Return the path of the memory for a suggestion, and the draft that writes it.

    A suggestion that corrects a memory takes the place of what that says. If it quotes the person,
    the last line of the body is that quotation with its date, also in other words; other
    suggestions get no such line. ``now`` is seconds since 1970.
    """
    statement = (decision.text or "").strip() or suggestion.text
    statement = re.sub(_QUOTATION_LABEL, "", statement).strip() or statement
    taken = suggestion_taken(directory, suggestion.id)
    own_words = " ".join(suggestion.text.split())
    quotation = said_line(own_words, suggestion.at) if suggestion.origin == PERSON else ""
    if suggestion.corrects and (file := tree.read(suggestion.corrects)) is not None:
        with suppress(Invalid):  # it says more by now, so a memory of its own is made
            changed = memory.with_statement(file.content, statement, quotation, iso_time(now))
            edit = FileEdit(suggestion.corrects, changed, base=file.hash)
            return edit.path, Draft((edit,), effects=(taken,))
    name = decision.type or suggestion.type
    worded = memory.of_statement(
        statement,
        MemoryType(name) if name in set(MemoryType) else MemoryType.FEEDBACK,
        quotation,
        {header.path.casefold() for header in tree.headers()},
        session=suggestion.session,
        modified=iso_time(now),
    )
    edit = FileEdit(worded.path, worded.content, base="")
    return worded.path, Draft((edit,), effects=(taken,))


def _item(suggestion: StoredSuggestion) -> InboxItem:
    """Return a suggestion as an item."""
    corrects = (f"it corrects {suggestion.corrects}",) if suggestion.corrects else ()
    return InboxItem(
        id=suggestion.id,
        kind=ItemKind.SUGGESTION,
        project="",
        at=iso_time(suggestion.at),
        title=_TITLES.get(suggestion.origin, _OTHER_TITLE),
        text=suggestion.text,
        origin=suggestion.origin,
        choices=(Answer.ACCEPT, Answer.DISMISS),
        why=(*((suggestion.reason,) if suggestion.reason else ()), *corrects),
        type=suggestion.type,
    )
