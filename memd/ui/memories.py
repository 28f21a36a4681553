"""The views of all projects and of one project's memories. Pure."""

from typing import Any

from memd.core.values import MemoryType
from memd.ui.link import MethodCall, Unanswered
from memd.ui.views import ON_CHANGE, Answers, Calls, Context, PageQuery, PageView, result_or_none

PAGE = 100  # the most rows of a list on one page
TYPES = (*MemoryType, "none")  # the filters of the list; "none" is for memories without a type


def _projects_calls(query: PageQuery) -> Calls:
    """Return the calls for the projects, the daemon's status, and memories where we started."""
    page, here = {"limit": PAGE, "after": query.get("after")}, query.get("here")
    known = MethodCall("project.list", page, optional=True)
    local = MethodCall("memory.list", {"cwd": here, "limit": 1}, optional=True)
    return {"known": known, "status": MethodCall("status", {}), "local": local}


def _projects_page(query: PageQuery, answers: Answers) -> Context:
    """Return the projects, with the one in which the page was started, and what failed."""
    rows: list[dict[str, Any]] = result_or_none(answers, "known", "projects") or []
    here, local = query.get("here"), result_or_none(answers, "local")
    # Add the project in which the page was started if the daemon does not list it yet.
    if local and local["memories"] and not any(row["cwd"] == here for row in rows):
        empty = dict.fromkeys(("bytes", "last_at", "team", "proposals", "suggestions"))
        rows = [{"cwd": here, "memories": local["count"], **empty}, *rows]
    # The page may be started outside of any project, so a failure of "local" is no problem.
    known = answers["known"]
    failed = [known] if isinstance(known, Unanswered) and not known.absent else []
    return {"projects": rows, "here": here, "problems": failed}


def _project_calls(query: PageQuery) -> Calls:
    """Return the call for a page of the project's memories, filtered by words and type."""
    narrowed = {"contains": query.get("q"), "type": query.one_of("type", "", *TYPES)}
    after = query.get("after")
    return {"listed": query.project_call("memory.list", limit=PAGE, after=after, **narrowed)}


def _later_project_calls(query: PageQuery, answers: Answers) -> Calls:
    paths = [memory["path"] for memory in answers["listed"]["memories"]]
    return {"usage": query.optional_call("usage.list", paths=paths, limit=PAGE)}


def _project_page(query: PageQuery, answers: Answers) -> Context:
    """Return each memory's use by its path, and the values of the filter."""
    rows = result_or_none(answers, "usage", "memories")
    return {
        "uses": None if rows is None else {row["path"]: row for row in rows},
        "types": TYPES,
        "q": query.get("q"),
        "type": query.one_of("type", "", *TYPES),
    }


VIEWS = (
    PageView("", "Projects", _projects_calls, _projects_page, topics=ON_CHANGE),
    PageView(
        "project",
        "Memories",
        _project_calls,
        _project_page,
        _later_project_calls,
        "project",
        ON_CHANGE,
    ),
)
