"""dream, its reports, and dream review|accept|reject: consolidation and a person's decisions.

Texts of memories and models are printed on one line behind a word of memd's, or in a diff, where
each line begins with a mark.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from memd.base.errors import Invalid
from memd.base.text import iso_time, one_line
from memd.cli import output
from memd.cli.commands.learning import start_job
from memd.cli.invocation import Invocation
from memd.cli.output import Screen

_LINE_CHARACTERS = 400  # characters of one sentence; --json has all of it
_STYLES = {"created": "green", "changed": "cyan", "removed": "red"}
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


def review(invocation: Invocation) -> None:
    """Print the proposals of dreams, which wait for a person."""
    answer = _refuse_dream_options(invocation).request()
    screen = invocation.screen
    if not answer["proposals"]:
        screen.note("no proposals" if invocation.options.all else "no open proposals")
    pages = ("".join(_proposal_lines(proposal, invocation)) for proposal in answer["proposals"])
    screen.answer(answer, "\n".join(pages))


def accept(invocation: Invocation) -> int:
    """Apply a proposal; return 1 if a file was left because somebody changed it."""
    result = _refuse_dream_options(invocation).request()
    for file in result["left"]:
        invocation.screen.error(f"left alone: {file['path']}: {file['reason']}")
    lines = [f"accepted {path}" for path in result["accepted"]]
    if result.get("change"):
        lines.append(f"undo with: {invocation.command('undo', result['change'])}")
    invocation.screen.answer(result, "\n".join([*lines, _state_sentence(result)]))
    return 1 if result["left"] else 0


def reject(invocation: Invocation) -> None:
    """Reject a proposal, or some files of it."""
    result = _refuse_dream_options(invocation).request()
    lines = [f"rejected {path}" for path in result["rejected"]]
    invocation.screen.answer(result, "\n".join([*lines, _state_sentence(result)]))


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
    hint = f"{open_count} wait{'s' * (open_count == 1)} for you: memctl dream review"
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


def _refuse_dream_options(invocation: Invocation) -> Invocation:
    """Raise Invalid for options of ``dream`` before a verb; return the invocation."""
    for name in _DREAM_OPTIONS:
        if getattr(invocation.options, name):
            raise Invalid(_CANNOT_COMBINE.format(name, invocation.options.run.words[-1]))
    return invocation


def _state_sentence(result: Mapping[str, Any]) -> str:
    """Return a sentence with the state of the proposal that was decided."""
    words_by_state = {"open": "still open", "partly": "decided, accepted in part"}
    return f"{result['proposal']} is {words_by_state.get(result['state'], result['state'])}"


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


def _proposal_lines(proposal: Mapping[str, Any], invocation: Invocation) -> Iterator[str]:
    """Yield the lines about one proposal: its reason, its files, and how to decide it."""
    screen = invocation.screen
    name = proposal["id"]
    by = f", by {one_line(proposal['engine'], _LINE_CHARACTERS)}" if proposal["engine"] else ""
    yield f"{screen.paint(name, 'bold')}  {output.ago(proposal['at'])}{by}, {proposal['state']}\n"
    yield from (
        f"kept back: {one_line(problem, _LINE_CHARACTERS)}\n" for problem in proposal["problems"]
    )
    is_import = proposal["engine"].startswith("import")
    if proposal["said"]:
        source = "source" if is_import else "the model said"
        yield f"{source}: {one_line(proposal['said'], _LINE_CHARACTERS)}\n"
    if proposal["reason"]:
        yield f"rejected since: {one_line(proposal['reason'], _LINE_CHARACTERS)}\n"
    for file in proposal["files"]:
        yield from _file_lines(file, screen)
    if proposal["state"] == "open":
        accept = invocation.command("dream", "accept", name)
        reject = invocation.command("dream", "reject", name)
        yield f"\naccept with: {accept} [FILE...]\n"
        yield f"reject with: {reject} [FILE...] --reason TEXT\n"


def _file_lines(file: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    """Yield the lines about one file of a proposal, and its diff."""
    action = screen.paint(file["action"], _STYLES.get(file["action"], "bold"))
    target = f" into {file['merged_into']}" if file["merged_into"] else ""
    reason = ""
    if file["reason"] and not target:
        reason = f": {one_line(file['reason'], _LINE_CHARACTERS)}"
    notes = [file["state"]] if file["state"] != "open" else []
    notes += ["stale: somebody changed it since"] if file["stale"] else []
    painted_notes = screen.paint(f" ({', '.join(notes)})", "yellow") if notes else ""
    path = one_line(file["path"], _LINE_CHARACTERS)
    yield f"\n{action} {path}{target}{reason}{painted_notes}\n"
    if file["diff"]:
        yield screen.diff(file["diff"])
