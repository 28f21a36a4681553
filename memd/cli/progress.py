"""A job followed live on a terminal: one line that says where it is, then its end."""

from typing import Any

from memd.cli.invocation import JOB_SECONDS, Invocation

_SHOWN = 3  # facts beside the phase


def follow(invocation: Invocation, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Start a job and show its progress; return what waiting for it would have returned.

    Subscribing comes first, so that a job that ends at once is not missed.
    """
    invocation.ask("subscribe", topics=["job.progress", "job.done"])
    started: dict[str, Any] = invocation.ask(method, **params)
    job = started.get("job")
    if not job:
        return started
    try:
        wait_for(invocation, job)
    finally:
        invocation.screen.passing("")
    return outcome(invocation.call("job.get", job=job))


def wait_for(invocation: Invocation, job: str) -> None:
    """Show the progress of a job until it has ended or nothing came for very long."""
    seconds = invocation.options.timeout or JOB_SECONDS
    for told in invocation.client().notifications(seconds):
        if told.params.get("job") != job:
            continue
        if told.method == "job.done":
            return
        invocation.screen.passing(_words(told.params))


def outcome(job: dict[str, Any]) -> dict[str, Any]:
    """Return an ended job as the method's own answer would say it."""
    facts: dict[str, Any] = {"status": job["state"], "job": job["job"]}
    if job.get("error"):
        facts["reason"] = job["error"].get("message")
    return facts | (job.get("result") or {})


def _words(params: dict[str, Any]) -> str:
    known = {"job", "kind", "phase", "directory"}
    facts = [
        f"{name} {value}"
        for name, value in params.items()
        if name not in known and isinstance(value, str | int | float)
    ]
    return ", ".join([f"{params.get('kind')}: {params.get('phase')}", *facts[:_SHOWN]])
