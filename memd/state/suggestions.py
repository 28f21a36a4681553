"""Store suggestions: statements that may become memories once a person accepts them.

A suggestion is stored together with the change and the cursor that passed its message. It is a
document under the hash of its text: open, or closed without the text.

Rules of this file
- Texts that differ only in case, spacing and punctuation are one suggestion of a directory. One
  that was taken or dismissed does not come back; one that expired does if it is said again.
- At most ``OPEN_MOST`` are open in a directory; beyond that the oldest expire.
- A suggestion is shown at most twice, to two different sessions.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memd.base.text import sha256
from memd.base.values import Effect, Suggestion
from memd.state import docs
from memd.state.database import Cursor, Database
from memd.state.docs import Docs
from memd.text.normal import normal

OPEN, TAKEN, DISMISSED, EXPIRED = "open", "taken", "dismissed", "expired"
OPEN_MOST = 20  # open suggestions of a memory directory
CHARACTERS = 2000  # of a text: what is longer is no statement
_MOST = 1000  # of a directory, open or closed
_SESSIONS_MOST = 2  # that one is shown to
_LATEST_TIME = 253_402_300_799.0  # the end of the year 9999: later times have no ISO form
_SIGNS = re.compile(r"[\W_]+")


class StoredSuggestion(Struct, frozen=True, omit_defaults=True):
    """A suggestion; most of it is as in ``Suggestion``. One that is closed has no text any more."""

    id: str
    filed: float  # when it was stored, in seconds since 1970
    state: str = OPEN
    offered: tuple[str, ...] = ()  # the sessions that it was shown to
    text: str = ""
    session: str = ""
    at: float = 0.0
    origin: str = ""
    type: str = ""
    reason: str = ""
    corrects: str = ""  # the path of a memory with the value that it denies

    @property
    def age(self) -> tuple[float, int]:
        """The key by which newer suggestions come later."""
        return self.filed, int(self.id[1:])


class SuggestionCounts(Struct, frozen=True):
    """How many suggestions there are in each state, and how often they were shown."""

    open: int = 0
    offered: int = 0
    taken: int = 0
    dismissed: int = 0
    expired: int = 0


class SuggestionTable:
    """The suggestions of all directories. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._docs = Docs(database)

    def open_in(self, directory: str) -> tuple[StoredSuggestion, ...]:
        """Return a directory's open suggestions, newest first."""
        opened = (each for _, each in self.all(directory) if each.state == OPEN)
        return tuple(sorted(opened, key=lambda each: each.age, reverse=True))

    def count_new(self, directory: str, texts: Iterable[str]) -> int:
        """Return how many of some texts are neither open nor decided in a directory."""
        keys = {_hash(text) for text in texts if letters(text)}
        stored = self._docs.list_in(StoredSuggestion, os.path.realpath(directory))
        return len(keys - {key for key, each in stored.items() if each.state != EXPIRED})

    def surface(self, ids: Iterable[str], session: str) -> frozenset[str]:
        """Store that suggestions are shown to a session; return those that may be shown."""
        wanted, shown = set(ids), set()
        for (place, key), each in self._docs.list_all(StoredSuggestion).items():
            may_be_shown = len(each.offered) < _SESSIONS_MOST and session not in each.offered
            if each.id in wanted and each.state == OPEN and may_be_shown:
                seen = replace(each, offered=(*each.offered, session))
                self._docs.put(seen, place, key, synced=False)
                shown.add(each.id)
        return frozenset(shown)

    def decide(self, directory: str, ids: Iterable[str], state: str) -> frozenset[str]:
        """Close open suggestions of a directory as taken or dismissed; return which were open."""
        place = os.path.realpath(directory)
        with self._docs.transaction() as cursor:
            return frozenset(each for each in ids if _decide(cursor, place, each, state))

    def all(self, directory: str = "") -> tuple[tuple[str, StoredSuggestion], ...]:
        """Return each suggestion, of one directory or of all, with its directory's real path."""
        if not directory:
            stored = self._docs.list_all(StoredSuggestion)
            return tuple((place, each) for (place, _), each in stored.items())
        place = os.path.realpath(directory)
        return tuple((place, each) for each in self._docs.list_in(StoredSuggestion, place).values())

    def counts(self) -> SuggestionCounts:
        """Return the counts of suggestions of all directories."""
        every = [each for _, each in self.all()]
        states = Counter(each.state for each in every)
        return SuggestionCounts(
            offered=sum(len(each.offered) for each in every),
            **{state: states[state] for state in (OPEN, TAKEN, DISMISSED, EXPIRED)},
        )


def suggestion_saved(directory: str, suggestion: Suggestion, at: float) -> Effect:
    """Return the effect that stores a suggestion at the time ``at``, if its text has a letter."""
    place = os.path.realpath(directory)
    return lambda cursor, _change: _save(cursor, place, suggestion, at)


def suggestion_taken(directory: str, suggestion: str) -> Effect:
    """Return the effect that closes a suggestion, which a memory says now."""
    place = os.path.realpath(directory)

    def take(cursor: Any, _change: str | None) -> None:
        _decide(cursor, place, suggestion, TAKEN)

    return take


def letters(text: str) -> str:
    """Return a text's letters and digits in one case: equal results mean the same suggestion."""
    return _SIGNS.sub("", normal(text).casefold())


def _save(cursor: Cursor, place: str, suggestion: Suggestion, at: float) -> None:
    """Store a suggestion, unless it is decided; a model's words never replace the person's."""
    text = suggestion.text[:CHARACTERS]
    if not letters(text):
        return
    key = _hash(text)
    before = docs.get(cursor, StoredSuggestion, place, key)
    if before is not None and before.state in (TAKEN, DISMISSED):
        return
    if before is not None and before.origin == "user" != suggestion.origin:
        return
    saved = StoredSuggestion(
        id=before.id if before else f"s{docs.next_number(cursor, StoredSuggestion)}",
        filed=at,
        offered=before.offered if before else (),
        text=text,
        session=suggestion.session,
        at=float(min(max(0.0, suggestion.at), _LATEST_TIME)),  # NaN becomes 0 in this order
        origin=suggestion.origin,
        type=suggestion.type,
        reason=suggestion.reason,
        corrects=suggestion.corrects,
    )
    docs.put(cursor, saved, place, key)
    stored = docs.list_in(cursor, StoredSuggestion, place)
    opened = {key: each for key, each in stored.items() if each.state == OPEN}
    for old in sorted(opened, key=lambda each: opened[each].age)[:-OPEN_MOST]:
        _close(cursor, place, old, opened[old], EXPIRED)


def _decide(cursor: Cursor, place: str, suggestion: str, state: str) -> bool:
    """Close an open suggestion; return whether it was open."""
    for key, each in docs.list_in(cursor, StoredSuggestion, place).items():
        if each.id == suggestion and each.state == OPEN:
            _close(cursor, place, key, each, state)
            return True
    return False


def _close(cursor: Cursor, place: str, key: str, each: StoredSuggestion, state: str) -> None:
    """Close a suggestion: its text goes, and its key still recognises that."""
    closed = StoredSuggestion(each.id, each.filed, state, each.offered)
    docs.put(cursor, closed, place, key)
    docs.keep_newest(cursor, StoredSuggestion, _MOST, place)


def _hash(text: str) -> str:
    """Return the hash by which a text is recognised."""
    return sha256(letters(text[:CHARACTERS]).encode(errors="replace"))
