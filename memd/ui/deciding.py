"""The views of what waits for the person, and of dreams. Pure."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from memd.ui.link import MethodCall
from memd.ui.memory import CHANGES, change_row, shown_diff
from memd.ui.views import Answers, Context, PageQuery, PageView, answered, problems

TYPES = ("user", "feedback", "project", "reference")
_JOBS = 200


def _review(query: PageQuery) -> Mapping[str, MethodCall]:
    return {
        "suggestions": query.about("suggestion.list", optional=True),
        "proposals": query.about("dream.review", all=bool(query.get("decided")), optional=True),
    }


def _review_page(query: PageQuery, answers: Answers) -> Context:
    suggestions = answered(answers, "suggestions", "suggestions") or []
    proposals = answered(answers, "proposals", "proposals") or []
    return {
        "suggestions": [{**one, "time": query.at(one["at"])} for one in suggestions],
        "proposals": [_proposal(query, one) for one in proposals],
        "types": TYPES,
        "decided": query.get("decided"),
        "problems": problems(answers),
    }


def _proposal(query: PageQuery, proposal: Mapping[str, Any], *, whole: bool = False) -> Context:
    files = [
        {
            **file,
            "diff": shown_diff(file["path"], file["diff"], whole=whole),
            "open": file["state"] == "open" and proposal["state"] == "open",
        }
        for file in proposal["files"]
    ]
    return {
        **proposal,
        "time": query.at(proposal["at"]),
        "files": files,
        "waiting": sum(file["open"] for file in files),
    }


def _one_proposal(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"proposals": query.about("dream.review", proposal=query["proposal"])}


def _proposal_page(query: PageQuery, answers: Answers) -> Context:
    (proposal,) = answers["proposals"]["proposals"]
    return {"proposal": _proposal(query, proposal, whole=bool(query.get("all")))}


def _dreams(query: PageQuery) -> Mapping[str, MethodCall]:
    return {
        "status": query.about("dream.status"),
        "jobs": query.about("job.list", limit=_JOBS),
        "history": query.about(
            "memory.history", actor="dream", limit=CHANGES, before=query.get("before")
        ),
    }


def _dreams_page(query: PageQuery, answers: Answers) -> Context:
    jobs = [job for job in answers["jobs"]["jobs"] if job["kind"] == "dream"]
    reports = {(job["result"] or {}).get("change"): _report(query, job) for job in jobs}
    changes = answers["history"]["changes"]
    rows = [{**change_row(query, one), "report": reports.get(one["id"])} for one in changes]
    without = [_report(query, job) for job in jobs if not (job["result"] or {}).get("change")]
    status = answers["status"]
    return {
        "status": {**status, "last": query.at(status["last"]), "due": query.at(status["due"])},
        "nights": _nights(rows),
        "without": [] if query.get("before") else without,
        "older": rows[-1]["id"] if len(rows) == CHANGES else "",
        "problems": problems(answers),
    }


def _report(query: PageQuery, job: Mapping[str, Any]) -> Context:
    """Return what a dream's job tells, however little it came to."""
    result = job["result"] or {}
    names = ("created", "changed", "merged", "removed", "left", "listed", "questions")
    return {
        "job": job["job"],
        "state": job["state"],
        "time": query.at(job["ended"] or job["created"]),
        "engine": result.get("engine") or "",
        "dollars": result.get("dollars"),
        "seconds": result.get("seconds"),
        "proposal": result.get("proposal"),
        "error": (job["error"] or {}).get("message", ""),
        "before": result.get("before"),
        "after": result.get("after"),
        "said": result.get("said") or "",
        "counts": [(name, len(result[name])) for name in names if result.get(name)],
    }


def _nights(rows: Sequence[Context]) -> list[tuple[str, list[Context]]]:
    """Return the changes by day, the newest first."""
    by_day = groupby(rows, key=lambda row: row["time"].day if row["time"] else "")
    return [(day, list(changes)) for day, changes in by_day]


VIEWS = (
    PageView(
        "review",
        "To decide",
        "review",
        _review,
        _review_page,
        tab="review",
        topics=("memory.changed", "job.done"),
    ),
    PageView(
        "proposal",
        "A proposal",
        "proposal",
        _one_proposal,
        _proposal_page,
        tab="review",
    ),
    PageView(
        "dreams",
        "Dreams",
        "dreams",
        _dreams,
        _dreams_page,
        tab="dreams",
        topics=("job.progress", "job.done"),
    ),
)
