"""A running job on a terminal: each turn of its model a line, and below where it is now.

All of it goes to standard error, so the answer alone is on standard output.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memd.cli import output
from memd.cli.invocation import JOB_SECONDS, Invocation
from memd.cli.output import Screen

_SHOWN = 4  # facts beside the phase
_KNOWN = {"job", "kind", "phase", "directory", "turn", "text", "texts", "tools", "calling"}
_COUNTED = {"tool_calls": "call", "touched": "file", "tokens": "token"}
_TICK_SECONDS = 1.0
_TOPICS = ["job.progress", "job.done"]
_COLUMNS = 80  # where the terminal does not tell


class JobView:
    """What a person sees of one job. ``tick`` keeps the time in sight while nothing is told."""

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._clock = clock
        self._begun = clock()
        self._words = ""
        self._caught_up: list[Mapping[str, Any]] = []

    def catch_up(self, progress: Mapping[str, Any]) -> None:
        """Show what a job told before anybody watched: the ``progress`` of ``job.get``."""
        self._caught_up = list(progress.get("texts") or ())
        for earlier in self._caught_up:
            self._line(earlier)
        self._now(progress)

    def show(self, params: Mapping[str, Any]) -> None:
        """Show what a job tells: the ``params`` of a ``job.progress``."""
        if isinstance(params.get("text"), str) and not self._shown_before(params):
            self._line(params)
        self._now(params)

    def tick(self) -> None:
        """Show how long it has been."""
        passed = self._clock() - self._begun
        parts = [self._words, output.duration(passed) if passed >= 1 else ""]
        self._screen.passing(self._cut(", ".join(filter(None, parts)), 1))

    def _shown_before(self, params: Mapping[str, Any]) -> bool:
        """Whether a turn was among those that came before; each of them comes again at most once.

        What is told between subscribing and asking is in both.
        """
        for place, earlier in enumerate(self._caught_up):
            if all(params.get(name) == value for name, value in earlier.items()):
                del self._caught_up[place]
                return True
        return False

    def _line(self, params: Mapping[str, Any]) -> None:
        """Show one turn for good."""
        facts = [_tools(params.get("tools")), *_counts(params)]
        counts = output.escape(", ".join(filter(None, facts)))
        text = " ".join(str(params.get("text", "")).split()) or "(no words)"
        turn = f"{params.get('turn', ''):>3}  "
        room = output.columns(turn) + output.columns(counts) + 3
        self._screen.passing("")
        self._screen.note(f"{turn}{self._cut(text, room)}{f'  [{counts}]' if counts else ''}")

    def _now(self, params: Mapping[str, Any]) -> None:
        turn = [f"turn {params['turn']}"] if params.get("turn") else []
        facts = [*turn, *_counts(params), *_others(params)]
        place = f"{params.get('kind') or 'job'}: {params.get('phase')}"
        self._words = ", ".join([place, *facts[:_SHOWN]])
        self.tick()

    def _cut(self, text: str, taken: int) -> str:
        room = (self._screen.width or _COLUMNS) - taken
        return output.table([(output.escape(text),)], room).rstrip("\n")


def follow(invocation: Invocation, **more: Any) -> dict[str, Any]:
    """Start the command's job, show its progress, and return what waiting would have returned.

    Subscribing comes first, so that a job that ends at once is not missed.
    """
    invocation.ask("subscribe", topics=_TOPICS)
    started: dict[str, Any] = invocation.request(**more)
    job = started.get("job")
    if not job:
        return started
    _watch(invocation, job, JobView(invocation.screen))
    job_facts = invocation.call("job.get", job=job)
    why = {"reason": job_facts["error"].get("message")} if job_facts.get("error") else {}
    return {"status": job_facts["state"], "job": job, **why, **(job_facts.get("result") or {})}


def join(invocation: Invocation, job: str) -> dict[str, Any]:
    """Show the progress of a job that may be running for long, and return the job at its end.

    What it told before comes first.
    """
    invocation.call("subscribe", topics=_TOPICS)
    job_facts: dict[str, Any] = invocation.call("job.get", job=job)
    if job_facts.get("ended"):
        return job_facts
    view = JobView(invocation.screen)
    if job_facts.get("progress"):
        view.catch_up({"kind": job_facts["kind"], **job_facts["progress"]})
    _watch(invocation, job, view)
    ended: dict[str, Any] = invocation.call("job.get", job=job)
    return ended


def _watch(invocation: Invocation, job: str, view: JobView) -> None:
    """Wait for a job's end; who stops watching is told that the job goes on."""
    try:
        _until_done(invocation, job, view)
    except KeyboardInterrupt:
        invocation.screen.passing("")
        invocation.screen.note(f"{job} goes on in the daemon; end it with: memctl job cancel {job}")
        raise
    finally:
        invocation.screen.passing("")


def _until_done(invocation: Invocation, job: str, view: JobView) -> None:
    """Show the progress of a job until it has ended or nothing came for very long."""
    most = invocation.options.timeout or JOB_SECONDS
    silent = 0.0
    while silent < most:
        seconds = min(_TICK_SECONDS, most - silent)
        for event in invocation.client().notifications(seconds):
            silent = 0.0
            if event.params.get("job") != job:
                continue
            if event.method == "job.done":
                return
            view.show(event.params)
        silent += seconds
        view.tick()


def _tools(names: object) -> str:
    """Return the names of tools, each once and counted."""
    if not isinstance(names, list):
        return ""
    counts: dict[str, int] = {}
    for name in names:
        counts[str(name)] = counts.get(str(name), 0) + 1
    return ", ".join(f"{name} x{times}" if times > 1 else name for name, times in counts.items())


def _counts(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the counts that every agent's run tells."""
    for name, words in _COUNTED.items():
        value = facts.get(name)
        count = len(value) if isinstance(value, list) else value
        if isinstance(count, int) and count:
            yield f"{count:,} {words}{'s' * (count > 1)}"


def _others(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, value in facts.items():
        if name not in _KNOWN and name not in _COUNTED and isinstance(value, str | int | float):
            yield f"{name} {value}"
