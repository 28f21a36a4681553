"""Whether a dream may begin: the gates, cheapest first, and whether the machine is quiet.

Rules of this file
- Each answer is the name of the gate that is closed, or "" when it is open. What each costs:
  the switches nothing; time one ``stat`` of the lock; sessions one scan of each transcript folder,
  at most once in ``dream.scan_minutes``; lock a read of the lock and a look at one process.
- ``force`` opens the gates of time and of sessions; nothing opens the switches and the lock.
- Times that lie in the future are not believed: a clock that was wrong once must neither keep
  dreams away for ever nor bring one after the other. A dream of the future is no dream; a
  transcript of the future counts once its time has come.
- A dream that nobody asked for also waits for a quiet machine; what the system does not tell does
  not count. Two of a directory begin at least an hour apart on a clock that nobody sets, or
  ``dream.min_hours`` where that is less: neither a wall clock that jumps nor a dream that always
  fails brings a storm.
- ``Gatekeeper`` blocks: call it in a worker thread, for one memory directory in one at a time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memd.core.clock import Clock
from memd.core.recent import Recent
from memd.core.settings import DreamSettings, Settings
from memd.core.values import Project
from memd.projects.project import transcript_folders
from memd.transcripts.sessions import sessions_of
from memd.watch import locks
from memd.watch.locks import LockUnusableError

SWITCHES = "switches"
MEMORY_OFF = "memory_off"
DREAM_OFF = "dream_off"
TIME = "time"
SESSIONS = "sessions"
LOCK = "lock"
_MEBIBYTE = 1024 * 1024
_MINUTE = 60.0
_HOUR = 3600.0
_APART_SECONDS = _HOUR
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


def switches(project: Project, settings: Settings) -> Gate:
    """Return the gate of the switches, named after the one that is off; costs nothing."""
    if not (project.enabled and settings.enabled):
        return Gate(MEMORY_OFF, open=False, says=project.reason or "memory is switched off")
    if not settings.dream.enabled:
        return Gate(DREAM_OFF, open=False, says="dreams are off")
    return Gate(SWITCHES, open=True, says="memory and dreams are on")


def _time(last: float | None, now: float, wanted: DreamSettings) -> Gate:
    if last is None:
        return Gate(TIME, open=True, says="there was no dream yet")
    hours = max(0.0, now - last) / _HOUR
    says = f"the last dream was {hours:.1f} of {wanted.min_hours:g} hours ago"
    return Gate(TIME, max(0.0, now - last) >= wanted.min_hours * _HOUR, says)


def _sessions(count: int, wanted: DreamSettings) -> Gate:
    says = f"{count} of {wanted.min_sessions} sessions since the last dream"
    return Gate(SESSIONS, count >= wanted.min_sessions, says)


@dataclass(frozen=True, slots=True)
class Pressure:
    """How busy the machine is; ``None`` is what it does not tell.

    ``load`` is the average of the last minute for each core, ``free_memory`` bytes that can be had
    without swapping.
    """

    on_battery: bool | None = None
    load: float | None = None
    free_memory: int | None = None


_UNTOLD = Pressure()


@dataclass(frozen=True, slots=True)
class Conditions:
    """What an automatic dream goes by; so many ``prompts`` are being answered now.

    ``began`` is how many seconds ago the last automatic dream of this directory began.
    """

    paused: bool = False
    prompts: int = 0
    pressure: Pressure = _UNTOLD
    began: float | None = None


def waits(conditions: Conditions, settings: Settings) -> str:
    """Return why an automatic dream waits, in words, "" when it need not."""
    wanted, machine = settings.dream, conditions.pressure
    apart = min(_APART_SECONDS, wanted.min_hours * _HOUR)
    load, least = machine.load or 0.0, wanted.free_memory_mb
    free = least if machine.free_memory is None else machine.free_memory // _MEBIBYTE
    began = apart if conditions.began is None else conditions.began
    reasons = (
        (conditions.paused, "background work is paused"),
        (conditions.prompts > 0, "a prompt is being answered"),
        (machine.on_battery and not wanted.on_battery, "the machine runs on battery"),
        (
            0 < wanted.max_load < load,
            f"the load is {load:.2f} of each core, above {wanted.max_load:g}",
        ),
        (free < least, f"{free} MiB of memory are free, fewer than {least}"),
        (began < apart, "the last automatic dream began less than an hour ago"),
    )
    return next((why for true, why in reasons if true), "")


@dataclass(frozen=True, slots=True)
class Sources:
    """What the gates look at. ``consolidated_at`` and ``sessions`` never raise.

    ``busy`` takes the directory, the time and a way to tell who lives, and may raise
    LockUnusableError.
    """

    consolidated_at: Callable[[str], float | None] = locks.consolidated_at
    sessions: Callable[[str], Mapping[str, float]] = sessions_of
    busy: Callable[[str, float, locks.Alive], bool] = locks.busy
    is_alive: locks.Alive = locks.alive


class Gatekeeper:
    """Knows when it last looked at transcripts, and asks the rest anew each time."""

    def __init__(self, clock: Clock, sources: Sources | None = None) -> None:
        self._clock = clock
        self._sources = sources or Sources()
        # By directory and folder: when it was looked at on the monotonic clock, and its sessions.
        self._scans: Recent[tuple[str, str], tuple[float, Mapping[str, float]]] = Recent()

    def closed(self, project: Project, settings: Settings, *, force: bool, session: str) -> str:
        """Return the first gate that is closed, "" when a dream may begin.

        ``session`` is the session that asks. With ``force`` a lock that cannot be used is told:
        LockUnusableError; otherwise it is a closed gate.
        """
        gate = switches(project, settings)
        if gate.open and not force:
            now, last = self._last(project)
            gate = _time(last, now, settings.dream)
            if gate.open:
                count = self._changed(project, settings, last, now, without=session)
                gate = _sessions(count, settings.dream)
        if gate.open:
            gate = self._lock(project, tell=force)
        return "" if gate.open else gate.name

    def outlook(self, project: Project, settings: Settings) -> Outlook:
        """Return all gates as they stand; takes nothing and raises nothing."""
        now, last = self._last(project)
        count = self._changed(project, settings, last, now)
        time = _time(last, now, settings.dream)
        few = _sessions(count, settings.dream)
        due = None if time.open or last is None else last + settings.dream.min_hours * _HOUR
        gates = (switches(project, settings), time, few, self._lock(project))
        return Outlook(last, due, count, gates)

    def _last(self, project: Project) -> tuple[float, float | None]:
        """Return what time it is, and when memories were last consolidated, if that can be."""
        at = self._sources.consolidated_at(project.memory_dir)
        now = self._clock.now()
        return now, None if at is None or at > now + _FUTURE_SECONDS else at

    def _lock(self, project: Project, *, tell: bool = False) -> Gate:
        """Return the gate of the lock. Raises LockUnusableError if that is to be told."""
        now, sources = self._clock.now(), self._sources
        try:
            busy = sources.busy(project.memory_dir, now, sources.is_alive)
        except LockUnusableError as error:
            if tell:
                raise
            return Gate(LOCK, open=False, says=error.sentence)
        return Gate(LOCK, not busy, _BUSY if busy else "nobody is at it")

    def _changed(
        self,
        project: Project,
        settings: Settings,
        since: float | None,
        now: float,
        *,
        without: str = "",
    ) -> int:
        """Return how many sessions but one changed, from a look that is recent enough."""
        changed: set[str] = set()
        at, fresh = self._clock.monotonic(), settings.dream.scan_minutes * _MINUTE
        for folder in transcript_folders(project):
            known = self._scans.get((project.memory_dir, folder))
            if known is None or at - known[0] >= fresh:
                known = at, self._sources.sessions(folder)
                self._scans[project.memory_dir, folder] = known
            changed.update(
                session
                for session, mtime in known[1].items()
                if (since is None or mtime > since) and mtime <= now + _FUTURE_SECONDS
            )
        return len(changed - {without})
