"""Record and publish the progress of running jobs: phases and facts.

Rules of this file
- Everything is bounded: ``FACTS`` facts of ``FACT_BYTES`` each for each job.
- A fact stays until the job reports it again, so a client that connects later sees all of them.
- It is only in memory: it is dropped when a job ends or goes back to the queue.
"""

import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base.events import JOB_DONE, JOB_PROGRESS, Event, EventSink
from memd.base.text import cut_bytes
from memd.state.jobs import Job

FACTS = 24  # of one job
FACT_BYTES = 4_000  # as JSON


class _JobProgress(Struct):
    """What one job has reported so far."""

    phase: str
    facts: dict[str, Any] = field(default_factory=dict)


class Progress:
    """The progress of running jobs; each report and each end is published at once."""

    def __init__(self, events: EventSink) -> None:
        self._events = events
        self._reported: dict[str, _JobProgress] = {}  # by job id

    def reporter(self, job: Job) -> Callable[..., None]:
        """Return the function by which a job's runner reports its progress; it never fails."""

        def report(phase: str, **facts: Any) -> None:
            """Record a report and publish it at once."""
            reported = self._reported.setdefault(job.id, _JobProgress(phase))
            reported.phase = phase
            for name, value in facts.items():
                if name in reported.facts or len(reported.facts) < FACTS:
                    reported.facts[name] = _bounded(value)
            params = {"job": job.id, "kind": job.kind, "phase": phase, **facts}
            self._events.publish(Event(JOB_PROGRESS, job.directory, params))

        return report

    def of(self, job: str) -> dict[str, Any] | None:
        """Return a job's ``phase`` and facts, ``None`` if unknown."""
        reported = self._reported.get(job)
        if reported is None:
            return None
        return {**reported.facts, "phase": reported.phase}

    def phase(self, job: str) -> str:
        """Return the phase that a job reported last, "" if none."""
        return self._reported[job].phase if job in self._reported else ""

    def with_phase(self, job: Job) -> Job:
        """Return a running job with the phase that it reported last."""
        if job.over:
            return job
        return replace(job, phase=self.phase(job.id) or job.phase)

    def end(self, job: Job) -> None:
        """Publish the end of a job and drop its progress."""
        self.forget(job.id)
        params = {"job": job.id, "kind": job.kind, "state": job.state.value, "result": job.result}
        if job.error is not None:
            params["error"] = job.error
        self._events.publish(Event(JOB_DONE, job.directory, params))

    def forget(self, job: str) -> None:
        """Drop a job's progress."""
        self._reported.pop(job, None)


def _bounded(value: Any) -> Any:
    """Return a JSON value cut to its limit: a text's start, a list's end, ``None`` for others."""
    if isinstance(value, str):
        return cut_bytes(value, FACT_BYTES)
    if isinstance(value, list):
        bytes_left = FACT_BYTES
        items: list[Any] = []  # the last one first
        for item in reversed(value):
            bytes_left -= len(json.dumps(item, default=str))
            if bytes_left < 0:
                break
            items.append(item)
        return items[::-1]
    if isinstance(value, bool | int | float) or value is None:
        return value
    return value if len(json.dumps(value, default=str)) <= FACT_BYTES else None
