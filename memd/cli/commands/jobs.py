"""job list|show|wait|cancel|retry, pause and resume: background work."""

import time
from typing import Any

from memd.cli import job_page, output
from memd.cli.invocation import JOB_SECONDS, Invocation


def list_jobs(invocation: Invocation) -> None:
    """List the newest jobs."""
    options = invocation.options
    cwd = invocation.cwd if options.here else None
    found = invocation.call("job.list", cwd=cwd, limit=options.limit, parked=options.parked or None)
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
        screen.note("no parked jobs" if options.parked else "no jobs")
    screen.answer(found, output.table(rows, screen.width))


def show(invocation: Invocation) -> None:
    """Print one job with its result, and what a model did in it turn by turn."""
    _print(invocation, invocation.call("job.get", job=invocation.options.job, record=True))


def wait(invocation: Invocation) -> int:
    """Print one job once it has ended, watched live on a terminal; 1 unless it completed."""
    name = invocation.options.job
    if invocation.screen.live:
        from memd.cli.progress import join  # noqa: PLC0415 - only on a terminal

        job = join(invocation, name)
    else:
        job = invocation.call("job.wait", seconds=JOB_SECONDS, job=name)
    _print(invocation, job)
    return 0 if job["state"] == "completed" else 1


def cancel(invocation: Invocation) -> None:
    """End a job now."""
    done = invocation.call("job.cancel", job=invocation.options.job)
    words = "cancelled" if done["cancelled"] else "it had ended already"
    invocation.screen.answer(done, words)


def retry(invocation: Invocation) -> None:
    """Put a parked job back into the queue."""
    job = invocation.call("job.retry", job=invocation.options.job)
    invocation.screen.answer(job, f"{job['job']} is {job['state']} again")


def pause(invocation: Invocation) -> None:
    """Stop background work until it is resumed."""
    stands = invocation.call("pause", seconds=JOB_SECONDS, now=invocation.options.now or None)
    words = f"background work is paused; {_left(stands['waiting'])}"
    invocation.screen.answer(stands, words)


def resume(invocation: Invocation) -> None:
    """Let background work go on."""
    stands = invocation.call("resume")
    invocation.screen.answer(stands, f"background work goes on; {_left(stands['waiting'])}")


def _left(waiting: int) -> str:
    return "no job waits" if not waiting else f"{waiting} job{'s' * (waiting > 1)} to do"


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
        ("held by", f"process {job['holder']}" if job.get("holder") else ""),
        *job_page.result(job.get("result") or {}),
    ]
    invocation.screen.answer(job, output.facts(pairs) + job_page.record(job.get("record") or ()))


def _state(invocation: Invocation, job: dict[str, Any]) -> str:
    styles = {"completed": "green", "running": "cyan", "failed": "red", "killed": "yellow"}
    phase = job.get("phase")
    words = f"{job['state']} ({phase})" if phase and job["state"] == "running" else job["state"]
    words = "failed (parked)" if job.get("parked") else words
    style = styles.get(job["state"])
    return invocation.screen.paint(words, style) if style else str(words)
