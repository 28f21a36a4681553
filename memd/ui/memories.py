"""The views of all projects and of one project's memories. Pure."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from memd.base.values import MemoryType
from memd.ui.link import MethodCall
from memd.ui.views import Answers, Calls, Context, PageQuery, PageView, result_or_none

PAGE = 100  # the most memories on one page
TYPES = (*MemoryType, "none")  # the filters of the list; "none" is for memories without a type
_PROJECTS = 100  # whose memories are counted


def _projects_calls(_: PageQuery) -> Calls:
    return {"status": MethodCall("status", {})}


def _folders(query: PageQuery, status: Mapping[str, Any]) -> dict[str, str]:
    """Return the memory directory of each project by its folder, "" for where we started."""
    folders = {cwd: directory for directory, cwd in status["folders"].items()}
    return folders if query.get("here") in folders else {query.get("here"): "", **folders}


def _later_projects_calls(query: PageQuery, answers: Answers) -> Calls:
    """Return the calls that count the memories of the first projects, and what waits there."""
    calls = {}
    for cwd in islice(_folders(query, answers["status"]), _PROJECTS):
        calls[f"listed {cwd}"] = MethodCall("memory.list", {"cwd": cwd, "limit": 1}, optional=True)
        calls[f"waiting {cwd}"] = MethodCall("review.list", {"cwd": cwd}, optional=True)
    return calls


def _projects_page(query: PageQuery, answers: Answers) -> Context:
    """Return the projects, with the one in which the page was started if it has memories."""
    status, here = answers["status"], query.get("here")
    rows = []
    for cwd, directory in _folders(query, status).items():
        count = result_or_none(answers, f"listed {cwd}", "count")
        waiting = len(result_or_none(answers, f"waiting {cwd}", "items") or ())
        if directory or count:
            is_shared = directory in status["teams"]
            rows.append({"cwd": cwd, "memories": count, "waiting": waiting, "team": is_shared})
    # A call fails where memory is off, and the page may be started outside of any project.
    return {"projects": rows, "here": here, "problems": []}


def _project_calls(query: PageQuery) -> Calls:
    """Return the call for a page of the project's memories, filtered by words and type."""
    narrowed = {"contains": query.get("q"), "type": query.one_of("type", "", *TYPES)}
    after = query.get("after")
    return {"listed": query.project_call("memory.list", limit=PAGE, after=after, **narrowed)}


def _project_page(query: PageQuery, _: Answers) -> Context:
    """Return the values of the filter."""
    return {"types": TYPES, "q": query.get("q"), "type": query.one_of("type", "", *TYPES)}


VIEWS = (
    PageView("", "Projects", _projects_calls, _projects_page, _later_projects_calls),
    PageView("project", "Memories", _project_calls, _project_page, tab="project"),
)
