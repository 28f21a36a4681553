"""extract and dream: background work that a person asks for."""

import json
import os
from typing import Any

from memd.cli.invocation import JOB_SECONDS, FileUnreadableError, Invocation
from memd.core.errors import MemdError

_BAD_ENDS = ("failed", "killed")


class WrongSourceError(MemdError):
    """An extraction reads a transcript or messages, one of the two."""

    exit_status = 2

    def __init__(self) -> None:
        super().__init__("extract needs --transcript or --messages, one of the two")


class SessionMissingError(MemdError):
    """Messages do not say which session they belong to."""

    exit_status = 2

    def __init__(self) -> None:
        super().__init__("--messages needs --session: it decides what is new since the last time")


def extract(invocation: Invocation) -> int:
    """Hand a conversation to the extraction."""
    options = invocation.options
    if (options.transcript is None) == (options.messages is None):
        raise WrongSourceError
    params: dict[str, Any] = {"session_id": options.session}
    if options.transcript is not None:
        path = os.path.abspath(options.transcript)
        params["transcript_path"] = path
        params["session_id"] = options.session or os.path.basename(path).removesuffix(".jsonl")
    elif not options.session:
        raise SessionMissingError
    else:
        params["messages"] = _messages(invocation, options.messages)
    return _work(invocation, "extract", params)


def dream(invocation: Invocation) -> int:
    """Consolidate the memories of the project."""
    return _work(invocation, "dream", {"force": invocation.options.force or None})


def _work(invocation: Invocation, method: str, params: dict[str, Any]) -> int:
    wait = invocation.options.wait
    if wait and invocation.screen.live:
        from memd.cli.progress import follow  # noqa: PLC0415 - only on a terminal (spec 7.1)

        done = follow(invocation, method, params)
    else:
        seconds = {"seconds": JOB_SECONDS} if wait else {}
        done = invocation.ask(method, wait=wait or None, **seconds, **params)
    invocation.screen.answer(done, _report(done))
    return 1 if done["status"] in _BAD_ENDS else 0


def _messages(invocation: Invocation, path: str) -> Any:
    try:
        found = json.loads(invocation.read(path))
    except ValueError as error:
        cause = f"it is not JSON: {error}"
        raise FileUnreadableError(path, cause) from error
    return found.get("messages") if isinstance(found, dict) else found


def _report(done: dict[str, Any]) -> str:
    why = done.get("reason") or done.get("gate")
    job = f" as {done['job']}" if done.get("job") else ""
    lines = [f"{done['status']}{job}{f': {why}' if why else ''}"]
    for verb in ("saved", "updated", "changed"):
        lines += [f"  {verb} {path}" for path in done.get(verb) or ()]
    for merged in done.get("merged") or ():
        lines.append(f"  merged {', '.join(merged['from'])} into {merged['into']}")
    for removed in done.get("removed") or ():
        words = f"{removed['path']}: {removed['reason']}" if isinstance(removed, dict) else removed
        lines.append(f"  removed {words}")
    if done.get("refused"):
        lines.append(f"  refused {done['refused']}: they looked like secrets or broke a rule")
    over = done.get("passed_over") or {}
    lines += [f"  passed over {count}: {reason}" for reason, count in sorted(over.items())]
    if done.get("problem"):
        lines.append(f"  {done['problem']}")
    if done.get("change"):
        lines.append(f"undo with: memctl undo {done['change']}")
    return "\n".join(lines)
