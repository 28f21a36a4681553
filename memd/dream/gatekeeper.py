"""Asking the gates: none costs more than ``gates.py`` says, and none is asked after a closed one.

Blocks: call it from a worker thread, and for one memory directory in one thread at a time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memd.core.clock import Clock
from memd.core.recent import Recent
from memd.core.settings import Settings
from memd.core.values import Project
from memd.dream import gates
from memd.dream.gates import Outlook
from memd.projects.project import transcript_folders
from memd.transcripts.sessions import sessions_of
from memd.watch import locks
from memd.watch.locks import LockUnusableError

_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Looks:
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

    def __init__(self, clock: Clock, looks: Looks | None = None) -> None:
        self._clock = clock
        self._looks = looks or Looks()
        self._scans: Recent[tuple[str, str], _Scan] = Recent()

    def closed(self, project: Project, settings: Settings, *, force: bool, session: str) -> str:
        """Return the first gate that is closed, "" when a dream may begin.

        ``session`` is the session that asks. With ``force`` a lock that cannot be used is told:
        LockUnusableError; otherwise it is a closed gate.
        """
        off = gates.switches(project, settings)
        if off:
            return off
        if not force:
            now, since = self._since(project)
            if gates.time(since, now, settings):
                return gates.TIME
            count = gates.changed(self._scan(project, settings), since, now, without=session)
            if gates.sessions(count, settings):
                return gates.SESSIONS
        try:
            return gates.LOCK if self._busy(project) else ""
        except LockUnusableError:
            if force:
                raise
            return gates.LOCK

    def outlook(self, project: Project, settings: Settings) -> Outlook:
        """Return all gates as they stand; takes nothing and raises nothing."""
        now, since = self._since(project)
        count = gates.changed(self._scan(project, settings), since, now, without="")
        unusable = ""
        try:
            busy = self._busy(project)
        except LockUnusableError as error:
            busy, unusable = True, error.sentence
        return gates.outlook(
            project, settings, now, since=since, count=count, busy=busy, unusable=unusable
        )

    def _since(self, project: Project) -> tuple[float, float | None]:
        """Return what time it is, and when memories were last consolidated."""
        at = self._looks.consolidated_at(project.memory_dir)
        now = self._clock.now()
        return now, gates.believed(at, now)

    def _busy(self, project: Project) -> bool:
        return self._looks.busy(project.memory_dir, self._clock.now(), self._looks.is_alive)

    def _scan(self, project: Project, settings: Settings) -> dict[str, float]:
        """Return the sessions of a project, from a look that is recent enough."""
        now = self._clock.monotonic()
        fresh = settings.dream.scan_minutes * _MINUTE
        scans = []
        for folder in transcript_folders(project):
            known = self._scans.get((project.memory_dir, folder))
            if known is None or now - known.at >= fresh:
                known = _Scan(now, self._looks.sessions(folder))
                self._scans[project.memory_dir, folder] = known
            scans.append(known.sessions)
        return gates.newest(scans)
