"""Whose turn it is in a lane, as a value, without waiting and without disk.

Rules of this file
1. Jobs of one lane never overlap; different lanes run side by side, ``at_once`` of them at most.
2. The order is the order of acceptance: among the jobs that may start, the oldest starts first.
3. A newer request of a session takes the place of that session's waiting one of the same kind and
   lane (it holds more messages), never that of another session, and never that of a running job.
4. A held job (it failed and waits to be tried again) keeps its place but does not block others.
   One whose session has asked anew meanwhile is superseded: to try it again after the newer
   request would be to go back in time, so it is not held.
5. A job leaves only through ``remove``; nothing else loses one.
6. While it is paused nothing starts; jobs are taken all the same, and what runs may end.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ticket:
    """A job's place in the order: its id and what decides about its turn."""

    job: str
    kind: str
    lane: str
    session: str


class Lanes:
    """All unfinished jobs in the order in which they were accepted."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._tickets: dict[str, Ticket] = {}
        self._running: set[str] = set()
        self._retrying: set[str] = set()
        self.paused = False

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[Ticket]:
        return iter(self._tickets.values())

    def __contains__(self, job: object) -> bool:
        return job in self._tickets

    def running(self, job: str) -> bool:
        """Whether this job is at work."""
        return job in self._running

    def idle(self) -> bool:
        """Whether no job is at work."""
        return not self._running

    def settled(self) -> bool:
        """Whether nothing more ends before something new happens."""
        return self.idle() and (self.paused or not self._tickets)

    def waiting(self, kind: str, lane: str, session: str) -> str | None:
        """Return the job whose place a new request of this session takes (rule 3)."""
        for ticket in reversed(self._tickets.values()):
            same = (ticket.kind, ticket.lane, ticket.session) == (kind, lane, session)
            if same and ticket.job not in self._running:
                return ticket.job
        return None

    def superseded(self, job: str) -> bool:
        """Whether a newer request of a running job's session waits (rule 4)."""
        ticket = self._tickets[job]
        return self.waiting(ticket.kind, ticket.lane, ticket.session) is not None

    def put(self, ticket: Ticket) -> None:
        """Add a job at the end."""
        self._tickets[ticket.job] = ticket

    def next(self) -> Ticket | None:
        """Return the job that may start now, or ``None`` (rules 1, 2, 4 and 6)."""
        if self.paused or len(self._running) >= self._at_once:
            return None
        busy = {self._tickets[job].lane for job in self._running}
        for ticket in self._tickets.values():
            idle = ticket.job not in self._running and ticket.job not in self._retrying
            if idle and ticket.lane not in busy:
                return ticket
        return None

    def start(self, job: str) -> None:
        """Mark a job as at work."""
        self._running.add(job)

    def hold(self, job: str) -> None:
        """Put a running job back in its place, to be tried again later."""
        self._running.discard(job)
        self._retrying.add(job)

    def back(self, job: str) -> None:
        """Put a running job back in its place, to start again when its turn comes."""
        self._running.discard(job)

    def release(self, job: str) -> None:
        """Let a held job have its turn again."""
        self._retrying.discard(job)

    def remove(self, job: str) -> None:
        """Take out a job that has ended."""
        self._tickets.pop(job, None)
        self._running.discard(job)
        self._retrying.discard(job)
