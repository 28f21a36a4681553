"""extract, and starting background work and waiting for its end."""

import json
import os
from contextlib import suppress
from typing import Any

from memd.base.errors import Busy, Invalid, MemdError, Refused
from memd.cli.invocation import ANSWER_SECONDS, CANNOT_READ, JOB_SECONDS, Invocation
from memd.client.errors import AnswerTimeoutError

_ENDED_STATES = ("completed", "failed", "killed")
_BAD_STATES = ("failed", "killed")
_GATE_HINT = "memctl dream --status says more; --force leaves out the time and the sessions"
_ONE_SOURCE = "extract needs --transcript or --messages, one of the two"
_NO_SESSION = "--messages needs --session: it decides what is new since the last time"
_WORK_PAUSED = "background work is paused, so this waits until: memctl resume"


def extract(invocation: Invocation) -> int:
    """Extract memories from a transcript file or from messages."""
    options = invocation.options
    if (options.transcript is None) == (options.messages is None):
        raise Invalid(_ONE_SOURCE)
    if options.transcript is not None:
        path = os.path.abspath(options.transcript)
        session = options.session or os.path.basename(path).removesuffix(".jsonl")
        return start_job(invocation, transcript_path=path, session_id=session)
    if not options.session:
        raise Invalid(_NO_SESSION)
    return start_job(invocation, messages=_read_messages(invocation, options.messages))


def start_job(invocation: Invocation, **overrides: object) -> int:
    """Start the command's job and print its status; return 1 if it failed or was killed.

    With ``--wait`` the job's end is awaited. ``overrides`` are parameters that replace those of the
    command line.
    """
    wait = invocation.options.wait
    if wait and _is_paused(invocation):
        invocation.screen.note(_WORK_PAUSED)
    # Not awaited by the request itself: a person who stops waiting must know the job's id.
    result = invocation.request(seconds=ANSWER_SECONDS, wait=None, **overrides)
    if wait and result.get("job") and result["status"] not in _ENDED_STATES:
        result = _wait_for(invocation, result)
    reason = result.get("reason") or result.get("gate")
    job = f" as {result['job']}" if result.get("job") else ""
    words = f": {reason}" if reason else ""
    gate_hint = [_GATE_HINT] if result.get("gate") else []
    lines = [f"{result['status']}{job}{words}", *gate_hint, *result_lines(invocation, result)]
    if wait and result["status"] == "completed":
        lines = [*result_lines(invocation, result), _summary(result, reason)]
    invocation.screen.answer(result, "\n".join(lines))
    return 1 if result["status"] in _BAD_STATES else 0


def _summary(result: dict[str, Any], reason: str | None) -> str:
    """Return the line on what a job did that was waited for."""
    merged = result.get("merged") or ()
    counts = {
        "saved": result.get("saved"),
        "created": result.get("created"),
        "updated": result.get("updated"),
        "changed": result.get("changed"),
        "merged": [path for each in merged for path in each["from"]],
        "removed": result.get("removed"),
    }
    words = [f"{len(paths)} {verb}" for verb, paths in counts.items() if paths]
    if result.get("suggested"):
        words.append(f"{result['suggested']} suggested")
    if result.get("proposal"):
        words.append("a proposal waits for you")
    if words:
        return f"done: {', '.join(words)}"
    return f"done: nothing to do ({reason})" if reason else "done: nothing to do"


def _wait_for(invocation: Invocation, answer: dict[str, Any]) -> dict[str, Any]:
    """Wait for the job that an answer names; return it with the result. Raises Busy."""
    job = answer["job"]
    try:
        facts = invocation.call("job.wait", seconds=JOB_SECONDS, job=job)
    except AnswerTimeoutError as error:
        raise Busy(
            f"{job} goes on: it has not ended within {float(error.facts['seconds'] or 0):g} s; "
            f"wait for it with: memctl job wait {job}",
            job=job,
        ) from error
    except KeyboardInterrupt:
        invocation.screen.note(f"{job} goes on in the daemon; end it with: memctl job cancel {job}")
        raise
    ended = {**answer, "status": facts["state"]}
    if facts.get("error"):
        ended["reason"] = facts["error"].get("message")
    return {**ended, **(facts.get("result") or {})}


def _is_paused(invocation: Invocation) -> bool:
    """Return whether background work is paused; ``False`` if the daemon refuses to say."""
    with suppress(MemdError):
        return invocation.call("status").get("paused_since") is not None
    return False


def _read_messages(invocation: Invocation, path: str) -> Any:
    """Return the messages in a JSON file, a list or an object's member ``messages``."""
    try:
        content = json.loads(invocation.read(path))
    except ValueError as error:
        cause = f"it is not JSON: {error}"
        raise Refused(CANNOT_READ.format(path, cause)) from error
    return content.get("messages") if isinstance(content, dict) else content


def result_lines(invocation: Invocation, result: dict[str, Any]) -> list[str]:
    """Return lines for the result of an extraction or a dream, and for what a person may decide."""
    lines: list[str] = []
    for verb in ("saved", "created", "updated", "changed"):
        lines += [f"  {verb} {path}" for path in result.get(verb) or ()]
    for merged in result.get("merged") or ():
        lines.append(f"  merged {', '.join(merged['from'])} into {merged['into']}")
    for verb, name in (("removed", "removed"), ("left", "left"), ("look at", "listed")):
        lines += [f"  {verb} {_with_reason(file)}" for file in result.get(name) or ()]
    if result.get("refused"):
        lines.append(f"  refused {result['refused']}: they looked like secrets or broke a rule")
    if result.get("suggested"):
        lines.append(f"  suggested {result['suggested']}: memctl review shows what waits for you")
    skipped = result.get("passed_over") or {}
    lines += [f"  passed over {count}: {reason}" for reason, count in sorted(skipped.items())]
    statements = result.get("already_said") or ()
    lines += [f"  not saved, {each['file']} says it: {each['text']}" for each in statements]
    for name in ("problem", "model_problem"):
        lines += [f"  {result[name]}"] if result.get(name) else []
    if result.get("change"):
        lines.append(f"undo with: {invocation.command('undo', result['change'])}")
    if result.get("proposal"):
        review = invocation.command("review", "show", result["proposal"])
        lines.append(f"a proposal waits for you: {review}")
    return lines


def _with_reason(file: Any) -> str:
    """Return a file's path, with the reason if the result has one."""
    return f"{file['path']}: {file['reason']}" if isinstance(file, dict) else str(file)
