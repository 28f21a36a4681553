"""What a person may change from the page, where it was started with ``--write``. Pure.

Rules of this file
- What is meant stands in the address of a form, encoded; what the person wrote in its fields.
- What removes something is shown before, on a page of its own.
- A memory is written against the text that was shown: nothing newer is overwritten.
- Each form names its request, so that a click twice does a thing once.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memd.ui import texts
from memd.ui.link import MethodCall
from memd.ui.memory import is_editable
from memd.ui.views import Answers, Context, PageQuery, PageView, answered

Fields = Mapping[str, str]
_REQUEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Action:
    """A form: its path, the view that it belongs to, its call, and the page that follows."""

    path: str
    view: str
    call: Callable[[PageQuery, Fields], MethodCall]
    back: Callable[[PageQuery, Any], str]


def _project(query: PageQuery) -> dict[str, Any]:
    return {"cwd": query["cwd"]}


def _to(page: str, *names: str) -> Callable[[PageQuery, Any], str]:
    """Return what leads to a page about the same project, with some values of the address."""

    def back(query: PageQuery, result: Any) -> str:
        done = (result or {}).get("change") if isinstance(result, Mapping) else None
        given = {name: query.get(name) for name in names}
        return texts.url(page or ".", {"cwd": query["cwd"], **given, "done": done or "yes"})

    return back


def _calling(
    method: str, *names: str, fields: tuple[str, ...] = (), once: bool = False, **fixed: Any
) -> Callable[[PageQuery, Fields], MethodCall]:
    """Return what calls a method with values of the address and of a form's fields."""

    def call(query: PageQuery, form: Fields) -> MethodCall:
        params: dict[str, Any] = {name: query[name] for name in names}
        params |= {name: form[name] for name in fields if form.get(name)}
        if once:
            params["request_id"] = form.get("request_id") or secrets.token_hex(_REQUEST_BYTES)
        return query.about(method, **params, **fixed)

    return call


def _write(query: PageQuery, form: Fields) -> MethodCall:
    """Return the write of a whole memory, with the ends of lines that it had."""
    content = form.get("content", "").replace("\r\n", "\n")
    if form.get("ends") == "crlf":
        content = content.replace("\n", "\r\n")
    path = query["path"]
    scope = "team" if path.startswith("team/") else None
    return query.about(
        "memory.write",
        path=path,
        content=content,
        base_hash=form.get("base_hash", ""),
        request_id=form.get("request_id", ""),
        scope=scope,
    )


def _proposal(method: str) -> Callable[[PageQuery, Fields], MethodCall]:
    """Return what decides a proposal: the one file that is named, or all that are open."""

    def call(query: PageQuery, form: Fields) -> MethodCall:
        paths = [query.get("path")] if query.get("path") else None
        reason = form.get("reason") if method == "dream.reject" else None
        return query.about(method, proposal=query["proposal"], paths=paths, reason=reason or None)

    return call


ACTIONS = (
    Action("write", "memory", _write, _to("memory", "path")),
    Action(
        "delete",
        "memory",
        _calling("memory.delete", "path", fields=("base_hash",), once=True),
        _to("project"),
    ),
    Action("undo", "history", _calling("memory.undo", "change", once=True), _to("history")),
    Action(
        "restore",
        "memory",
        _calling("memory.restore", "path", "change", once=True),
        _to("memory", "path"),
    ),
    Action("adopt", "memory", _calling("memory.adopt", "path", once=True), _to("memory", "path")),
    Action(
        "take",
        "review",
        _calling("suggestion.accept", "suggestion", fields=("text", "type")),
        _to("review"),
    ),
    Action("dismiss", "review", _calling("suggestion.dismiss", "suggestion"), _to("review")),
    Action("accept", "review", _proposal("dream.accept"), _to("review")),
    Action("reject", "review", _proposal("dream.reject"), _to("review")),
    Action("rule-on", "rules", _calling("rule.add", "path", fields=("answer",)), _to("rules")),
    Action("rule-off", "rules", _calling("rule.off", "rule"), _to("rules")),
)


def _edit(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"read": query.about("memory.read", path=query["path"])}


def _edit_page(query: PageQuery, answers: Answers) -> Context:
    read = answers["read"]
    return {
        "memory": read,
        "at": query["path"],
        "ends": "crlf" if "\r\n" in read["content"] else "lf",
        "editable": is_editable(read["content"]),
        "request_id": secrets.token_hex(_REQUEST_BYTES),
    }


def _preview(method: str, *names: str) -> Callable[[PageQuery], Mapping[str, MethodCall]]:
    """Return the question what a method would do."""

    def questions(query: PageQuery) -> Mapping[str, MethodCall]:
        given = {name: query[name] for name in names}
        return {"plan": query.about(method, **given, dry_run=True, optional=True)}

    return questions


def _confirm_page(_: PageQuery, answers: Answers) -> Context:
    plan = answered(answers, "plan")
    return {
        "plan": plan,
        "refused": None if plan else answers["plan"],
        "request_id": secrets.token_hex(_REQUEST_BYTES),
    }


# Pages that lead to a change; they exist where the changes do.
FORMS = (
    PageView("edit", "Edit a memory", "edit", _edit, _edit_page, tab="project"),
    PageView(
        "confirm-delete", "Delete a memory", "confirm-delete", _edit, _edit_page, tab="project"
    ),
    PageView(
        "confirm-undo",
        "Undo a change",
        "confirm-undo",
        _preview("memory.undo", "change"),
        _confirm_page,
        tab="history",
    ),
    PageView(
        "confirm-restore",
        "Restore a version",
        "confirm-restore",
        _preview("memory.restore", "path", "change"),
        _confirm_page,
        tab="project",
    ),
)
