"""The nouns of team memory that several floors share: what a sync remembers, and what goes out."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from memd.core.values import TeamMoved

ENTRY_BYTES = 64 * 1024
BATCH_ENTRIES = 100
BATCH_BYTES = 512 * 1024
REPOSITORY_ENTRIES = 5_000
REPOSITORY_BYTES = 64 * 1024 * 1024
REMOVED = ""  # the hash of an entry that a tombstone stands for


@dataclass(frozen=True, slots=True)
class Base:
    """An entry as it was last equal here and on the server, by hash and revision.

    ``hash`` is ``REMOVED`` where a tombstone is known. Whose words: ``member`` by ``device``,
    ``at`` seconds since 1970, all stamped by the server.
    """

    key: str
    hash: str
    revision: int
    member: str = ""
    device: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One entry of a batch: ``base`` is the revision it is based on, ``None`` for a new key."""

    key: str
    hash: str
    base: int | None


@dataclass(frozen=True, slots=True)
class PushBatch:
    """Entries that go out together under one id, made ``at`` seconds since 1970.

    It is in the state file with its bodies before it is sent, and is resent under its id.
    """

    id: str
    at: float
    entries: tuple[Outgoing, ...]


@dataclass(frozen=True, slots=True)
class HeldEntry:
    """A file that stands here and is not sent, and why: one of ``HELD``, with ``detail``."""

    key: str
    hash: str
    reason: str
    detail: str = ""


# Why a file is not sent: removed on the server; a secret in it; no type that is shared; refused by
# the server; no room there; too large; only this device has it; a name that cannot be sent.
HELD = ("removed", "secret", "type", "refused", "full", "too_large", "only_here", "name")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two texts that did not merge, by their hashes; ``base`` is the text that both came from.

    ``change`` is the change set whose ``before`` ours is. ``at`` is seconds since 1970.
    """

    key: str
    ours: str
    theirs: str
    base: str = ""
    member: str = ""
    change: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server takes at most, in entries and bytes."""

    entry_bytes: int = ENTRY_BYTES
    put_bytes: int = BATCH_BYTES
    put_entries: int = BATCH_ENTRIES
    max_entries: int = REPOSITORY_ENTRIES
    max_bytes: int = REPOSITORY_BYTES


@dataclass(frozen=True, slots=True)
class SyncState:
    """What a directory's sync knows between two requests, as it is in the state file.

    ``mark`` is the ETag's text up to which all is pulled, "" for nothing. ``limits`` are those
    learnt. ``tries`` counts failures in a row, ``until`` is when the next request may go (seconds
    since 1970), ``paused`` why none goes by itself ("" for none), ``credentials`` what the pause
    goes by: a digest of token and settings; one request goes at ``paused_until`` all the same.
    ``waits`` is why a person has to accept first.
    """

    mark: str = ""
    limits: Limits = field(default_factory=Limits)
    tries: int = 0
    until: float = 0.0
    paused: str = ""
    credentials: str = ""
    waits: str = ""
    pulled_at: float = 0.0
    pushed_at: float = 0.0
    paused_until: float = 0.0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An entry of the server that the door here refuses, and by which ``rule``."""

    key: str
    revision: int
    hash: str
    rule: str


@dataclass(frozen=True, slots=True)
class Author:
    """Whose words a team file was when it was last equal here and there, as the server stamped it.

    ``at`` is seconds since 1970.
    """

    member: str
    device: str
    at: float
    revision: int


def moved(
    bases: Iterable[Base] = (),
    gone: Iterable[str] = (),
    held: Iterable[HeldEntry] = (),
    conflicts: Iterable[Conflict] = (),
) -> TeamMoved:
    """Return the effect with which bases move together with a change set.

    ``gone`` are keys whose base goes. A conflict without a change is given that of the set.
    """
    return TeamMoved(
        *(msgspec.json.encode(list(p)).decode() for p in (bases, gone, held, conflicts))
    )
