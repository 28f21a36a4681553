"""The result of a job as the method that begins it would answer."""

from typing import Any


def result_of_job(answer: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Return the ``answer`` that began a job as it is at the job's end.

    ``facts`` are what ``job.list`` tells of the job. No member of ``answer`` is left out.
    """
    ended = {**answer, "status": facts["state"]}
    if facts.get("error"):
        ended["reason"] = facts["error"].get("message")
    return {**ended, **(facts.get("result") or {})}
