"""job list|show|wait|cancel: background work."""

import json
import time
from typing import Any

from memd.cli import output
from memd.cli.invocation import JOB_SECONDS, Invocation


def list_jobs(invocation: Invocation) -> None:
    """List the newest jobs."""
    options = invocation.options
    cwd = invocation.cwd if options.here else None
    found = invocation.call("job.list", cwd=cwd, limit=options.limit)
    screen = invocation.screen
    now = time.time()
    rows = [
        (
            screen.paint(job["job"], "bold"),
            job["kind"],
            _state(invocation, job),
            f"{output.duration(now - job['created'])} ago",
            job["directory"],
        )
        for job in found["jobs"]
    ]
    if not rows:
        screen.note("no jobs")
    screen.answer(found, output.table(rows, screen.width))


def show(invocation: Invocation) -> None:
    """Print one job."""
    _print(invocation, invocation.call("job.get", job=invocation.options.job))


def wait(invocation: Invocation) -> int:
    """Print one job once it has ended; 1 when it did not complete."""
    job = invocation.call("job.wait", seconds=JOB_SECONDS, job=invocation.options.job)
    _print(invocation, job)
    return 0 if job["state"] == "completed" else 1


def cancel(invocation: Invocation) -> None:
    """End a job now."""
    done = invocation.call("job.cancel", job=invocation.options.job)
    words = "cancelled" if done["cancelled"] else "it had ended already"
    invocation.screen.answer(done, words)


def _print(invocation: Invocation, job: dict[str, Any]) -> None:
    error = job.get("error") or {}
    took = (job.get("ended") or 0) - (job.get("started") or 0)
    pairs = [
        ("job", job["job"]),
        ("kind", job["kind"]),
        ("state", _state(invocation, job)),
        ("directory", job["directory"]),
        ("session", job["session"]),
        ("attempts", job["attempts"]),
        ("took", output.duration(took) if job.get("started") and job.get("ended") else ""),
        ("error", error.get("message")),
        ("result", json.dumps(job["result"], ensure_ascii=False) if job.get("result") else ""),
    ]
    invocation.screen.answer(job, output.facts(pairs))


def _state(invocation: Invocation, job: dict[str, Any]) -> str:
    styles = {"completed": "green", "running": "cyan", "failed": "red", "killed": "yellow"}
    phase = job.get("phase")
    words = f"{job['state']} ({phase})" if phase and job["state"] == "running" else job["state"]
    style = styles.get(job["state"])
    return invocation.screen.paint(words, style) if style else str(words)
