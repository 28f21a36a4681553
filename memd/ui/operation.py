"""The views of the daemon as a whole: its health and the report. Pure."""

from collections.abc import Mapping

from memd.ui.link import MethodCall
from memd.ui.views import Answers, Calls, Context, PageQuery, PageView

_WEEK = 7  # days of the report, unless the address says another number


def _project(query: PageQuery) -> Mapping[str, str]:
    """Return the parameter ``cwd`` of the address, or an empty dict if it means all projects."""
    return {"cwd": cwd} if (cwd := query.get("cwd")) else {}


def _health_calls(query: PageQuery) -> Calls:
    jobs = MethodCall("job.list", {"limit": 20}, optional=True)
    doctor = MethodCall("doctor", _project(query))
    return {"doctor": doctor, "status": MethodCall("status", {}), "listed": jobs}


def _health_page(_: PageQuery, answers: Answers) -> Context:
    """Return the checks: the failed ones first, then the warnings, then the others."""
    ranks = {"failed": 0, "warning": 1}
    checks = answers["doctor"]["checks"]
    return {"checks": sorted(checks, key=lambda check: ranks.get(check["state"], 2))}


def _report_days(query: PageQuery) -> int:
    return query.number("days", 1, 365, _WEEK)


def _report_calls(query: PageQuery) -> Calls:
    return {"report": MethodCall("report", {"days": _report_days(query), **_project(query)})}


def _report_page(query: PageQuery, _: Answers) -> Context:
    return {"days": _report_days(query)}


VIEWS = (
    PageView("health", "Health", _health_calls, _health_page),
    PageView("report", "Report", _report_calls, _report_page),
)
