"""The views of what waits for the person, and of dreams. Pure."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from memd.base.values import MemoryType
from memd.ui.memory import CHANGES, history_page, shown_diff
from memd.ui.views import Answers, Calls, Context, PageQuery, PageView, result_or_none

_JOBS = 200  # the newest jobs, among which are the dreams
# The lists in a dream's result whose lengths are shown.
_COUNTS = ("created", "changed", "merged", "removed", "left", "listed")


def _review_calls(query: PageQuery) -> Calls:
    return {"review": query.optional_call("review.list")}


def _review_page(query: PageQuery, answers: Answers) -> Context:
    """Return the items that wait, each with the diffs of its files."""
    whole = bool(query.get("all"))
    items = [
        (item, [(file, shown_diff(file, whole=whole)) for file in item["files"]])
        for item in result_or_none(answers, "review", "items") or ()
    ]
    return {"items": items, "types": tuple(MemoryType)}


def _dreams_calls(query: PageQuery) -> Calls:
    """Return the calls for the state of dreaming, the newest jobs, and the changes by dreams."""
    status, jobs = query.project_call("dream.status"), query.project_call("job.list", limit=_JOBS)
    page = {"limit": CHANGES, "before": query.get("before")}
    history = query.project_call("memory.history", actor="dream", **page)
    return {"status": status, "jobs": jobs, "history": history}


def _dreams_page(query: PageQuery, answers: Answers) -> Context:
    """Return dreams' changes by day, the reports of their jobs, and reports without a change."""
    jobs = [job for job in answers["jobs"]["jobs"] if job["kind"] == "dream"]
    reports = {(job["result"] or {}).get("change"): _job_report(job) for job in jobs}
    page = history_page(query, answers)
    by_day = groupby(page["changes"], lambda change: getattr(query.at(change["at"]), "day", ""))
    return {
        **page,
        "reports": reports,
        "nights": [(day, list(rows)) for day, rows in by_day],
        "without": [_job_report(job) for job in jobs if not (job["result"] or {}).get("change")],
    }


def _job_report(job: Mapping[str, Any]) -> Context:
    """Return a dream job's facts for the template, empty where its result lacks them."""
    result = job["result"] or {}
    names = ("engine", "dollars", "proposal", "before", "after", "said")
    return {
        **{name: result.get(name) for name in names},
        "state": job["state"],
        "ended": job["ended"] or job["created"],
        "error": (job["error"] or {}).get("message", ""),
        "counts": [(name, len(result[name])) for name in _COUNTS if result.get(name)],
    }


VIEWS = (
    PageView("review", "To decide", _review_calls, _review_page, tab="review"),
    PageView("dreams", "Dreams", _dreams_calls, _dreams_page, tab="dreams"),
)
