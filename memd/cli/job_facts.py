"""The result of a job as the method that begins it would answer."""

from typing import Any


def result_of_job(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the status, id and result of a job, from what ``job.get`` tells of it."""
    result = {"status": facts["state"], "job": facts["job"]}
    if facts.get("error"):
        result["reason"] = facts["error"].get("message")
    return {**result, **(facts.get("result") or {})}
