"""The views of one memory and of the changes of a project. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from memd.core.instants import written
from memd.core.names import INDEX
from memd.ui import diffs, texts
from memd.ui.link import MethodCall
from memd.ui.views import Answers, Context, PageQuery, PageView, answered

CHANGES = 50
_SHOWN_DIFFS = 5  # of a memory's newest changes
_FENCE = "---"


class ShownDiff(Struct, frozen=True):
    """One file's diff; ``left`` is the number of rows that are not shown."""

    path: str
    lines: Sequence[diffs.DiffLine]
    sides: Sequence[diffs.SideBySide]
    left: int


def shown_diff(file: Mapping[str, Any], *, whole: bool = False) -> ShownDiff:
    """Return a file's diff as rows, the first ``diffs.ROWS`` unless ``whole``."""
    rows = diffs.lines(file["diff"])
    shown = rows if whole else rows[: diffs.ROWS]
    return ShownDiff(file["path"], shown, diffs.sides(shown), len(rows) - len(shown))


def changes(answers: Answers) -> Context:
    """Return a page of the history; ``older`` is its last change, or "" if none follows."""
    rows = answers["history"]["changes"]
    return {"changes": rows, "older": rows[-1]["id"] if len(rows) == CHANGES else ""}


def split(content: str) -> tuple[list[str], str]:
    """Return the lines of a memory's frontmatter, none if it has none, and its text."""
    lines = content.split("\n")
    bare = [one.rstrip("\r") for one in lines]
    if bare[0] != _FENCE or _FENCE not in bare[1:]:
        return [], content
    end = bare.index(_FENCE, 1)
    return bare[1:end], "\n".join(lines[end + 1 :]).lstrip("\n")


def is_editable(content: str) -> bool:
    """Return whether a form sends a text back unchanged: browsers change or hide none of it."""
    ends = content.replace("\r\n", "")
    uniform = "\r" not in ends and not ("\r\n" in content and "\n" in ends)
    return uniform and texts.visible(content) == content


def _memory(query: PageQuery) -> Mapping[str, MethodCall]:
    path, before = query["path"], query.get("before")
    why = query.perhaps if path == INDEX else query.about  # the index has no origin
    return {
        "memory": query.perhaps("memory.read", path=path),
        "why": why("memory.why", path=path),
        "history": query.about("memory.history", path=path, limit=CHANGES, before=before),
        "usage": query.perhaps("usage.list", paths=[path]),
        "recent": query.perhaps("usage.recent", path=path, limit=20),
    }


def _memory_diffs(query: PageQuery, answers: Answers) -> Mapping[str, MethodCall]:
    ids = [change["id"] for change in answers["history"]["changes"] if change["id"]]
    about = {"path": query["path"]}
    return {name: query.perhaps("memory.diff", change=name, **about) for name in ids[:_SHOWN_DIFFS]}


def _memory_page(query: PageQuery, answers: Answers) -> Context:
    content = answered(answers, "memory", "content") or ""
    head, body = split(content)
    page = changes(answers)
    ids = [change["id"] for change in page["changes"]]
    files = {name: answered(answers, name, "files") or () for name in ids}
    why = answered(answers, "why") or {}
    used = answered(answers, "usage", "memories")
    return {
        **page,
        "is_index": query["path"] == INDEX,
        "gone": "" if content else getattr(answers["memory"], "sentence", ""),
        "head": head,
        "body": texts.cut(body, whole=bool(query.get("all"))),
        "editable": is_editable(content),
        "writers": [(n.capitalize(), why[n]) for n in ("first", "last") if why.get(n)],
        "diffs": {name: [shown_diff(file) for file in files[name]] for name in files},
        "used": used[0] if used else None,
        "counted": used is not None,
    }


def _history(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"history": query.about("memory.history", limit=CHANGES, before=query.get("before"))}


def _change(query: PageQuery) -> Mapping[str, MethodCall]:
    at = written(query.get("at"))
    times = {"since": at, "until": at + 1} if at else {"limit": 1}
    return {
        "diff": query.about("memory.diff", change=query["change"]),
        "near": query.perhaps("memory.history", **times),
    }


def _change_page(query: PageQuery, answers: Answers) -> Context:
    near = answered(answers, "near", "changes") or ()
    whole = bool(query.get("all"))
    return {
        "facts": next((one for one in near if one["id"] == query["change"]), None),
        "files": [shown_diff(file, whole=whole) for file in answers["diff"]["files"]],
        "together": query.get("view") == "lines",
    }


VIEWS = (
    PageView("memory", "Memory", _memory, _memory_page, _memory_diffs, "project", "memory.changed"),
    PageView(
        "history",
        "Changes",
        _history,
        lambda _, answers: changes(answers),
        tab="history",
        topics="memory.changed",
    ),
    PageView("change", "A change", _change, _change_page, tab="history"),
)
