"""The views of all projects and of one project's memories. Pure."""

from collections.abc import Mapping
from typing import Any

from memd.ui.link import MethodCall
from memd.ui.views import Answers, Context, PageQuery, PageView, answered, problems

PAGE = 100
_UNTYPED = "none"
TYPES = ("user", "feedback", "project", "reference", _UNTYPED)


def _projects(query: PageQuery) -> Mapping[str, MethodCall]:
    here = {"cwd": query.get("here"), "limit": 1}
    return {
        "projects": MethodCall(
            "project.list", {"limit": PAGE, "after": query.get("after")}, optional=True
        ),
        "status": MethodCall("status", {}),
        "here": MethodCall("memory.list", here, optional=True),
    }


def _projects_page(query: PageQuery, answers: Answers) -> Context:
    rows: list[dict[str, Any]] = answered(answers, "projects", "projects") or []
    here, listed = query.get("here"), answered(answers, "here")
    if listed and listed["memories"] and not any(row["cwd"] == here for row in rows):
        counted = {"memories": listed["count"], "directory": listed["memory_dir"]}
        rows = [{"cwd": here, **counted}, *rows]
    empty = dict.fromkeys(("memories", "bytes", "team", "proposals", "suggestions"))
    named = [
        {
            **empty,
            **row,
            "name": row["cwd"].rstrip("/").rpartition("/")[2] or row["cwd"],
            "at": query.at(row.get("last_at")),
            "here": row["cwd"] == here,
        }
        for row in rows
    ]
    return {
        "projects": named,
        "here": here,
        "next": answered(answers, "projects", "next"),
        "status": answers["status"],
        "problems": problems({"projects": answers["projects"]}),
    }


def _project(query: PageQuery) -> Mapping[str, MethodCall]:
    contains, kind = query.get("q"), query.one_of("type", "", *TYPES)
    after = query.get("after")
    listed = query.about("memory.list", limit=PAGE, contains=contains, type=kind, after=after)
    return {"list": listed, "status": query.about("dream.status", optional=True)}


def _usage(query: PageQuery, answers: Answers) -> Mapping[str, MethodCall]:
    paths = [memory["path"] for memory in answers["list"]["memories"]]
    return {"usage": query.about("usage.list", paths=paths, limit=PAGE, optional=True)}


def _project_page(query: PageQuery, answers: Answers) -> Context:
    usage = {row["path"]: row for row in answered(answers, "usage", "memories") or ()}
    listed = answers["list"]
    rows = [
        {**memory, "at": query.at(memory["mtime"]), "usage": usage.get(memory["path"])}
        for memory in listed["memories"]
    ]
    return {
        "rows": rows,
        "count": listed["count"],
        "counted": answered(answers, "usage") is not None,
        "types": TYPES,
        "q": query.get("q"),
        "type": query.one_of("type", "", *TYPES),
        "next": listed["next"],
        "first": not query.get("after"),
        "index": listed["index"],
        "directory": listed["memory_dir"],
        "faults": listed["problems"],
        "problems": problems(answers),
    }


VIEWS = (
    PageView("", "Projects", "projects", _projects, _projects_page, topics=("memory.changed",)),
    PageView(
        "project",
        "Memories",
        "project",
        _project,
        _project_page,
        then=_usage,
        tab="project",
        topics=("memory.changed",),
    ),
)
