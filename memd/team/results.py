"""The results of the ``team.*`` methods, as they are sent on the wire.

Paths are those of the memory directory, such as ``team/releases.md``; a key is a path without
``team/``. Times are seconds since 1970.
"""

from msgspec import Struct

from memd.base.team import Conflict, HeldEntry, LeftOut


class JoinPreview(Struct, frozen=True):
    """What joining a team would send, computed without asking the server.

    ``sends`` are the paths of the files that would be sent, ``bytes`` their size in all, and
    ``left`` the files that would not be sent, with the reasons. ``code_needed`` is false if this
    device has a token for the server. ``joined`` is true if the directory is in this team already:
    a new code then replaces its token.
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
    joined: bool


class SyncResult(Struct, frozen=True):
    """What one sync did. ``change`` is the last change set that it made here, "" for none.

    ``waits`` says why a person has to accept first, ``left`` how many changes are still to be sent,
    ``waiting`` how many files are held or in conflict, also from earlier syncs.
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
    waiting: int = 0


class Joined(Struct, frozen=True):
    """A directory that joined a team, and what its first sync did."""

    server: str
    remote: str
    member: str
    device: str
    role: str
    sync: SyncResult


class LeftTeam(Struct, frozen=True):
    """A directory that left its team: whether the token was revoked, and if not, why.

    ``change`` is the change set that removed the files, "" if they stay.
    """

    server: str
    remote: str
    revoked: bool
    why: str = ""
    change: str = ""


class TextDiff(Struct, frozen=True):
    """How one file differs from the server's entry: ``state`` is new, changed or conflict.

    ``ours`` and ``theirs`` are the two texts of a conflict.
    """

    path: str
    state: str
    diff: str
    ours: str = ""
    theirs: str = ""


class TeamStatus(Struct, frozen=True):
    """The state of a directory's sync.

    ``state`` is ``equal``, ``changed`` (``outgoing`` are to be sent), ``unanswered`` (a batch was
    sent without an answer), ``paused`` (``paused`` says why, ``until`` when it is tried again),
    ``waits`` (``waits`` says what a person has to accept) or ``off`` (``paused`` says why).
    ``files`` say how the memory differs for which a caller asks.
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
    files: tuple[TextDiff, ...] = ()


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
    """A member with entries here: their devices, how many entries, and when the last came."""

    member: str
    devices: tuple[str, ...]
    entries: int
    at: float


class TeamJoin(Struct, frozen=True):
    """What joining would send, and its result; ``joined`` is null for a preview."""

    preview: JoinPreview
    joined: Joined | None


class TeamLog(Struct, frozen=True):
    """The versions of an entry, newest first, or without a path the members whose entries are here.

    The member with the most entries comes first.
    """

    versions: tuple[TeamVersion, ...] = ()
    members: tuple[TeamMember, ...] = ()
