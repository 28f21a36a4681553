"""The views of one memory and of the changes of a project. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memd.core.instants import written
from memd.core.names import INDEX
from memd.ui import diffs, texts
from memd.ui.link import MethodCall
from memd.ui.views import Answers, Context, PageQuery, PageView, answered, problems

CHANGES = 50
_SHOWN_DIFFS = 5  # of a memory's newest changes
_FENCE = "---"


@dataclass(frozen=True, slots=True)
class ShownDiff:
    """One file's diff; ``left`` is the number of rows that are not shown."""

    path: str
    lines: Sequence[diffs.DiffLine]
    sides: Sequence[diffs.SideBySide]
    left: int


def shown_diff(path: str, diff: str, *, whole: bool = False) -> ShownDiff:
    """Return a file's diff as a page shows it."""
    rows = diffs.lines(diff)
    shown = rows if whole else rows[: diffs.ROWS]
    return ShownDiff(path, shown, diffs.sides(shown), len(rows) - len(shown))


def change_row(query: PageQuery, change: Mapping[str, Any]) -> Context:
    """Return a change of the history as a page shows it."""
    by = [change["actor"], change["client"], change["model"]]
    return {
        **change,
        "time": query.at(change["at"]),
        "by": ", ".join(dict.fromkeys(filter(None, by))),
        "purged": any(file["purged"] for file in change["files"]),
    }


def split(content: str) -> tuple[list[str], str]:
    """Return the lines of a memory's frontmatter, none where it has none, and its text."""
    lines = content.split("\n")
    bare = [one.rstrip("\r") for one in lines]
    if bare[0] != _FENCE or _FENCE not in bare[1:]:
        return [], content
    end = bare.index(_FENCE, 1)
    return bare[1:end], "\n".join(lines[end + 1 :]).lstrip("\n")


def _memory(query: PageQuery) -> Mapping[str, MethodCall]:
    path = query["path"]
    return {
        "read": query.about("memory.read", path=path, optional=True),
        "why": query.about("memory.why", path=path, optional=path == INDEX),
        "history": query.about(
            "memory.history", path=path, limit=CHANGES, before=query.get("before")
        ),
        "usage": query.about("usage.list", paths=[path], optional=True),
        "surfaced": query.about("usage.recent", path=path, limit=20, optional=True),
    }


def _memory_diffs(query: PageQuery, answers: Answers) -> Mapping[str, MethodCall]:
    path = query["path"]
    ids = [change["id"] for change in answers["history"]["changes"] if change["id"]]
    return {
        f"diff {name}": query.about("memory.diff", change=name, path=path, optional=True)
        for name in ids[:_SHOWN_DIFFS]
    }


def _memory_page(query: PageQuery, answers: Answers) -> Context:
    read = answered(answers, "read")
    head, body = split(read["content"]) if read else ([], "")
    changes = []
    for change in answers["history"]["changes"]:
        files = answered(answers, f"diff {change['id']}", "files") or []
        shown = [shown_diff(file["path"], file["diff"]) for file in files]
        changes.append({**change_row(query, change), "diffs": shown})
    why = answered(answers, "why")
    writers = [(word, why and why[key]) for word, key in (("First", "first"), ("Last", "last"))]
    rows = answered(answers, "usage", "memories")
    return {
        "path": query["path"],
        "is_index": query["path"] == INDEX,
        "memory": read,
        "gone": None if read else answers["read"],
        "changed": query.at(read["mtime"]) if read else None,
        "head": head,
        "body": texts.cut(body, whole=bool(query.get("all"))),
        "editable": bool(read) and is_editable(read["content"]),
        "why": why,
        "writers": [
            (word, {**writer, "time": query.at(writer["at"])}) for word, writer in writers if writer
        ],
        "seen": query.at(((why or {}).get("surfaced") or {}).get("at")),
        "changes": changes,
        "older": changes[-1]["id"] if len(changes) == CHANGES else "",
        "usage": usage_row(query, rows[0]) if rows else None,
        "counted": rows is not None,
        "surfaced": surfacing_rows(query, answered(answers, "surfaced", "surfacings")),
        "problems": problems({n: a for n, a in answers.items() if n not in ("read", "why")}),
    }


def usage_row(query: PageQuery, row: Mapping[str, Any]) -> Context:
    """Return a memory's usage with its times for people."""
    times = ("last_surfaced", "last_read", "last_acted", "mtime")
    return {**row, **{f"{name}_at": query.at(row.get(name)) for name in times}}


def surfacing_rows(
    query: PageQuery, rows: Sequence[Mapping[str, Any]] | None
) -> list[Context] | None:
    """Return what was surfaced with its times for people, ``None`` where nobody counted."""
    return None if rows is None else [{**row, "time": query.at(row["at"])} for row in rows]


def is_editable(content: str) -> bool:
    """Whether a form brings a text back as it is: no character that a browser changes or hides."""
    ends = content.replace("\r\n", "")
    uniform = "\r" not in ends and not ("\r\n" in content and "\n" in ends)
    return uniform and texts.visible(content) == content


def _history(query: PageQuery) -> Mapping[str, MethodCall]:
    return {
        "history": query.about("memory.history", limit=CHANGES, before=query.get("before")),
    }


def _history_page(query: PageQuery, answers: Answers) -> Context:
    changes = [change_row(query, change) for change in answers["history"]["changes"]]
    return {
        "changes": changes,
        "older": changes[-1]["id"] if len(changes) == CHANGES else "",
        "first": not query.get("before"),
    }


def _change(query: PageQuery) -> Mapping[str, MethodCall]:
    known = written(query.get("at"))
    times = {"since": known, "until": known + 1} if known else {"limit": 1}
    return {
        "diff": query.about("memory.diff", change=query["change"]),
        "history": query.about("memory.history", **times, optional=True),
    }


def _change_page(query: PageQuery, answers: Answers) -> Context:
    whole = bool(query.get("all"))
    near = answered(answers, "history", "changes") or []
    facts = [change_row(query, each) for each in near if each["id"] == query["change"]]
    return {
        "change": query["change"],
        "at": query.get("at"),
        "facts": facts[0] if facts else None,
        "files": [
            shown_diff(file["path"], file["diff"], whole=whole) for file in answers["diff"]["files"]
        ],
        "together": query.one_of("view", "sides", "lines") == "lines",
    }


VIEWS = (
    PageView(
        "memory",
        "Memory",
        "memory",
        _memory,
        _memory_page,
        then=_memory_diffs,
        tab="project",
        topics=("memory.changed",),
    ),
    PageView(
        "history",
        "Changes",
        "history",
        _history,
        _history_page,
        tab="history",
        topics=("memory.changed",),
    ),
    PageView("change", "A change", "change", _change, _change_page, tab="history"),
)
