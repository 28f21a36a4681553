"""The states of a server and a client of team memory, and how texts tell who wrote on top of what.

A text is a set of edits, written as a number: each edit adds one bit and a merge joins two sets.
A tombstone's set stands in its ``member``.
"""

from enum import StrEnum
from typing import NamedTuple

from memd.core.team import Base, HeldEntry, PushBatch
from memd.team.values import RemoteEntry

KEYS = ("a.md", "b.md")
COMMON = 1 << 30  # the edit of a text that anybody may write


class Fault(StrEnum):
    """Mistakes of others that are planted, and must be caught."""

    ABSENCE = "a deleted file is removed for all"
    EARLY_BASE = "the base moves before the answer"
    EARLY_PULL = "a pull before the answer"
    NEW_ID = "a new id on each resend"
    SEQUENCE = "revisions from a database's sequence"
    NO_TOMBSTONE = "a tombstone is no base"
    EARLY_MARK = "the mark moves with an answer that wrote nothing"


class BrokenError(AssertionError):
    """What must hold did not."""

    def __init__(self, what: str, *evidence: object) -> None:
        super().__init__(": ".join((what, *map(str, evidence))))


def never(wrong: object, what: str, *evidence: object) -> None:
    """Raise BrokenError where something is ``wrong``."""
    if wrong:
        raise BrokenError(what, *evidence)


class Server(NamedTuple):
    """A repository; ``answers`` are those to accepted batches by id, as long as it knows them.

    ``horizon`` is the least mark that it has tombstones for. ``open`` is a batch with the revision
    that it got from a sequence, not committed.
    """

    epoch: int = 0
    revision: int = 0
    horizon: int = 0
    heads: tuple[RemoteEntry | None, ...] = (None, None)
    versions: tuple[tuple[RemoteEntry, ...], ...] = ((), ())
    answers: frozenset[tuple[str, tuple[int, ...], int]] = frozenset()
    open: tuple[PushBatch, int] | None = None
    backup: "Server | None" = None


class Page(NamedTuple):
    """A page of entries by revision and key; ``cursor`` is its last one's."""

    epoch: int
    revision: int
    entries: tuple[RemoteEntry, ...]
    last: bool


class Answer(NamedTuple):
    """The answer to a batch: revisions, or for a 412 the bases that the history gives.

    ``written`` is the repository's revision after a batch that wrote something, else 0, and
    ``forgotten`` whether the server has nothing of a key that the batch knew.
    """

    revisions: tuple[int, ...]
    written: int = 0
    settled: tuple[Base, ...] = ()
    forgotten: bool = False


class Client(NamedTuple):
    """A member's machine: what lasts, and from ``request`` on what a crash ends.

    ``accepted`` is the epoch that a person accepted, ``everything`` whether the next pull is of all
    entries. A pull is under way where ``cursor`` is not ``None``.
    """

    files: tuple[str, ...] = ("", "")
    bases: tuple[Base | None, ...] = (None, None)
    held: tuple[HeldEntry | None, ...] = (None, None)
    conflicts: tuple[str, ...] = ("", "")
    batch: PushBatch | None = None
    mark: tuple[int, int] = (0, 0)
    everything: bool = False
    waits: bool = False
    accepted: int = 0
    request: bool = False
    inbox: Page | Answer | None = None
    cursor: tuple[int, str] | None = None
    seen: frozenset[str] = frozenset()

    @property
    def busy(self) -> bool:
        """Whether an exchange is under way."""
        return self.request or self.inbox is not None or self.cursor is not None

    @property
    def local(self) -> dict[str, str]:
        """The files that are there, by key."""
        return {key: text for key, text in zip(KEYS, self.files, strict=True) if text}

    @property
    def bases_by_key(self) -> dict[str, Base]:
        """The bases that there are, by key."""
        return {base.key: base for base in self.bases if base}

    @property
    def held_by_key(self) -> dict[str, HeldEntry]:
        """What is held, by key."""
        return {entry.key: entry for entry in self.held if entry}


def edits(text: str) -> int:
    """Return the edits that a text is made of."""
    return int(text or "0")


def is_in(text: str, other: str) -> bool:
    """Return whether a text was written before another and is part of it."""
    return not edits(text) & ~edits(other)


def known(entry: Base | RemoteEntry | None) -> str:
    """Return the edits that a text or tombstone stands for, with those that it came after."""
    return str(edits(entry.hash) | edits(entry.member)) if entry else ""


def replaced(values: tuple[object, ...], at: int, value: object) -> tuple[object, ...]:
    """Return values with another one at a place."""
    return (*values[:at], value, *values[at + 1 :])


def change(client: Client, at: int, **fields: object) -> Client:
    """Return the client with other values of one key."""
    changed = {name: replaced(getattr(client, name), at, value) for name, value in fields.items()}
    return client._replace(**changed)  # type: ignore[arg-type]
