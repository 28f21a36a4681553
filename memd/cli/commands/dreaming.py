"""dream: start a consolidation, and print its reports."""

import time

from memd.base.errors import Invalid
from memd.base.text import iso_time
from memd.cli import output
from memd.cli.commands.learning import start_job
from memd.cli.invocation import Invocation

_REPORT_OPTIONS = ("last", "status")  # each of them stands alone
_DREAM_OPTIONS = ("force", "wait", *_REPORT_OPTIONS)
_CANNOT_COMBINE = "--{} cannot stand beside {}"


def dream(invocation: Invocation) -> int:
    """Start a dream, or print the last one (``--last``) or when one is due (``--status``)."""
    options = invocation.options
    names = [name for name in _DREAM_OPTIONS if getattr(options, name)]  # of the options given
    for name in set(names) & set(_REPORT_OPTIONS):
        if len(names) > 1:
            others = " ".join(f"--{other}" for other in names if other != name)
            raise Invalid(_CANNOT_COMBINE.format(name, others))
    if options.last:
        return _print_last(invocation)
    if options.status:
        return _print_status(invocation)
    return start_job(invocation)


def _print_last(invocation: Invocation) -> int:
    """Print the report of the project's newest dream and return status 0."""
    status = invocation.ask("dream.status")
    if not status["markdown"]:
        invocation.screen.note("no dream has run here")
    answer = {name: status[name] for name in ("report", "error", "markdown")}
    invocation.screen.answer(answer, answer["markdown"])
    return 0


def _print_status(invocation: Invocation) -> int:
    """Print when the next dream is due, the state of each gate, and the open proposals."""
    answer = invocation.ask("dream.status")
    screen, now = invocation.screen, time.time()
    open_count = answer["proposals"]
    hint = f"{open_count} wait{'s' * (open_count == 1)} for you: memctl review --kind proposal"
    pairs: list[tuple[str, object]] = [
        ("last", _time_words(answer["last"], now) or "never"),
        ("due", _time_words(answer["due"], now)),
        ("sessions", f"{answer['sessions']} of {answer['min_sessions']} since then"),
        ("by itself", "yes" if answer["auto"] else "no: dream.auto is off"),
        ("engine", answer["engine"]),
        ("closed gate", answer["gate"] or "none"),
        ("waits", answer["waits"]),
        ("running", f"{answer['running']}: memctl job wait {answer['running']}"),
        ("proposals", hint),
    ]
    # These two lines are left out when there is nothing to say, unlike the others.
    is_shown = {"running": answer["running"], "proposals": open_count}
    pairs = [(name, value) for name, value in pairs if is_shown.get(name, True)]
    rows = [
        (
            screen.paint("open", "green") if gate["open"] else screen.paint("closed", "yellow"),
            gate["name"],
            gate["says"],
        )
        for gate in answer["gates"]
    ]
    screen.answer(answer, f"{output.facts(pairs)}\n{output.table(rows, screen.width)}")
    return 0


def _time_words(seconds: float | None, now: float) -> str:
    """Return a time in words and as ISO 8601, or "" for ``None``."""
    if seconds is None:
        return ""
    elapsed = now - seconds  # negative for a time to come
    span = output.duration(abs(elapsed))
    words = f"{span} ago" if elapsed > 0 else f"in {span}"
    if abs(elapsed) < 1:
        words = "just now"
    return f"{words} ({iso_time(seconds)})"
