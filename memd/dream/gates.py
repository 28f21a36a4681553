"""Whether a dream may begin, cheapest question first (spec 5.1). Pure.

Rules of this file
- Each answer is the name of the gate that is closed, or "" when it is open.
- ``force`` opens the gates of time and of sessions; nothing opens the switches and the lock.
- A time of the last dream that lies in the future is no time at all: a clock that was wrong once
  must not keep dreams away for ever.
"""

from collections.abc import Iterable, Mapping

from memd.core.settings import Settings
from memd.core.values import Project

MEMORY_OFF = "memory_off"
DREAM_OFF = "dream_off"
TIME = "time"
SESSIONS = "sessions"
LOCK = "lock"
_HOUR = 3600.0
_FUTURE_SECONDS = 60.0  # a file server's clock may be ahead of ours by so much


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


def time(since: float | None, now: float, settings: Settings) -> str:
    """Return TIME while the last dream is too recent."""
    if since is None:
        return ""
    return TIME if now - since < settings.dream.min_hours * _HOUR else ""


def sessions(
    transcripts: Mapping[str, float], since: float | None, settings: Settings, *, without: str
) -> str:
    """Return SESSIONS while too few transcripts changed since the last dream.

    ``transcripts`` maps the sessions to when their transcripts last changed; the session
    ``without`` is the one that asks, and does not count.
    """
    changed = sum(
        1
        for session, mtime in transcripts.items()
        if session != without and (since is None or mtime > since)
    )
    return SESSIONS if changed < settings.dream.min_sessions else ""


def newest(scans: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the sessions with their last change; one may have transcripts in several folders."""
    found: dict[str, float] = {}
    for session, mtime in scans:
        found[session] = max(mtime, found.get(session, mtime))
    return found
