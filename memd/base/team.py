"""Values of team memory that several floors share: the state of a sync, and what it sends."""

from typing import Annotated

from msgspec import Meta, Struct, field

ENTRY_BYTES = 64 * 1024
REMOVED = ""  # the hash of an entry that a tombstone stands for


class Base(Struct, frozen=True):
    """The last version of an entry that was the same here and on the server.

    ``hash`` is ``REMOVED`` for an entry that was removed. ``member`` wrote it on ``device``, ``at``
    seconds since 1970, as the server recorded.
    """

    key: str
    hash: str
    revision: int
    member: str = ""
    device: str = ""
    at: float = 0.0


class Outgoing(Struct, frozen=True):
    """One entry of a batch: ``base`` is the revision it is based on, ``None`` for a new key."""

    key: str
    hash: str
    base: int | None


class PushBatch(Struct, frozen=True):
    """Entries that are sent together under one id, made ``at`` seconds since 1970.

    It is stored with its texts before it is sent, and sent again under the same id after a failure.
    """

    id: str
    at: float
    entries: tuple[Outgoing, ...]


class HeldEntry(Struct, frozen=True):
    """A file that is here and is not sent, for a ``reason`` with a ``detail``.

    Reasons are ``removed`` (on the server), ``secret``, ``type`` (none that is shared), ``refused``
    (by the server), ``full``, ``too_large``, ``only_here`` and ``name`` (it cannot be sent).
    """

    key: str
    hash: str
    reason: str
    detail: str = ""


class Conflict(Struct, frozen=True):
    """Two texts that did not merge, by their hashes; ``base`` is the text that both came from.

    ``change`` is the change set that replaced ``ours``. ``at`` is seconds since 1970.
    """

    key: str
    ours: str
    theirs: str
    base: str = ""
    member: str = ""
    change: str = ""
    at: float = 0.0


_Count = Annotated[int, Meta(ge=1, lt=2**53)]  # every JSON parser reads such a number exactly


class Limits(Struct, frozen=True):
    """What a server takes at most, in entries and bytes, unless it names other limits."""

    entry_bytes: _Count = ENTRY_BYTES
    put_bytes: _Count = 512 * 1024
    put_entries: _Count = 100
    max_entries: _Count = 5_000
    max_bytes: _Count = 64 * 1024 * 1024


class SyncState(Struct, frozen=True):
    """The state of a directory's sync between two requests, as stored in the state file.

    ``mark`` is the text of the ETag of the last pull, "" before the first. ``limits`` are those
    that the server named. ``tries`` counts failures in a row, and ``until`` is when the next
    request may be sent (seconds since 1970). ``paused`` says why no automatic request is sent, or
    is "". The pause ends when the digest of token and settings differs from ``credentials``, and
    one request is tried at ``paused_until``. ``waits`` says why a person has to accept first.
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


class LeftOut(Struct, frozen=True):
    """An entry of the server that is not accepted here, and the ``rule`` it breaks."""

    key: str
    revision: int
    hash: str
    rule: str


class Author(Struct, frozen=True):
    """Who wrote the last version of a team file that was the same here and on the server.

    The server recorded it; ``at`` is seconds since 1970.
    """

    member: str
    device: str
    at: float
    revision: int
