"""extract, and starting background work and waiting for its end."""

import json
import os
from contextlib import suppress
from typing import Any

from memd.cli.invocation import (
    ANSWER_SECONDS,
    JOB_SECONDS,
    CommandLineError,
    InputUnreadableError,
    Invocation,
)
from memd.client.errors import RemoteError

_BAD_ENDS = ("failed", "killed")
_GATE = "memctl dream --status says more; --force leaves out the time and the sessions"
_ONE_SOURCE = "extract needs --transcript or --messages, one of the two"
_NO_SESSION = "--messages needs --session: it decides what is new since the last time"
_PAUSED = "background work is paused, so this waits until: memctl resume"


def extract(invocation: Invocation) -> int:
    """Extract memories from a transcript file or from messages."""
    options = invocation.options
    if (options.transcript is None) == (options.messages is None):
        raise CommandLineError(_ONE_SOURCE)
    if options.transcript is not None:
        path = os.path.abspath(options.transcript)
        session = options.session or os.path.basename(path).removesuffix(".jsonl")
        return work(invocation, transcript_path=path, session_id=session)
    if not options.session:
        raise CommandLineError(_NO_SESSION)
    return work(invocation, messages=_read_messages(invocation, options.messages))


def work(invocation: Invocation, **more: object) -> int:
    """Start the command's job and print its status; return 1 if it failed or was killed.

    With ``--wait`` the job's end is awaited, live on a terminal. ``more`` parameters override those
    of the command line.
    """
    wait = invocation.options.wait
    if wait and _paused(invocation):
        invocation.screen.note(_PAUSED)
    if wait and invocation.screen.live:
        from memd.cli.live import follow  # noqa: PLC0415 - only on a terminal

        done = follow(invocation, **more)
    else:
        seconds = JOB_SECONDS if wait else ANSWER_SECONDS
        done = invocation.request(seconds=seconds, wait=wait or None, **more)
    reason = done.get("reason") or done.get("gate")
    job = f" as {done['job']}" if done.get("job") else ""
    gate = [_GATE] if done.get("gate") else []
    lines = [f"{done['status']}{job}{f': {reason}' if reason else ''}", *gate, *result_lines(done)]
    invocation.screen.answer(done, "\n".join(lines))
    return 1 if done["status"] in _BAD_ENDS else 0


def _paused(invocation: Invocation) -> bool:
    """Return whether background work is paused; ``False`` if the daemon refuses to say."""
    with suppress(RemoteError):
        return invocation.call("status").get("paused_since") is not None
    return False


def _read_messages(invocation: Invocation, path: str) -> Any:
    """Return the messages in a JSON file, a list or an object's member ``messages``."""
    try:
        content = json.loads(invocation.read(path))
    except ValueError as error:
        cause = f"it is not JSON: {error}"
        raise InputUnreadableError(path, cause) from error
    return content.get("messages") if isinstance(content, dict) else content


def result_lines(done: dict[str, Any]) -> list[str]:
    """Return lines for the result of an extraction or a dream, and for what a person may decide."""
    lines: list[str] = []
    for verb in ("saved", "created", "updated", "changed"):
        lines += [f"  {verb} {path}" for path in done.get(verb) or ()]
    for merged in done.get("merged") or ():
        lines.append(f"  merged {', '.join(merged['from'])} into {merged['into']}")
    for verb, name in (("removed", "removed"), ("left", "left"), ("look at", "listed")):
        lines += [f"  {verb} {_with_reason(file)}" for file in done.get(name) or ()]
    if done.get("refused"):
        lines.append(f"  refused {done['refused']}: they looked like secrets or broke a rule")
    if done.get("suggested"):
        lines.append(
            f"  suggested {done['suggested']}: memctl suggestions lists what waits for you"
        )
    over = done.get("passed_over") or {}
    lines += [f"  passed over {count}: {reason}" for reason, count in sorted(over.items())]
    said = done.get("already_said") or ()
    lines += [f"  not saved, {each['file']} says it: {each['text']}" for each in said]
    for name in ("problem", "model_problem"):
        lines += [f"  {done[name]}"] if done.get(name) else []
    if done.get("change"):
        lines.append(f"undo with: memctl undo {done['change']}")
    if done.get("proposal"):
        lines.append(f"a proposal waits for you: memctl dream review {done['proposal']}")
    if done.get("unused"):
        lines.append(f"memories that nobody used: memctl dream review {done['unused']}")
    return lines


def _with_reason(file: Any) -> str:
    """Return a file's path, with the reason if the result has one."""
    return f"{file['path']}: {file['reason']}" if isinstance(file, dict) else str(file)
