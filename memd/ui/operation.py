"""The views of the daemon as a whole: spend, health, the report, rules. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from memd.ui.chart import chart
from memd.ui.link import MethodCall
from memd.ui.views import Answers, Context, PageQuery, PageView

_DAYS = 30
_WEEK = 7
_COLUMNS = ("day", "kind", "project", "model")
_KINDS = 6


def _project(query: PageQuery) -> Mapping[str, str]:
    """Return the parameter ``cwd`` of the address, or an empty dict if it means all projects."""
    return {"cwd": cwd} if (cwd := query.get("cwd")) else {}


def _spend(query: PageQuery) -> Mapping[str, MethodCall]:
    days = query.number("days", 1, 400, _DAYS)
    return {f"by {by}": MethodCall("spend", {"days": days, "by": by}) for by in _COLUMNS}


def _spend_by_kind(query: PageQuery, answers: Answers) -> Mapping[str, MethodCall]:
    days = query.number("days", 1, 400, _DAYS)
    kinds = [row["label"] for row in answers["by kind"]["rows"]]
    return {
        f"days {kind}": MethodCall("spend", {"days": days, "by": "day", "kind": kind})
        for kind in kinds[:_KINDS]
    }


def _spend_page(query: PageQuery, answers: Answers) -> Context:
    days = query.number("days", 1, 400, _DAYS)
    kinds = [row["label"] for row in answers["by kind"]["rows"]][:_KINDS]
    today = datetime.fromtimestamp(query.now, UTC).date()
    columns: dict[str, dict[str, float]] = {
        (today - timedelta(days=back)).isoformat(): {} for back in range(days - 1, -1, -1)
    }
    for kind in kinds:
        for row in answers[f"days {kind}"]["rows"]:
            columns.setdefault(row["label"], {})[kind] = row["dollars"]
    return {
        "days": days,
        "chart": chart(sorted(columns.items()), kinds) if kinds else None,
        "tables": [(by, answers[f"by {by}"]["rows"]) for by in _COLUMNS],
        "total": answers["by day"]["total"],
        "today": answers["by day"]["today"],
    }


def _health(query: PageQuery) -> Mapping[str, MethodCall]:
    return {
        "doctor": MethodCall("doctor", _project(query)),
        "status": MethodCall("status", {}),
        "listed": MethodCall("job.list", {"limit": 20}, optional=True),
    }


def _health_page(_: PageQuery, answers: Answers) -> Context:
    order = {"failed": 0, "warning": 1}
    checks = answers["doctor"]["checks"]
    return {"checks": sorted(checks, key=lambda check: order.get(check["state"], 2))}


def _report(query: PageQuery) -> Mapping[str, MethodCall]:
    days = query.number("days", 1, 365, _WEEK)
    return {"report": MethodCall("report", {"days": days, **_project(query)}, optional=True)}


def _report_page(query: PageQuery, _: Answers) -> Context:
    return {"days": query.number("days", 1, 365, _WEEK)}


def _rules(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"known": query.perhaps("rule.list")}


VIEWS = (
    PageView("spend", "Spend", _spend, _spend_page, _spend_by_kind, topics="job.done"),
    PageView("health", "Health", _health, _health_page, topics="job.done"),
    PageView("report", "Report", _report, _report_page, topics="job.done"),
    PageView("rules", "Rules", _rules, tab="rules", topics="memory.changed"),
)
