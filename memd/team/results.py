"""What ``team.*`` answers: a sync's doings, the state of a directory, diffs, versions, members.

Paths are those of the memory directory, as ``team/releases.md``, a key is one without ``team/``;
times are seconds since 1970.
"""

from msgspec import Struct

from memd.core.team import Conflict, HeldEntry, LeftOut


class JoinPreview(Struct, frozen=True):
    """What joining would do, known without asking the server.

    ``sends`` are the paths that would go out, ``bytes`` of text in all; ``left`` those that would
    not, as held entries. ``code_needed`` is false where this device has a token for the server.
    """

    server: str
    remote: str
    root: str
    directory: str
    device: str
    sends: tuple[str, ...]
    bytes: int
    left: tuple[HeldEntry, ...]
    code_needed: bool


class NewestEntry(Struct, frozen=True):
    """An entry that a new member is shown."""

    path: str
    description: str
    member: str
    at: float


class SyncResult(Struct, frozen=True):
    """What one sync did. ``change`` is the last change set that it made here, "" for none.

    ``waits`` says why a person has to accept first, ``left`` how many changes go out later.
    """

    taken: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    held: tuple[HeldEntry, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    change: str = ""
    waits: str = ""
    left: int = 0


class Joined(Struct, frozen=True):
    """A directory that joined: how many entries by type stand there now, and the ten newest."""

    server: str
    remote: str
    member: str
    device: str
    role: str
    types: dict[str, int]
    newest: tuple[NewestEntry, ...]
    sync: SyncResult


class LeftTeam(Struct, frozen=True):
    """A directory that left: whether the server took the token back, and why it did not.

    ``change`` is the change set that removed the files, "" where they stay.
    """

    server: str
    remote: str
    revoked: bool
    why: str = ""
    change: str = ""


class TeamStatus(Struct, frozen=True):
    """Where the sync of a directory stands.

    ``state`` is ``equal``, ``changed`` (``outgoing`` go out), ``unanswered`` (a batch is out),
    ``paused`` (``paused`` says why, ``until`` when it is tried again), ``waits`` (``waits`` says
    what a person has to accept) or ``off`` (``paused`` says which switch).
    """

    server: str
    remote: str
    member: str
    device: str
    state: str
    entries: int
    outgoing: tuple[str, ...]
    held: tuple[HeldEntry, ...]
    conflicts: tuple[Conflict, ...]
    left_out: tuple[LeftOut, ...]
    mark: str
    pulled_at: float
    pushed_at: float
    paused: str = ""
    until: float = 0.0
    waits: str = ""
    review: bool = False


class TextDiff(Struct, frozen=True):
    """How one file differs from what the server has: ``state`` is new, changed or conflict.

    Of a conflict both texts come along.
    """

    path: str
    state: str
    diff: str
    ours: str = ""
    theirs: str = ""


class TeamVersion(Struct, frozen=True):
    """One version of an entry in the server's history; a tombstone has no hash, and a reason."""

    path: str
    revision: int
    at: float
    member: str
    device: str
    hash: str
    size: int
    reason: str = ""


class TeamMember(Struct, frozen=True):
    """Somebody whose words stand here: their devices, how many entries, and when the last came."""

    member: str
    devices: tuple[str, ...]
    entries: int
    at: float
