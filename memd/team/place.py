"""Find a directory's server and whether it may sync, and keep when it is synced next. Blocks."""

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import Struct

from memd.core.settings import Settings
from memd.core.text import sha256
from memd.team.errors import TeamNotJoinedError
from memd.team.joining import moved
from memd.team.membership import Memberships, sends_by_itself
from memd.team.values import Membership

_QUIET_SECONDS, _CHANGED_SECONDS = (
    2.0,
    30.0,
)  # a sync starts so long after the last and the first change
_SESSION_SECONDS = 30 * 60.0  # a session counts as over so long after its last sign
_MISSING = "there is no token for it"
_OFF = "team.enabled is false"


class SyncPlace(Struct, frozen=True):
    """A directory's membership, its token and the settings for its sync.

    ``sends`` says whether changes are sent automatically, ``review`` whether a person reviews them
    first. ``off`` says why the directory does not sync, or is "". ``credentials`` is a digest of
    token and settings, "" without a token.
    """

    membership: Membership
    token: str
    sends: bool
    review: bool
    off: str
    credentials: str


def place_of(
    memberships: Memberships, settings: Callable[[str], Settings], directory: str
) -> SyncPlace:
    """Return the membership, token and sync settings of a directory. Raises TeamNotJoinedError."""
    membership = memberships.of(directory)
    if membership is None:
        raise TeamNotJoinedError(directory)
    token, team = memberships.token(membership), settings(membership.root).team
    off = _OFF if team.enabled == "false" else moved(membership)
    # A pause ends if any of these changes.
    identity = f"{token} {membership.server} {membership.repository} {team}"
    return SyncPlace(
        membership,
        token,
        sends=sends_by_itself(team),
        review=team.push == "review",
        off=off or ("" if token else _MISSING),
        credentials=sha256(identity.encode())[:16] if token else "",
    )


@dataclass(slots=True)
class Due:
    """When a directory is synced next, in monotonic seconds, and which paths were changed."""

    changed: set[str] = field(default_factory=set)
    pull: float = 0.0
    retry: float = 0.0
    _first: float = 0.0
    _last: float = 0.0
    _session: float = -_SESSION_SECONDS

    def noticed(self, paths: set[str], now: float) -> None:
        """Note that files changed; the sync starts soon after the last change."""
        self._last = now
        self._first = self._first if self.changed else now
        self.changed |= paths

    def visited(self, now: float) -> None:
        """Note that a session is active; its directory is pulled every few minutes."""
        self._session = now

    def next(self, now: float) -> float | None:
        """Return when the next sync is due, in monotonic seconds, ``None`` if none is needed."""
        times = [self.retry] if self.retry else []
        if self.changed:
            times.append(min(self._last + _QUIET_SECONDS, self._first + _CHANGED_SECONDS))
        if now < self._session + _SESSION_SECONDS:
            times.append(self.pull)
        return min(times, default=None)
