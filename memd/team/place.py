"""Find a directory's server and whether it may sync, and keep when it is synced next. Blocks."""

from collections.abc import Callable

from msgspec import Struct, field

from memd.base.settings import Settings
from memd.base.text import sha256
from memd.team.errors import team_not_joined
from memd.team.joining import moved
from memd.team.membership import Memberships
from memd.team.values import Membership

_QUIET_SECONDS = 2.0  # a sync starts this long after the last change
_CHANGED_SECONDS = 30.0  # but not later than this after the first change
_SESSION_SECONDS = 30 * 60.0  # a session counts as over this long after its last call
_UNAUTHORIZED = "there is no token for it"
_SYNC_IS_OFF = "team.enabled is false"


class SyncPlace(Struct, frozen=True):
    """A directory's membership and its token.

    ``off`` says why the directory does not sync, or is "". ``credentials`` is a digest of token and
    settings, "" without a token.
    """

    membership: Membership
    token: str
    off: str
    credentials: str


def place_of(
    memberships: Memberships, settings: Callable[[str], Settings], directory: str
) -> SyncPlace:
    """Return the membership, token and sync settings of a directory. Raises Off."""
    membership = memberships.of(directory)
    if membership is None:
        raise team_not_joined(directory)
    token, team = memberships.token(membership), settings(membership.root).team
    off = _SYNC_IS_OFF if team.enabled == "false" else moved(membership)
    # A pause ends if any of these changes.
    identity = f"{token} {membership.server} {membership.repository} {team}"
    return SyncPlace(
        membership,
        token,
        off=off or ("" if token else _UNAUTHORIZED),
        credentials=sha256(identity.encode())[:16] if token else "",
    )


class Due(Struct):
    """When a directory is synced next, in monotonic seconds, and which paths were changed.

    ``changed`` are the paths that changed since the last sync. ``pull`` is when the next pull in a
    session is due. ``retry`` is when a sync that failed is tried again, 0 for never.
    """

    changed: set[str] = field(default_factory=set)
    pull: float = 0.0
    retry: float = 0.0
    _first_change: float = 0.0
    _last_change: float = 0.0
    _last_visit: float = -_SESSION_SECONDS  # when a session was active last

    def noticed(self, paths: set[str], now: float) -> None:
        """Note that files changed; the sync starts soon after the last change."""
        self._last_change = now
        if not self.changed:
            self._first_change = now
        self.changed |= paths

    def visited(self, now: float) -> None:
        """Note that a session is active; its directory is pulled every few minutes."""
        self._last_visit = now

    def next(self, now: float) -> float | None:
        """Return when the next sync is due, in monotonic seconds, ``None`` if none is needed."""
        times = [self.retry] if self.retry else []
        if self.changed:
            latest = self._first_change + _CHANGED_SECONDS
            times.append(min(self._last_change + _QUIET_SECONDS, latest))
        if now < self._last_visit + _SESSION_SECONDS:
            times.append(self.pull)
        return min(times, default=None)
