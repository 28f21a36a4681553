"""The views of suggestions and proposals to decide, and of dreams. Pure."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from memd.core.values import MemoryType
from memd.ui.link import MethodCall
from memd.ui.memory import CHANGES, changes, shown_diff
from memd.ui.views import Answers, Context, PageQuery, PageView, answered

_JOBS = 200
_COUNTS = ("created", "changed", "merged", "removed", "left", "listed", "questions")


def _review(query: PageQuery) -> Mapping[str, MethodCall]:
    decided = bool(query.get("decided"))
    return {
        "suggested": query.perhaps("suggestion.list"),
        "proposed": query.perhaps("dream.review", all=decided),
    }


def _review_page(query: PageQuery, answers: Answers) -> Context:
    proposals = answered(answers, "proposed", "proposals") or ()
    return {
        "suggestions": answered(answers, "suggested", "suggestions") or (),
        "proposals": [{**one, "waiting": _open_paths(one)} for one in proposals],
        "types": tuple(MemoryType),
        "decided": query.get("decided"),
    }


def _open_paths(proposal: Mapping[str, Any]) -> list[str]:
    """Return the paths of the open files of an open proposal, none of a decided one."""
    files = proposal["files"] if proposal["state"] == "open" else ()
    return [file["path"] for file in files if file["state"] == "open"]


def _proposal(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"proposed": query.about("dream.review", proposal=query["proposal"])}


def _proposal_page(query: PageQuery, answers: Answers) -> Context:
    (proposal,) = answers["proposed"]["proposals"]
    whole = bool(query.get("all"))
    files = [(file, shown_diff(file, whole=whole)) for file in proposal["files"]]
    return {"proposal": proposal, "files": files, "waiting": _open_paths(proposal)}


def _dreams(query: PageQuery) -> Mapping[str, MethodCall]:
    page = {"limit": CHANGES, "before": query.get("before")}
    return {
        "status": query.about("dream.status"),
        "jobs": query.about("job.list", limit=_JOBS),
        "history": query.about("memory.history", actor="dream", **page),
    }


def _dreams_page(query: PageQuery, answers: Answers) -> Context:
    jobs = [job for job in answers["jobs"]["jobs"] if job["kind"] == "dream"]
    reports = {(job["result"] or {}).get("change"): _job_report(job) for job in jobs}
    page = changes(answers)
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
    names = ("engine", "dollars", "proposal", "unused", "before", "after", "said")
    return {
        **{name: result.get(name) for name in names},
        "state": job["state"],
        "ended": job["ended"] or job["created"],
        "error": (job["error"] or {}).get("message", ""),
        "counts": [(name, len(result[name])) for name in _COUNTS if result.get(name)],
    }


VIEWS = (
    PageView(
        "review",
        "To decide",
        _review,
        _review_page,
        tab="review",
        topics="memory.changed job.done",
    ),
    PageView("proposal", "A proposal", _proposal, _proposal_page, tab="review"),
    PageView(
        "dreams", "Dreams", _dreams, _dreams_page, tab="dreams", topics="job.progress job.done"
    ),
)
