"""The view of one memory with its history. Pure."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from memd.base.names import INDEX
from memd.ui import diffs, texts
from memd.ui.views import Answers, Calls, Context, PageQuery, PageView, result_or_none

CHANGES = 50  # the most rows of a history on one page
_SHOWN_DIFFS = 5  # of a memory's newest changes
_FENCE = "---"  # the line around a memory's frontmatter


class ShownDiff(Struct, frozen=True):
    """One file's diff; ``left`` is the number of rows that are not shown."""

    path: str
    lines: Sequence[diffs.DiffLine]
    left: int


def shown_diff(file: Mapping[str, Any], *, whole: bool = False) -> ShownDiff:
    """Return a file's diff as rows, the first ``diffs.ROWS`` unless ``whole``."""
    rows = diffs.lines(file["diff"])
    shown = rows if whole else rows[: diffs.ROWS]
    return ShownDiff(file["path"], shown, len(rows) - len(shown))


def history_page(_: PageQuery, answers: Answers) -> Context:
    """Return a page of the history; ``older`` is its last change's id, or "" if none follows."""
    rows = answers["history"]["changes"]
    return {"changes": rows, "older": rows[-1]["id"] if len(rows) == CHANGES else ""}


def split(content: str) -> tuple[list[str], str]:
    """Return the lines of a memory's frontmatter, none if it has none, and its text."""
    lines = content.split("\n")
    bare = [line.rstrip("\r") for line in lines]
    if bare[0] != _FENCE or _FENCE not in bare[1:]:
        return [], content
    end = bare.index(_FENCE, 1)
    return bare[1:end], "\n".join(lines[end + 1 :]).lstrip("\n")


def is_editable(content: str) -> bool:
    """Return whether a form sends a text back unchanged: browsers change or hide none of it."""
    without_crlf = content.replace("\r\n", "")
    mixed = "\r\n" in content and "\n" in without_crlf
    has_uniform_ends = "\r" not in without_crlf and not mixed
    return has_uniform_ends and texts.visible(content) == content


def _memory_calls(query: PageQuery) -> Calls:
    """Return the calls for a memory's text, origin and history."""
    path, before = query["path"], query.get("before")
    # The index has no origin, so this call fails for it.
    origin_call = query.optional_call if path == INDEX else query.project_call
    return {
        "memory": query.optional_call("memory.read", path=path),
        "why": origin_call("memory.why", path=path),
        "history": query.project_call("memory.history", path=path, limit=CHANGES, before=before),
    }


def _later_memory_calls(query: PageQuery, answers: Answers) -> Calls:
    """Return the calls for the diffs of the memory's newest changes, by the ids of the changes."""
    ids = [change["id"] for change in answers["history"]["changes"] if change["id"]]
    diff = partial(query.optional_call, "memory.diff", path=query["path"])
    return {change_id: diff(change=change_id) for change_id in ids[:_SHOWN_DIFFS]}


def _memory_page(query: PageQuery, answers: Answers) -> Context:
    """Return the memory's parts, its writers, and its history with diffs."""
    content = result_or_none(answers, "memory", "content") or ""
    head, body = split(content)
    page, whole = history_page(query, answers), bool(query.get("all"))
    ids = [change["id"] for change in page["changes"]]
    diffed_files = {name: result_or_none(answers, name, "files") or () for name in ids}
    why = result_or_none(answers, "why") or {}
    return {
        **page,
        "is_index": query["path"] == INDEX,
        "gone": "" if content else getattr(answers["memory"], "sentence", ""),
        "head": head,
        "body": texts.cut(body, whole=whole),
        "editable": is_editable(content),
        "writers": [(name.capitalize(), why[name]) for name in ("first", "last") if why.get(name)],
        "diffs": {
            name: [shown_diff(file, whole=whole) for file in files]
            for name, files in diffed_files.items()
        },
    }


VIEWS = (PageView("memory", "Memory", _memory_calls, _memory_page, _later_memory_calls, "project"),)
