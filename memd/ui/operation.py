"""The views of the daemon as a whole: spend, health, the report, rules. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memd.ui.chart import chart
from memd.ui.link import MethodCall
from memd.ui.views import Answers, Context, PageQuery, PageView, answered, problems

_DAYS = 30
_WEEK = 7
_REPORT_DAYS = (7, 30, 90)


def _spend(query: PageQuery) -> Mapping[str, MethodCall]:
    days = query.number("days", 1, 400, _DAYS)
    return {
        by: MethodCall("spend", {"days": days, "by": by})
        for by in ("day", "kind", "project", "model")
    }


def _spend_page(query: PageQuery, answers: Answers) -> Context:
    days = query.number("days", 1, 400, _DAYS)
    by_day = {row["label"]: row for row in answers["day"]["rows"]}
    today = datetime.fromtimestamp(query.now, UTC).date()
    columns = []
    for back in range(days - 1, -1, -1):
        label = (today - timedelta(days=back)).isoformat()
        columns.append((label, {"all": by_day.get(label, {}).get("dollars", 0.0)}))
    tables = [(by, answers[by]["rows"]) for by in ("day", "kind", "project", "model")]
    return {
        "days": days,
        "chart": chart(columns, ("all",)) if by_day else None,
        "kinds": _shares(answers["kind"]["rows"]),
        "tables": tables,
        "total": answers["day"]["total"],
        "today": answers["day"]["today"],
    }


def _shares(rows: Sequence[Mapping[str, Any]]) -> list[Context]:
    most = max((row["dollars"] for row in rows), default=0) or 1
    return [{**row, "share": round(100 * row["dollars"] / most, 1)} for row in rows]


def _health(query: PageQuery) -> Mapping[str, MethodCall]:
    return {
        "doctor": MethodCall("doctor", {"cwd": query.get("cwd")}),
        "status": MethodCall("status", {}),
        "jobs": MethodCall("job.list", {"limit": 20}, optional=True),
    }


def _health_page(query: PageQuery, answers: Answers) -> Context:
    checks = answers["doctor"]["checks"]
    order = {"failed": 0, "warning": 1}
    jobs = answered(answers, "jobs", "jobs") or []
    status = answers["status"]
    return {
        "ok": answers["doctor"]["ok"],
        "checks": sorted(checks, key=lambda check: order.get(check["state"], 2)),
        "status": status,
        "paused": query.at(status["paused_since"]),
        "jobs": [{**job, "time": query.at(job["created"])} for job in jobs],
        "problems": problems(answers),
    }


def _report(query: PageQuery) -> Mapping[str, MethodCall]:
    days = query.number("days", 1, 400, _WEEK)
    return {"report": MethodCall("report", {"cwd": query.get("cwd"), "days": days}, optional=True)}


def _report_page(query: PageQuery, answers: Answers) -> Context:
    report = answered(answers, "report")
    return {
        "days": query.number("days", 1, 400, _WEEK),
        "choices": _REPORT_DAYS,
        "report": report,
        "since": query.at((report or {}).get("since")),
        "problems": problems(answers),
    }


def _rules(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"rules": query.about("rule.list", optional=True)}


def _rules_page(query: PageQuery, answers: Answers) -> Context:
    listed = answered(answers, "rules")
    rules = (listed or {}).get("rules", [])
    times = [
        {**rule, "time": query.at(rule["at"]), "last": query.at(rule["last_at"])} for rule in rules
    ]
    return {
        "known": listed is not None,
        "rules": times,
        "candidates": (listed or {}).get("candidates", []),
        "problems": problems(answers),
    }


VIEWS = (
    PageView("spend", "Spend", "spend", _spend, _spend_page, topics=("job.done",)),
    PageView("health", "Health", "health", _health, _health_page, topics=("job.done",)),
    PageView("report", "Report", "report", _report, _report_page, topics=("job.done",)),
    PageView(
        "rules", "Rules", "rules", _rules, _rules_page, tab="rules", topics=("memory.changed",)
    ),
)
