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
- An automatic dream also waits while prompts are answered and on battery. Two of a directory begin
  at least an hour apart on the monotonic clock, or ``dream.min_hours`` if that is less. So neither
  a jump of the wall clock nor a dream that always fails starts many dreams.
- ``Gatekeeper`` blocks: call it in a worker thread, in one thread at a time for a directory.
"""

from collections.abc import Callable, Mapping
from math import inf

from msgspec import Struct

from memd.base.clock import Clock
from memd.base.errors import Storage
from memd.base.recent import Recent
from memd.base.settings import DreamSettings, Settings
from memd.base.values import Project
from memd.projects.project import transcript_folders
from memd.store import lock
from memd.store.lock import IsAlive
from memd.transcripts.sessions import sessions_of

SWITCHES = "switches"
MEMORY_OFF = "memory_off"
DREAM_OFF = "dream_off"
TIME = "time"
SESSIONS = "sessions"
LOCK = "lock"
_HOUR = 3600.0
_SCAN_SECONDS = 600.0  # between two looks at the transcripts of a project
_APART_SECONDS = _HOUR  # between the beginnings of two automatic dreams of a directory
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


class Conditions(Struct, frozen=True):
    """The conditions that an automatic dream depends on; ``paused`` is all background work.

    ``prompts`` counts the prompts being answered now. ``began`` is how many seconds ago the last
    automatic dream of this directory began, ``None`` if there was none.
    """

    paused: bool = False
    prompts: int = 0
    on_battery: bool = False
    began: float | None = None


def reason_to_wait(conditions: Conditions, settings: Settings) -> str:
    """Return why an automatic dream has to wait, as a sentence; "" if it may begin."""
    if conditions.paused:
        return "background work is paused"
    if conditions.prompts > 0:
        return "a prompt is being answered"
    if conditions.on_battery:
        return "the machine runs on battery"
    seconds_apart = min(_APART_SECONDS, settings.dream.min_hours * _HOUR)
    if conditions.began is not None and conditions.began < seconds_apart:
        return "the last automatic dream began less than an hour ago"
    return ""


class Sources(Struct, frozen=True):
    """The functions that the gates read files and processes with.

    ``consolidated_at`` and ``sessions`` never raise. ``busy`` takes the directory, the time and
    ``is_alive``, and may raise Storage.
    """

    consolidated_at: Callable[[str], float | None] = lock.consolidated_at
    sessions: Callable[[str], Mapping[str, float]] = sessions_of
    busy: Callable[[str, float, IsAlive], bool] = lock.is_busy
    is_alive: IsAlive = lock.is_alive


class Gatekeeper:
    """Checks the gates of a directory; scans of transcript folders are cached."""

    def __init__(self, clock: Clock, sources: Sources | None = None) -> None:
        self._clock = clock
        self._sources = sources or Sources()
        # By memory directory and transcript folder: the monotonic time of the scan, the sessions.
        self._scans: Recent[tuple[str, str], tuple[float, Mapping[str, float]]] = Recent()

    def first_closed_gate(
        self, project: Project, settings: Settings, *, force: bool, session: str
    ) -> str:
        """Return the name of the first closed gate, "" if a dream may begin.

        ``session`` is the session that asks, which does not count as changed. An unusable lock
        counts as a closed gate; with ``force`` Storage is raised instead.
        """
        gate = switch_gate(project, settings)
        if gate.open and not force:
            now, last = self._last_dream(project)
            gate = _time_gate(last, now, settings.dream)
            if gate.open:
                changed = self._changed_sessions(project, last, now, without=session)
                gate = _session_gate(changed, settings.dream)
        if gate.open:
            gate = self._lock_gate(project, raising=force)
        return "" if gate.open else gate.name

    def outlook(self, project: Project, settings: Settings) -> Outlook:
        """Return the state of all gates; never raises and does not take the lock."""
        now, last = self._last_dream(project)
        count = self._changed_sessions(project, last, now)
        time = _time_gate(last, now, settings.dream)
        sessions = _session_gate(count, settings.dream)
        due = None if time.open or last is None else last + settings.dream.min_hours * _HOUR
        gates = (switch_gate(project, settings), time, sessions, self._lock_gate(project))
        return Outlook(last, due, count, gates)

    def _last_dream(self, project: Project) -> tuple[float, float | None]:
        """Return the time now and that of the last consolidation, in seconds since 1970.

        The latter is ``None`` if there was none or it is in the future.
        """
        last = self._sources.consolidated_at(project.memory_dir)
        now = self._clock.now()
        if last is not None and last > now + _FUTURE_SECONDS:
            last = None
        return now, last

    def _lock_gate(self, project: Project, *, raising: bool = False) -> Gate:
        """Return the gate of the lock; a lock that cannot be used closes it.

        With ``raising``, such a lock raises Storage instead.
        """
        now, sources = self._clock.now(), self._sources
        try:
            busy = sources.busy(project.memory_dir, now, sources.is_alive)
        except Storage as error:
            if raising:
                raise
            return Gate(LOCK, open=False, says=error.sentence)
        return Gate(LOCK, not busy, _BUSY if busy else "nobody is at it")

    def _changed_sessions(
        self, project: Project, since: float | None, now: float, *, without: str = ""
    ) -> int:
        """Return how many sessions changed since a time, not counting ``without``.

        A folder is scanned again if its last scan is older than 10 minutes.
        """
        changed: set[str] = set()
        monotonic = self._clock.monotonic()
        for folder in transcript_folders(project):
            scanned_at, sessions = self._scans.get((project.memory_dir, folder), (-inf, {}))
            if monotonic - scanned_at >= _SCAN_SECONDS:
                sessions = self._sources.sessions(folder)
                self._scans[project.memory_dir, folder] = monotonic, sessions
            changed.update(
                session
                for session, mtime in sessions.items()
                if (since is None or mtime > since) and mtime <= now + _FUTURE_SECONDS
            )
        return len(changed - {without})
