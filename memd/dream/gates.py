"""Decide whether a dream may begin: check its gates, cheapest first.

A gate is one condition for a dream; all gates must be open.

Rules of this file
- The gates and their cost: the switches nothing; time one ``stat`` of the lock; sessions one scan
  of each transcript folder, at most once in 10 minutes; lock a read of the lock file
  and a check of one process.
- ``force`` skips the gates of time and of sessions, but never the switches and the lock.
- Times in the future are ignored: a clock that was wrong once must neither block dreams for ever
  nor start one after the other. A last dream in the future counts as none; a transcript in the
  future counts once its time has come.
- ``Gatekeeper`` blocks: call it in a worker thread, in one thread at a time for a directory.
"""

from collections.abc import Iterator, Mapping
from math import inf

from msgspec import Struct

from memd.base.clock import Clock
from memd.base.errors import Storage
from memd.base.recent import Recent
from memd.base.settings import DreamSettings, Settings
from memd.base.values import Project
from memd.projects.project import transcript_folders
from memd.store import lock
from memd.transcripts.sessions import sessions_of

SWITCHES = "switches"
MEMORY_OFF = "memory_off"
DREAM_OFF = "dream_off"
TIME = "time"
SESSIONS = "sessions"
LOCK = "lock"
_HOUR = 3600.0
_SCAN_SECONDS = 600.0  # between two looks at the transcripts of a project
_FUTURE_SECONDS = 60.0  # a file server's clock may be ahead of ours by so much
_BUSY = "another program is consolidating these memories"


class Gate(Struct, frozen=True):
    """The state of one gate; ``says`` explains it to a person."""

    name: str
    open: bool
    says: str


class Outlook(Struct, frozen=True):
    """The state of all gates of a directory, in their order; times are seconds since 1970.

    ``last`` is when memories were last consolidated, ``None`` for never or a time in the future.
    ``due`` is when the gate of time opens, ``None`` if it is open. ``sessions`` counts the
    sessions that changed since ``last``.
    """

    last: float | None
    due: float | None
    sessions: int
    gates: tuple[Gate, ...]

    @property
    def gate(self) -> str:
        """The name of the first gate that is closed, "" when all are open."""
        return next((gate.name for gate in self.gates if not gate.open), "")


def switch_gate(project: Project, settings: Settings) -> Gate:
    """Return the gate of the settings, open if memory and dreams are on in this project."""
    if not project.enabled:
        return Gate(MEMORY_OFF, open=False, says=project.reason)
    if not settings.dream.enabled:
        return Gate(DREAM_OFF, open=False, says="dreams are off")
    return Gate(SWITCHES, open=True, says="memory and dreams are on")


def _time_gate(last: float | None, now: float, settings: DreamSettings) -> Gate:
    """Return the gate that opens ``min_hours`` after the last dream."""
    if last is None:
        return Gate(TIME, open=True, says="there was no dream yet")
    seconds = max(0.0, now - last)
    hours = seconds / _HOUR
    says = f"the last dream was {hours:.1f} of {settings.min_hours:g} hours ago"
    return Gate(TIME, seconds >= settings.min_hours * _HOUR, says)


def _session_gate(count: int, settings: DreamSettings) -> Gate:
    """Return the gate that opens once ``min_sessions`` sessions have changed."""
    says = f"{count} of {settings.min_sessions} sessions since the last dream"
    return Gate(SESSIONS, count >= settings.min_sessions, says)


class Gatekeeper:
    """Checks the gates of a directory; scans of transcript folders are cached."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # By memory directory and transcript folder: the monotonic time of the scan, the sessions.
        self._scans: Recent[tuple[str, str], tuple[float, Mapping[str, float]]] = Recent()

    def first_closed_gate(
        self, project: Project, settings: Settings, *, force: bool, session: str
    ) -> str:
        """Return the name of the first closed gate, "" if a dream may begin.

        ``session`` is the session that asks, which does not count as changed. An unusable lock
        counts as a closed gate; with ``force`` Storage is raised instead.
        """
        gates = self._gates(project, settings, force=force, session=session)
        return next((gate.name for gate in gates if not gate.open), "")

    def outlook(self, project: Project, settings: Settings) -> Outlook:
        """Return the state of all gates; never raises and does not take the lock."""
        gates = tuple(self._gates(project, settings))
        last = self._last_dream(project)
        due = None if last is None else last + settings.dream.min_hours * _HOUR
        due = None if due is None or due <= self._clock.now() else due
        return Outlook(last, due, self._count_changed(project, last), gates)

    def _gates(
        self, project: Project, settings: Settings, *, force: bool = False, session: str = ""
    ) -> Iterator[Gate]:
        """Yield the gates; each is checked when it is its turn. ``force`` as above."""
        yield switch_gate(project, settings)
        if not force:
            last = self._last_dream(project)
            yield _time_gate(last, self._clock.now(), settings.dream)
            yield _session_gate(self._count_changed(project, last, session), settings.dream)
        try:
            is_busy = lock.is_busy(project.memory_dir, self._clock.now())
            yield Gate(LOCK, not is_busy, _BUSY if is_busy else "nobody is at it")
        except Storage as error:
            if force:
                raise
            yield Gate(LOCK, open=False, says=error.sentence)

    def _last_dream(self, project: Project) -> float | None:
        """Return when memories were last consolidated, in seconds since 1970.

        The result is ``None`` if there was no such time or it is in the future.
        """
        last = lock.consolidated_at(project.memory_dir)
        return None if last is None or last > self._clock.now() + _FUTURE_SECONDS else last

    def _count_changed(self, project: Project, since: float | None, without: str = "") -> int:
        """Return how many sessions changed since a time, not counting ``without``.

        A folder is scanned again if its last scan is older than 10 minutes.
        """
        changed: set[str] = set()
        now, monotonic = self._clock.now(), self._clock.monotonic()
        for folder in transcript_folders(project):
            scanned_at, sessions = self._scans.get((project.memory_dir, folder), (-inf, {}))
            if monotonic - scanned_at >= _SCAN_SECONDS:
                sessions = sessions_of(folder)
                self._scans[project.memory_dir, folder] = monotonic, sessions
            changed.update(
                session
                for session, mtime in sessions.items()
                if (since is None or mtime > since) and mtime <= now + _FUTURE_SECONDS
            )
        return len(changed - {without})
