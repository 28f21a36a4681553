"""The views of the daemon as a whole: spend, health, the report, rules. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from memd.ui.chart import chart
from memd.ui.link import MethodCall
from memd.ui.views import ON_CHANGE, Answers, Calls, Context, PageQuery, PageView

_DAYS = 30  # of the spend, unless the address says another number
_WEEK = 7  # days of the report, unless the address says another number
_COLUMNS = ("day", "kind", "project", "model")  # by which the spend is summed, a table each
_KINDS = 6  # that the chart shows, of those by which money was spent


def _project(query: PageQuery) -> Mapping[str, str]:
    """Return the parameter ``cwd`` of the address, or an empty dict if it means all projects."""
    return {"cwd": cwd} if (cwd := query.get("cwd")) else {}


def _spend_days(query: PageQuery) -> int:
    return query.number("days", 1, 400, _DAYS)


def _chart_kinds(answers: Answers) -> list[str]:
    """Return the kinds of spend that the chart shows, those with most spend."""
    return [row["label"] for row in answers["by kind"]["rows"][:_KINDS]]


def _spend_calls(query: PageQuery) -> Calls:
    """Return the calls for the spend, summed by each of the columns."""
    days = _spend_days(query)
    return {f"by {by}": MethodCall("spend", {"days": days, "by": by}) for by in _COLUMNS}


def _later_spend_calls(query: PageQuery, answers: Answers) -> Calls:
    """Return the calls for the daily spend of each kind in the chart."""
    by_day = {"days": _spend_days(query), "by": "day"}
    kinds = _chart_kinds(answers)
    return {f"days {kind}": MethodCall("spend", {**by_day, "kind": kind}) for kind in kinds}


def _spend_page(query: PageQuery, answers: Answers) -> Context:
    """Return the chart of the daily spend, the tables, and the totals."""
    days, kinds = _spend_days(query), _chart_kinds(answers)
    first_day = datetime.fromtimestamp(query.now, UTC).date() - timedelta(days=days - 1)
    # Each day has a column, also a day without spend. A column has the dollars of each kind.
    columns: dict[str, dict[str, float]] = {
        (first_day + timedelta(days=n)).isoformat(): {} for n in range(days)
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


def _health_calls(query: PageQuery) -> Calls:
    jobs = MethodCall("job.list", {"limit": 20}, optional=True)
    doctor = MethodCall("doctor", _project(query))
    return {"doctor": doctor, "status": MethodCall("status", {}), "listed": jobs}


def _health_page(_: PageQuery, answers: Answers) -> Context:
    """Return the checks: the failed ones first, then the warnings, then the others."""
    ranks = {"failed": 0, "warning": 1}
    checks = answers["doctor"]["checks"]
    return {"checks": sorted(checks, key=lambda check: ranks.get(check["state"], 2))}


def _report_calls(query: PageQuery) -> Calls:
    days = query.number("days", 1, 365, _WEEK)
    return {"report": MethodCall("report", {"days": days, **_project(query)}, optional=True)}


def _report_page(query: PageQuery, _: Answers) -> Context:
    return {"days": query.number("days", 1, 365, _WEEK)}


def _rules_calls(query: PageQuery) -> Calls:
    return {"known": query.optional_call("rule.list")}


VIEWS = (
    PageView("spend", "Spend", _spend_calls, _spend_page, _later_spend_calls, topics="job.done"),
    PageView("health", "Health", _health_calls, _health_page, topics="job.done"),
    PageView("report", "Report", _report_calls, _report_page, topics="job.done"),
    PageView("rules", "Rules", _rules_calls, tab="rules", topics=ON_CHANGE),
)
