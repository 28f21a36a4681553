"""Whether a dream may begin, cheapest question first. Pure.

Rules of this file
- Each answer is the name of the gate that is closed, or "" when it is open. What each costs:
  the switches nothing; time one ``stat`` of the lock; sessions one scan of each transcript folder,
  at most once in ``dream.scan_minutes``; lock a read of the lock and a look at one process.
- ``force`` opens the gates of time and of sessions; nothing opens the switches and the lock.
- Times that lie in the future are not believed: a clock that was wrong once must neither keep
  dreams away for ever nor bring one after the other. A dream of the future is no dream; a
  transcript of the future counts once its time has come.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memd.core.settings import Settings
from memd.core.values import Project

SWITCHES = "switches"
MEMORY_OFF = "memory_off"
DREAM_OFF = "dream_off"
TIME = "time"
SESSIONS = "sessions"
LOCK = "lock"
_HOUR = 3600.0
_FUTURE_SECONDS = 60.0  # a file server's clock may be ahead of ours by so much
_BUSY = "another program is consolidating these memories"


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate as it stands; ``says`` tells a person why."""

    name: str
    open: bool
    says: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """All gates of a directory at one time, in their order; times are seconds since 1970.

    ``last`` is when memories were last consolidated, ``None`` for never and for a time that cannot
    be true. ``due`` is when the gate of time opens, ``None`` where it is open. ``sessions`` changed
    since ``last``.
    """

    last: float | None
    due: float | None
    sessions: int
    gates: tuple[Gate, ...]

    @property
    def gate(self) -> str:
        """The name of the first gate that is closed, "" when all are open."""
        return next((gate.name for gate in self.gates if not gate.open), "")


def switches(project: Project, settings: Settings) -> str:
    """Return the switch that is off; costs nothing."""
    if not (project.enabled and settings.enabled):
        return MEMORY_OFF
    return "" if settings.dream.enabled else DREAM_OFF


def believed(consolidated: float | None, now: float) -> float | None:
    """Return the time of the last dream, ``None`` for never and for a time yet to come."""
    if consolidated is None or consolidated > now + _FUTURE_SECONDS:
        return None
    return consolidated


def due(since: float | None, now: float, settings: Settings) -> float | None:
    """Return when the gate of time opens, ``None`` when it is open."""
    if since is None or max(0.0, now - since) >= settings.dream.min_hours * _HOUR:
        return None
    return since + settings.dream.min_hours * _HOUR


def time(since: float | None, now: float, settings: Settings) -> str:
    """Return TIME while the last dream is too recent."""
    return "" if due(since, now, settings) is None else TIME


def changed(
    transcripts: Mapping[str, float], since: float | None, now: float, *, without: str
) -> int:
    """Return how many sessions' transcripts changed since the last dream.

    ``transcripts`` maps the sessions to when their transcripts last changed; the session
    ``without`` is the one that asks, and does not count.
    """
    return sum(
        1
        for session, mtime in transcripts.items()
        if session != without
        and (since is None or mtime > since)
        and mtime <= now + _FUTURE_SECONDS
    )


def sessions(count: int, settings: Settings) -> str:
    """Return SESSIONS while too few transcripts changed since the last dream."""
    return SESSIONS if count < settings.dream.min_sessions else ""


def newest(scans: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sessions with their last change; one may have transcripts in several folders."""
    found: dict[str, float] = {}
    for scan in scans:
        for session, mtime in scan.items():
            found[session] = max(mtime, found.get(session, mtime))
    return found


def outlook(
    project: Project,
    settings: Settings,
    now: float,
    *,
    since: float | None,
    count: int,
    busy: bool,
    unusable: str = "",
) -> Outlook:
    """Return all gates with what they say.

    ``since`` is a believed time, ``count`` what changed since, ``busy`` whether somebody holds the
    lock, ``unusable`` why the lock cannot be taken by anybody.
    """
    off = switches(project, settings)
    opens = due(since, now, settings)
    few = sessions(count, settings)
    wanted = settings.dream.min_sessions
    why = {MEMORY_OFF: project.reason or "memory is switched off", DREAM_OFF: "dreams are off"}
    return Outlook(
        since,
        opens,
        count,
        (
            Gate(off or SWITCHES, not off, why.get(off, "memory and dreams are on")),
            Gate(TIME, opens is None, _of_time(since, now, settings)),
            Gate(SESSIONS, not few, f"{count} of {wanted} sessions since the last dream"),
            Gate(LOCK, not busy, unusable or (_BUSY if busy else "nobody is at it")),
        ),
    )


def _of_time(since: float | None, now: float, settings: Settings) -> str:
    if since is None:
        return "there was no dream yet"
    ago = max(0.0, now - since) / _HOUR
    return f"the last dream was {ago:.1f} of {settings.dream.min_hours:g} hours ago"
