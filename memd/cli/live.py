"""Show a running job on a terminal: a line for each turn of its model and a status line below.

All of it goes to standard error, so that standard output holds only the answer.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memd.cli import output
from memd.cli.invocation import JOB_SECONDS, Invocation
from memd.cli.job_facts import result_of_job
from memd.cli.output import Screen

_MAX_FACTS = 4  # shown beside the phase
# Members of a progress report that the status line does not show, or not as name and value.
_NOT_SHOWN = {"job", "kind", "phase", "directory", "turn", "text", "texts", "tools", "calling"}
_NOUNS = {"tool_calls": "call", "touched": "file", "tokens": "token"}  # of members with a count
_TICK_SECONDS = 1.0  # between two updates of the elapsed time
_TOPICS = ["job.progress", "job.done"]
_DEFAULT_COLUMNS = 80  # if the terminal's width is not known


class JobView:
    """Prints one job's turns and its status line; ``tick`` updates the elapsed time."""

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._clock = clock
        self._started_at = clock()
        self._status = ""  # the status line without the elapsed time
        # Turns that ``catch_up`` printed and that no notification has repeated yet.
        self._earlier_turns: list[Mapping[str, Any]] = []

    def catch_up(self, progress: Mapping[str, Any]) -> None:
        """Print the turns from before the view was opened, given ``progress`` of ``job.list``."""
        self._earlier_turns = list(progress.get("texts") or ())
        for earlier in self._earlier_turns:
            self._print_turn(earlier)
        self._update_status(progress)

    def show(self, params: Mapping[str, Any]) -> None:
        """Show one notification ``job.progress``, given its ``params``."""
        if isinstance(params.get("text"), str) and not self._shown_before(params):
            self._print_turn(params)
        self._update_status(params)

    def tick(self) -> None:
        """Redraw the status line with the elapsed time."""
        elapsed = self._clock() - self._started_at
        parts = [self._status, output.duration(elapsed) if elapsed >= 1 else ""]
        line = ", ".join(filter(None, parts))
        self._screen.show_temporary(self._cut_to_fit(line, used_columns=1))

    def _shown_before(self, params: Mapping[str, Any]) -> bool:
        """Return whether ``catch_up`` showed this turn; each such turn is matched once.

        A turn between the subscription and ``job.list`` comes in both.
        """
        for index, earlier in enumerate(self._earlier_turns):
            if all(params.get(name) == value for name, value in earlier.items()):
                del self._earlier_turns[index]
                return True
        return False

    def _print_turn(self, params: Mapping[str, Any]) -> None:
        """Print a line for one turn, which stays on the screen."""
        facts = [_tool_counts(params.get("tools")), *_counts(params)]
        counts = output.escape(", ".join(filter(None, facts)))
        text = " ".join(str(params.get("text", "")).split()) or "(no words)"
        turn = f"{params.get('turn', ''):>3}  "
        used_columns = output.columns(turn) + output.columns(counts) + 3
        shown_text = self._cut_to_fit(text, used_columns)
        shown_counts = f"  [{counts}]" if counts else ""
        self._screen.show_temporary("")  # the status line is drawn again below the new line
        self._screen.note(f"{turn}{shown_text}{shown_counts}")

    def _update_status(self, params: Mapping[str, Any]) -> None:
        """Compute the status line from the job's progress, and draw it."""
        turn = [f"turn {params['turn']}"] if params.get("turn") else []
        facts = [*turn, *_counts(params), *_other_facts(params)]
        place = f"{params.get('kind') or 'job'}: {params.get('phase')}"
        self._status = ", ".join([place, *facts[:_MAX_FACTS]])
        self.tick()

    def _cut_to_fit(self, text: str, used_columns: int) -> str:
        """Return a text cut to the columns of a line that are not used yet."""
        width = (self._screen.width or _DEFAULT_COLUMNS) - used_columns
        return output.table([(output.escape(text),)], width).rstrip("\n")


def follow(invocation: Invocation, **overrides: Any) -> dict[str, Any]:
    """Start the command's job, show its progress, and return its status, id and result.

    ``overrides`` are parameters of the request. An answer that names no job is returned as it is.
    """
    # Subscribe first, so that the end of a short job is not missed.
    invocation.ask("subscribe", topics=_TOPICS)
    answer: dict[str, Any] = invocation.request(**overrides)
    job = answer.get("job")
    if not job:
        return answer
    _watch(invocation, job, JobView(invocation.screen))
    return result_of_job(answer, invocation.call("job.list", job=job)["jobs"][0])


def join(invocation: Invocation, job: str) -> dict[str, Any]:
    """Show a job's earlier turns and its progress, and return ``job.list`` at its end."""
    invocation.call("subscribe", topics=_TOPICS)
    job_facts: dict[str, Any] = invocation.call("job.list", job=job)["jobs"][0]
    if job_facts.get("ended"):
        return job_facts
    view = JobView(invocation.screen)
    if job_facts.get("progress"):
        view.catch_up({"kind": job_facts["kind"], **job_facts["progress"]})
    _watch(invocation, job, view)
    ended: dict[str, Any] = invocation.call("job.list", job=job)["jobs"][0]
    return ended


def _watch(invocation: Invocation, job: str, view: JobView) -> None:
    """Show a job's progress until its end; on Ctrl-C say that the job goes on."""
    try:
        _show_until_end(invocation, job, view)
    except KeyboardInterrupt:
        invocation.screen.show_temporary("")
        invocation.screen.note(f"{job} goes on in the daemon; end it with: memctl job cancel {job}")
        raise
    finally:
        invocation.screen.show_temporary("")


def _show_until_end(invocation: Invocation, job: str, view: JobView) -> None:
    """Show a job's progress until it ends or no event came for as long as the timeout."""
    timeout = invocation.options.timeout or JOB_SECONDS
    silent_seconds = 0.0  # since the last event
    while silent_seconds < timeout:
        seconds = min(_TICK_SECONDS, timeout - silent_seconds)
        for event in invocation.client().notifications(seconds):
            silent_seconds = 0.0
            if event.params.get("job") != job:
                continue
            if event.method == "job.done":
                return
            view.show(event.params)
        silent_seconds += seconds
        view.tick()


def _tool_counts(names: object) -> str:
    """Return each tool's name once, with its count; "" if ``names`` is no list."""
    if not isinstance(names, list):
        return ""
    counts: dict[str, int] = {}
    for name in names:
        counts[str(name)] = counts.get(str(name), 0) + 1
    return ", ".join(f"{name} x{times}" if times > 1 else name for name, times in counts.items())


def _counts(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the counts of calls, files and tokens in words, without those that are zero."""
    for name, noun in _NOUNS.items():
        value = facts.get(name)
        count = len(value) if isinstance(value, list) else value
        if isinstance(count, int) and count:
            yield f"{count:,} {noun}{'s' * (count > 1)}"


def _other_facts(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the other facts with a simple value, each as its name and value."""
    for name, value in facts.items():
        is_other = name not in _NOT_SHOWN and name not in _NOUNS
        if is_other and isinstance(value, str | int | float):
            yield f"{name} {value}"
