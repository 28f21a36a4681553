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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from memd.core.clock import Clock
from memd.core.recent import Recent
from memd.core.settings import Settings
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


def last_change_by_session(scans: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sessions with their last change; one may have transcripts in several folders."""
    result: dict[str, float] = {}
    for scan in scans:
        for session, mtime in scan.items():
            result[session] = max(mtime, result.get(session, mtime))
    return result


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
    wanted, reported = settings.dream, conditions.pressure
    apart = min(_APART_SECONDS, wanted.min_hours * _HOUR)
    why = ""
    if conditions.paused:
        why = "background work is paused"
    elif conditions.prompts:
        why = "a prompt is being answered"
    elif reported.on_battery and not wanted.on_battery:
        why = "the machine runs on battery"
    elif wanted.max_load and reported.load is not None and reported.load > wanted.max_load:
        why = f"the load is {reported.load:.2f} of each core, above {wanted.max_load:g}"
    elif (
        reported.free_memory is not None
        and reported.free_memory < wanted.free_memory_mb * _MEBIBYTE
    ):
        free = reported.free_memory // _MEBIBYTE
        why = f"{free} MiB of memory are free, fewer than {wanted.free_memory_mb}"
    elif conditions.began is not None and conditions.began < apart:
        why = "the last automatic dream began less than an hour ago"
    return why


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


@dataclass(frozen=True, slots=True)
class _Scan:
    """The transcripts of a folder as they were at ``at`` on the monotonic clock."""

    at: float
    sessions: Mapping[str, float]


class Gatekeeper:
    """Knows when it last looked at transcripts, and asks the rest anew each time."""

    def __init__(self, clock: Clock, sources: Sources | None = None) -> None:
        self._clock = clock
        self._sources = sources or Sources()
        self._scans: Recent[tuple[str, str], _Scan] = Recent()

    def closed(self, project: Project, settings: Settings, *, force: bool, session: str) -> str:
        """Return the first gate that is closed, "" when a dream may begin.

        ``session`` is the session that asks. With ``force`` a lock that cannot be used is told:
        LockUnusableError; otherwise it is a closed gate.
        """
        off = switches(project, settings)
        if off:
            return off
        if not force:
            now, since = self._since(project)
            if time(since, now, settings):
                return TIME
            count = changed(self._scan(project, settings), since, now, without=session)
            if sessions(count, settings):
                return SESSIONS
        try:
            return LOCK if self._busy(project) else ""
        except LockUnusableError:
            if force:
                raise
            return LOCK

    def outlook(self, project: Project, settings: Settings) -> Outlook:
        """Return all gates as they stand; takes nothing and raises nothing."""
        now, since = self._since(project)
        count = changed(self._scan(project, settings), since, now, without="")
        unusable = ""
        try:
            busy = self._busy(project)
        except LockUnusableError as error:
            busy, unusable = True, error.sentence
        return outlook(
            project, settings, now, since=since, count=count, busy=busy, unusable=unusable
        )

    def _since(self, project: Project) -> tuple[float, float | None]:
        """Return what time it is, and when memories were last consolidated."""
        at = self._sources.consolidated_at(project.memory_dir)
        now = self._clock.now()
        return now, believed(at, now)

    def _busy(self, project: Project) -> bool:
        return self._sources.busy(project.memory_dir, self._clock.now(), self._sources.is_alive)

    def _scan(self, project: Project, settings: Settings) -> dict[str, float]:
        """Return the sessions of a project, from a look that is recent enough."""
        now = self._clock.monotonic()
        fresh = settings.dream.scan_minutes * _MINUTE
        scans = []
        for folder in transcript_folders(project):
            known = self._scans.get((project.memory_dir, folder))
            if known is None or now - known.at >= fresh:
                known = _Scan(now, self._sources.sessions(folder))
                self._scans[project.memory_dir, folder] = known
            scans.append(known.sessions)
        return last_change_by_session(scans)
