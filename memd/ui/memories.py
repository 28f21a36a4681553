"""The views of all projects and of one project's memories. Pure."""

from collections.abc import Mapping
from typing import Any

from memd.core.values import MemoryType
from memd.ui.link import MethodCall, Unanswered
from memd.ui.views import Answers, Context, PageQuery, PageView, answered

PAGE = 100
TYPES = (*MemoryType, "none")


def _projects(query: PageQuery) -> Mapping[str, MethodCall]:
    page = {"limit": PAGE, "after": query.get("after")}
    here = {"cwd": query.get("here"), "limit": 1}
    return {
        "known": MethodCall("project.list", page, optional=True),
        "status": MethodCall("status", {}),
        "local": MethodCall("memory.list", here, optional=True),
    }


def _projects_page(query: PageQuery, answers: Answers) -> Context:
    rows: list[dict[str, Any]] = answered(answers, "known", "projects") or []
    here, local = query.get("here"), answered(answers, "local")
    # Add the project in which the page was started if the daemon does not list it yet.
    if local and local["memories"] and not any(row["cwd"] == here for row in rows):
        empty = dict.fromkeys(("bytes", "last_at", "team", "proposals", "suggestions"))
        rows = [{"cwd": here, "memories": local["count"], **empty}, *rows]
    # The page may be started outside of any project, so a failure of "local" is no problem.
    known = answers["known"]
    failed = [known] if isinstance(known, Unanswered) and not known.absent else []
    return {"projects": rows, "here": here, "problems": failed}


def _project(query: PageQuery) -> Mapping[str, MethodCall]:
    narrowed = {"contains": query.get("q"), "type": query.one_of("type", "", *TYPES)}
    after = query.get("after")
    return {"listed": query.about("memory.list", limit=PAGE, after=after, **narrowed)}


def _usage(query: PageQuery, answers: Answers) -> Mapping[str, MethodCall]:
    paths = [memory["path"] for memory in answers["listed"]["memories"]]
    return {"usage": query.perhaps("usage.list", paths=paths, limit=PAGE)}


def _project_page(query: PageQuery, answers: Answers) -> Context:
    rows = answered(answers, "usage", "memories")
    return {
        "uses": None if rows is None else {row["path"]: row for row in rows},
        "types": TYPES,
        "q": query.get("q"),
        "type": query.one_of("type", "", *TYPES),
    }


VIEWS = (
    PageView("", "Projects", _projects, _projects_page, topics="memory.changed"),
    PageView(
        "project", "Memories", _project, _project_page, _usage, "project", topics="memory.changed"
    ),
)
