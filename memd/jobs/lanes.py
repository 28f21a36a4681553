"""Decide which job may start next, as a value: without waiting and without disk.

Rules of this file
1. Jobs of one lane never overlap; at most ``at_once`` lanes run at the same time.
2. Among the jobs that may start, the oldest starts first.
3. A newer request replaces the waiting one of its session, kind and lane, never a running one.
4. A held job (it failed and waits for its next try) keeps its place and blocks no other job. It is
   not held if its session has a newer request, as that one covers its messages too.
5. A job is removed only by ``remove``.
6. In a pause no job starts; jobs are still accepted, and running ones may end.
"""

from collections.abc import Iterator

from msgspec import Struct


class Ticket(Struct, frozen=True):
    """A job in the queue: its id and the facts that decide when it may start."""

    job: str
    kind: str
    lane: str
    session: str


class Lanes:
    """All unfinished jobs in the order in which they were accepted."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once  # how many lanes may run at the same time
        self._tickets: dict[str, Ticket] = {}  # by job id, in the order of acceptance
        self.running: set[str] = set()  # job ids
        self._held_jobs: set[str] = set()  # ids of jobs that wait for their next try
        self.paused = False

    def __len__(self) -> int:
        """Return how many jobs are unfinished."""
        return len(self._tickets)

    def __iter__(self) -> Iterator[Ticket]:
        """Iterate over the unfinished jobs, the oldest first."""
        return iter(self._tickets.values())

    def __contains__(self, job: object) -> bool:
        """Return whether a job is unfinished."""
        return job in self._tickets

    def is_idle(self) -> bool:
        """Return whether no job runs and none will start unless something changes."""
        return not self.running and (self.paused or not self._tickets)

    def waiting_job(self, kind: str, lane: str, session: str) -> str | None:
        """Return the waiting job that a new request replaces, ``None`` for none (rule 3)."""
        for ticket in reversed(self._tickets.values()):
            is_same = (ticket.kind, ticket.lane, ticket.session) == (kind, lane, session)
            if is_same and ticket.job not in self.running:
                return ticket.job
        return None

    def has_newer_request(self, job: str) -> bool:
        """Return whether a newer request of a running job's session is waiting (rule 4)."""
        ticket = self._tickets[job]
        return self.waiting_job(ticket.kind, ticket.lane, ticket.session) is not None

    def put(self, ticket: Ticket) -> None:
        """Add a new job behind all others."""
        self._tickets[ticket.job] = ticket

    def next_ticket(self) -> Ticket | None:
        """Return the job that may start now, or ``None`` (rules 1, 2, 4 and 6)."""
        if self.paused or len(self.running) >= self._at_once:
            return None
        busy_lanes = {self._tickets[job].lane for job in self.running}
        for ticket in self._tickets.values():
            # The lane of a running job is busy, so a job that runs is passed over too.
            if ticket.lane not in busy_lanes and ticket.job not in self._held_jobs:
                return ticket
        return None

    def start(self, job: str) -> None:
        """Mark a job as running."""
        self.running.add(job)

    def put_back(self, job: str, *, hold: bool) -> None:
        """Mark a running job as waiting again; with ``hold`` it starts only after ``release``."""
        self.running.discard(job)
        if hold:
            self._held_jobs.add(job)

    def release(self, job: str) -> None:
        """Allow a held job to start again."""
        self._held_jobs.discard(job)

    def remove(self, job: str) -> None:
        """Remove an ended job."""
        self._tickets.pop(job, None)
        self.running.discard(job)
        self._held_jobs.discard(job)
