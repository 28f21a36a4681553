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
_CLOSED_MOST = 1000  # decided or expired ones of a directory
_SESSIONS_MOST = 2  # that one is shown to
_LATEST_TIME = 253_402_300_799.0  # the end of the year 9999: later times have no ISO form
_SIGNS = re.compile(r"[\W_]+")


class OpenSuggestion(Struct, frozen=True):
    """A suggestion that is not decided yet; most of it is as in ``Suggestion``."""

    id: str
    text: str
    session: str
    at: float
    origin: str
    type: str
    reason: str
    offered: tuple[str, ...] = ()  # the sessions that it was shown to
    filed: float = 0.0  # when it was stored, in seconds since 1970
    corrects: str = ""  # the path of a memory with the value that it denies

    @property
    def age(self) -> tuple[float, int]:
        """The key by which newer suggestions come later."""
        return self.filed, int(self.id[1:])


class ClosedSuggestion(Struct, frozen=True):
    """A suggestion that was taken or dismissed or has expired; its key recognises the text."""

    id: str
    state: str
    filed: float
    offered: tuple[str, ...] = ()


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

    def open_in(self, directory: str) -> tuple[OpenSuggestion, ...]:
        """Return a directory's open suggestions, newest first."""
        stored = self._docs.list_in(OpenSuggestion, os.path.realpath(directory)).values()
        return tuple(sorted(stored, key=lambda each: each.age, reverse=True))

    def count_new(self, directory: str, texts: Iterable[str]) -> int:
        """Return how many of some texts are neither open nor decided in a directory."""
        place, new = os.path.realpath(directory), 0
        for key in {_hash(text) for text in texts if letters(text)}:
            closed = self._docs.get(ClosedSuggestion, place, key)
            is_decided = closed is not None and closed.state != EXPIRED
            new += not is_decided and self._docs.get(OpenSuggestion, place, key) is None
        return new

    def surface(self, ids: Iterable[str], session: str) -> frozenset[str]:
        """Store that suggestions are shown to a session; return those that may be shown."""
        wanted, shown = set(ids), set()
        for (place, key), each in self._docs.list_all(OpenSuggestion).items():
            may_be_shown = len(each.offered) < _SESSIONS_MOST and session not in each.offered
            if each.id in wanted and may_be_shown:
                seen = replace(each, offered=(*each.offered, session))
                self._docs.put(seen, place, key, synced=False)
                shown.add(each.id)
        return frozenset(shown)

    def decide(self, directory: str, ids: Iterable[str], state: str) -> frozenset[str]:
        """Close open suggestions of a directory as taken or dismissed; return which were open."""
        place = os.path.realpath(directory)
        with self._docs.transaction() as cursor:
            return frozenset(each for each in ids if _decide(cursor, place, each, state))

    def all(self, directory: str = "") -> tuple[tuple[str, OpenSuggestion | ClosedSuggestion], ...]:
        """Return each suggestion, of one directory or of all, with its directory's real path."""
        if directory:
            place = os.path.realpath(directory)
            opened = self._docs.list_in(OpenSuggestion, place).values()
            closed = self._docs.list_in(ClosedSuggestion, place).values()
            return (*((place, each) for each in opened), *((place, each) for each in closed))
        return (
            *((place, each) for (place, _), each in self._docs.list_all(OpenSuggestion).items()),
            *((place, each) for (place, _), each in self._docs.list_all(ClosedSuggestion).items()),
        )

    def counts(self) -> SuggestionCounts:
        """Return the counts of suggestions of all directories."""
        every = [each for _, each in self.all()]
        states = Counter(state_of(each) for each in every)
        return SuggestionCounts(
            offered=sum(len(each.offered) for each in every),
            **{state: states[state] for state in (OPEN, TAKEN, DISMISSED, EXPIRED)},
        )


def state_of(suggestion: OpenSuggestion | ClosedSuggestion) -> str:
    """Return a suggestion's state: open, taken, dismissed or expired."""
    return suggestion.state if isinstance(suggestion, ClosedSuggestion) else OPEN


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
    before = docs.get(cursor, OpenSuggestion, place, key)
    closed = docs.get(cursor, ClosedSuggestion, place, key)
    if closed is not None and closed.state != EXPIRED:
        return
    if before is not None and before.origin == "user" != suggestion.origin:
        return
    earlier = before or closed
    saved = OpenSuggestion(
        id=earlier.id if earlier else f"s{docs.next_number(cursor, OpenSuggestion)}",
        text=text,
        session=suggestion.session,
        at=float(min(max(0.0, suggestion.at), _LATEST_TIME)),  # NaN becomes 0 in this order
        origin=suggestion.origin,
        type=suggestion.type,
        reason=suggestion.reason,
        offered=earlier.offered if earlier else (),
        filed=at,
        corrects=suggestion.corrects,
    )
    docs.delete(cursor, ClosedSuggestion, place, key)
    docs.put(cursor, saved, place, key)
    current = docs.list_in(cursor, OpenSuggestion, place)
    for old in sorted(current, key=lambda each: current[each].age)[:-OPEN_MOST]:
        _close(cursor, place, old, current[old], EXPIRED)


def _decide(cursor: Cursor, place: str, suggestion: str, state: str) -> bool:
    """Close an open suggestion; return whether it was open."""
    for key, each in docs.list_in(cursor, OpenSuggestion, place).items():
        if each.id == suggestion:
            _close(cursor, place, key, each, state)
            return True
    return False


def _close(cursor: Cursor, place: str, key: str, each: OpenSuggestion, state: str) -> None:
    """Put a closed suggestion, without its text, in the place of an open one."""
    docs.delete(cursor, OpenSuggestion, place, key)
    docs.put(cursor, ClosedSuggestion(each.id, state, each.filed, each.offered), place, key)
    docs.keep_newest(cursor, ClosedSuggestion, _CLOSED_MOST, place)


def _hash(text: str) -> str:
    """Return the hash by which a text is recognised."""
    return sha256(letters(text[:CHARACTERS]).encode(errors="replace"))
