"""job list|show|wait|cancel, pause and resume: background work."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memd.cli import output
from memd.cli.commands.learning import result_lines
from memd.cli.invocation import JOB_SECONDS, Invocation

_TEXT_CHARACTERS = 600  # of one text; --json has all that the record has
_TOKEN_KINDS = ("input", "output", "cache_read", "cache_created")


def list_jobs(invocation: Invocation) -> None:
    """List the newest jobs."""
    options = invocation.options
    cwd = invocation.cwd if options.here else None
    answer = invocation.request(cwd=cwd)
    screen = invocation.screen
    now = time.time()
    rows = [
        (
            screen.paint(job["job"], "bold"),
            job["kind"],
            _state_words(invocation, job),
            f"{output.duration(now - job['created'])} ago",
            job["directory"],
        )
        for job in answer["jobs"]
    ]
    if not rows:
        screen.note("no parked jobs" if options.parked else "no jobs")
    screen.answer(answer, output.table(rows, screen.width))


def show(invocation: Invocation) -> None:
    """Print one job with its result and each turn of its model."""
    answer = invocation.request(cwd=None, record=True)
    invocation.screen.answer(answer, _job_text(invocation, answer["jobs"][0]))


def wait(invocation: Invocation) -> int:
    """Wait for a job and print it; return 1 unless it completed."""
    job = invocation.request(cwd=None, seconds=JOB_SECONDS)
    invocation.screen.answer(job, _job_text(invocation, job))
    return 0 if job["state"] == "completed" else 1


def cancel(invocation: Invocation) -> None:
    """End a job now."""
    result = invocation.request(cwd=None)
    words = "cancelled" if result["cancelled"] else "it had ended already"
    invocation.screen.answer(result, words)


def pause(invocation: Invocation) -> None:
    """Stop background work until it is resumed."""
    state = invocation.request(cwd=None, seconds=JOB_SECONDS)
    words = f"background work is paused; {_waiting_words(state['waiting'])}"
    invocation.screen.answer(state, words)


def resume(invocation: Invocation) -> None:
    """Resume background work; models that failed are called again."""
    state = invocation.request(cwd=None)
    invocation.screen.answer(state, f"background work goes on; {_waiting_words(state['waiting'])}")


def _waiting_words(waiting: int) -> str:
    """Return in words how many jobs wait."""
    return "no job waits" if not waiting else f"{waiting} job{'s' * (waiting > 1)} to do"


def _job_text(invocation: Invocation, job: dict[str, Any]) -> str:
    """Return everything about a job: its state, result, cost and the turns of its model."""
    error, result = job.get("error") or {}, job.get("result") or {}
    has_ended = job.get("started") and job.get("ended")
    duration = output.duration(job["ended"] - job["started"]) if has_ended else ""
    rate = result.get("hit_rate")
    pairs = [
        ("job", job["job"]),
        ("kind", job["kind"]),
        ("state", _state_words(invocation, job)),
        ("directory", job["directory"]),
        ("session", job["session"]),
        ("attempts", job["attempts"]),
        ("took", duration),
        ("error", error.get("message")),
        ("held by", f"process {job['holder']}" if job.get("holder") else ""),
        ("reason", result.get("reason")),
        ("engine", result.get("engine")),
        ("turns", result.get("turns")),
        ("tokens", _token_words(result.get("usage") or {})),
        ("from cache", f"{rate:.0%} of the input" if rate else ""),
        ("new prefix", ", ".join(result.get("prefix_changed") or ())),
    ]
    text = output.facts(pairs) + "".join(f"{line}\n" for line in result_lines(invocation, result))
    return text + _record_text(job.get("record") or ())


def _state_words(invocation: Invocation, job: dict[str, Any]) -> str:
    """Return a job's state in colour, with its phase while it runs."""
    styles = {"completed": "green", "running": "cyan", "failed": "red", "killed": "yellow"}
    state, phase = job["state"], job.get("phase")
    words = str(state)
    if job.get("parked"):
        words = "failed (parked)"
    elif phase and state == "running":
        words = f"{state} ({phase})"
    style = styles.get(state)
    return invocation.screen.paint(words, style) if style else words


def _record_text(turns: Sequence[Mapping[str, Any]]) -> str:
    """Return the turns of a model's run as text: its replies, tool calls and their results."""
    return "\n".join(line for turn in turns for line in ("", *_turn_lines(turn)))


def _token_words(usage: Mapping[str, Any]) -> str:
    """Return the numbers of tokens by kind, without those that are zero."""
    counts = [f"{usage[name]} {name.replace('_', ' ')}" for name in _TOKEN_KINDS if usage.get(name)]
    return ", ".join(counts)


def _turn_lines(turn: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one turn of the model: usage, reply, and results of its tools."""
    facts = [str(turn.get("model", "")), output.duration(turn.get("seconds") or 0)]
    facts += [_token_words(turn.get("usage") or {}), f"stop: {turn.get('stop') or '?'}"]
    yield f"turn {turn.get('turn', '?')}  " + " · ".join(fact for fact in facts if fact)
    for block in turn.get("reply") or ():
        yield from _block_lines(block)
    for result in turn.get("results") or ():
        fault = f" ({result['fault']})" if result.get("fault") else ""
        yield from _text_lines(f"  ← {result.get('tool', '')}{fault}: ", result.get("text"))


def _block_lines(block: Any) -> Iterator[str]:
    """Yield the lines of one block of a model's reply: text, or a call of a tool."""
    if not isinstance(block, Mapping):
        return
    kind = block.get("type")
    if kind == "tool_use":
        arguments = json.dumps(block.get("input"), ensure_ascii=False)
        yield from _text_lines(f"  → {block.get('name', '')} ", arguments)
    else:
        text = block.get("text") or block.get(str(kind)) or ""
        yield from _text_lines("  " if kind == "text" else f"  [{kind}] ", text)


def _text_lines(prefix: str, text: object) -> Iterator[str]:
    """Yield a text behind a prefix, cut to _TEXT_CHARACTERS, with its later lines indented."""
    shown = str(text or "")
    if len(shown) > _TEXT_CHARACTERS:
        shown = f"{shown[:_TEXT_CHARACTERS]}… ({len(shown)} characters)"
    first_line, *other_lines = shown.split("\n")
    yield prefix + first_line
    yield from (f"    {line}" for line in other_lines)
