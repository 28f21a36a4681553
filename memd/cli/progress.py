"""A job followed live on a terminal: what it tells while it runs, then its end."""

from typing import Any

from memd.cli.invocation import JOB_SECONDS, Invocation
from memd.cli.live import View

_TICK_SECONDS = 1.0
_TOPICS = ["job.progress", "job.done"]


def follow(invocation: Invocation, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Start a job and show its progress; return what waiting for it would have returned.

    Subscribing comes first, so that a job that ends at once is not missed.
    """
    invocation.ask("subscribe", topics=_TOPICS)
    started: dict[str, Any] = invocation.ask(method, **params)
    job = started.get("job")
    if not job:
        return started
    _watch(invocation, job, View(invocation.screen))
    return outcome(invocation.call("job.get", job=job))


def join(invocation: Invocation, job: str) -> dict[str, Any]:
    """Show the progress of a job that may be at work for long, and return the job at its end.

    What it told before comes first.
    """
    invocation.call("subscribe", topics=_TOPICS)
    found: dict[str, Any] = invocation.call("job.get", job=job)
    if found.get("ended"):
        return found
    view = View(invocation.screen)
    if found.get("progress"):
        view.catch_up({"kind": found["kind"], **found["progress"]})
    _watch(invocation, job, view)
    ended: dict[str, Any] = invocation.call("job.get", job=job)
    return ended


def wait_for(invocation: Invocation, job: str, view: View) -> None:
    """Show the progress of a job until it has ended or nothing came for very long."""
    patience = invocation.options.timeout or JOB_SECONDS
    silent = 0.0
    while silent < patience:
        seconds = min(_TICK_SECONDS, patience - silent)
        for told in invocation.client().notifications(seconds):
            silent = 0.0
            if told.params.get("job") != job:
                continue
            if told.method == "job.done":
                return
            view.show(told.params)
        silent += seconds
        view.tick()


def outcome(job: dict[str, Any]) -> dict[str, Any]:
    """Return an ended job as the method's own answer would say it."""
    facts: dict[str, Any] = {"status": job["state"], "job": job["job"]}
    if job.get("error"):
        facts["reason"] = job["error"].get("message")
    return facts | (job.get("result") or {})


def _watch(invocation: Invocation, job: str, view: View) -> None:
    """Wait for a job's end; who stops watching is told that the job goes on."""
    try:
        wait_for(invocation, job, view)
    except KeyboardInterrupt:
        invocation.screen.passing("")
        invocation.screen.note(f"{job} goes on in the daemon; end it with: memctl job cancel {job}")
        raise
    finally:
        invocation.screen.passing("")
