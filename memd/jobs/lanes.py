"""Whose turn it is in a lane, as a value, without waiting and without disk.

Rules of this file
1. Jobs of one lane never overlap; at most ``at_once`` lanes run side by side.
2. Among the jobs that may start, the oldest starts first.
3. A newer request replaces the waiting one of its session, kind and lane, never a running one.
4. A held job (it failed and waits to be tried again) keeps its place and blocks nobody. It is not
   held when its session has a newer request: that one has its messages too.
5. A job leaves only through ``remove``.
6. In a pause nothing starts; jobs are taken all the same, and what runs may end.
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
        self.running: set[str] = set()
        self._retrying: set[str] = set()
        self.paused = False

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[Ticket]:
        return iter(self._tickets.values())

    def __contains__(self, job: object) -> bool:
        return job in self._tickets

    def settled(self) -> bool:
        """Whether nothing more ends before something new happens."""
        return not self.running and (self.paused or not self._tickets)

    def waiting(self, kind: str, lane: str, session: str) -> str | None:
        """Return the job whose place a new request of this session takes (rule 3)."""
        for ticket in reversed(self._tickets.values()):
            same = (ticket.kind, ticket.lane, ticket.session) == (kind, lane, session)
            if same and ticket.job not in self.running:
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
        if self.paused or len(self.running) >= self._at_once:
            return None
        busy = {self._tickets[job].lane for job in self.running}
        for ticket in self._tickets.values():
            idle = ticket.job not in self.running and ticket.job not in self._retrying
            if idle and ticket.lane not in busy:
                return ticket
        return None

    def start(self, job: str) -> None:
        """Mark a job as at work."""
        self.running.add(job)

    def put_back(self, job: str, *, hold: bool) -> None:
        """Put a running job back in its place; with ``hold`` it starts only after ``release``."""
        self.running.discard(job)
        if hold:
            self._retrying.add(job)

    def release(self, job: str) -> None:
        """Let a held job have its turn again."""
        self._retrying.discard(job)

    def remove(self, job: str) -> None:
        """Take out a job that has ended."""
        self._tickets.pop(job, None)
        self.running.discard(job)
        self._retrying.discard(job)
