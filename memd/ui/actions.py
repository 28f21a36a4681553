"""The changes that a person can make from a page started with ``--write``. Pure.

Rules of this file
- A form's address names what is changed, encoded; its fields hold what the person wrote.
- A removal is shown first, on a page of its own.
- A memory is written against the text that was shown: nothing newer is overwritten.
- A form's request id makes one change of two clicks.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from memd.core.names import TEAM
from memd.ui import texts
from memd.ui.link import MethodCall
from memd.ui.memory import is_editable
from memd.ui.views import Answers, Context, PageQuery, PageView, answered

Fields = Mapping[str, str]
_REQUEST_BYTES = 16


class Action(Struct, frozen=True):
    """A form: its path, its call, and the view after it, which keeps ``takes`` of the address."""

    path: str
    view: str
    call: Callable[[PageQuery, Fields], MethodCall]
    takes: tuple[str, ...] = ("cwd",)

    def back(self, query: PageQuery, result: Any) -> str:
        """Return the address of the page that follows."""
        done = result.get("change") if isinstance(result, dict) else ""
        given = {name: query.get(name) for name in self.takes}
        return texts.url(self.view, given, done=done or "yes")


def _calling(
    method: str, *names: str, needs: tuple[str, ...] = (), may: tuple[str, ...] = ()
) -> Callable[[PageQuery, Fields], MethodCall]:
    """Return a function that makes a call from a page's address and a form's fields.

    The address must have ``names`` and the form ``needs``; either may have ``may``.
    """

    def call(query: PageQuery, form: Fields) -> MethodCall:
        fields = PageQuery(form, query.now)
        params = {name: query[name] for name in names} | {name: fields[name] for name in needs}
        return query.about(
            method, **params, **{name: fields.get(name) or query.get(name) for name in may}
        )

    return call


def _write(query: PageQuery, form: Fields) -> MethodCall:
    """Return the call that writes a whole memory, with the line ends that it had."""
    content = form.get("content", "").replace("\r\n", "\n")
    if form.get("ends") == "crlf":
        content = content.replace("\n", "\r\n")
    shared = "team" if query["path"].startswith(TEAM) else ""
    base = _calling("memory.write", "path", needs=("base_hash", "request_id"))(query, form)
    return query.about("memory.write", **base.params, content=content, scope=shared)


def _deciding(method: str, *may: str) -> Callable[[PageQuery, Fields], MethodCall]:
    """Return a function that makes the call to decide a proposal's one file, or all open ones."""

    def call(query: PageQuery, form: Fields) -> MethodCall:
        paths = [query.get("path")] if query.get("path") else None
        base = _calling(method, "proposal", may=may)(query, form)
        return query.about(method, **base.params, paths=paths)

    return call


_MEMORY = ("cwd", "path")
_ONCE = ("request_id",)
ACTIONS = (
    Action("write", "memory", _write, _MEMORY),
    Action(
        "delete", "project", _calling("memory.delete", "path", needs=("base_hash", "request_id"))
    ),
    Action("undo", "history", _calling("memory.undo", "change", needs=_ONCE)),
    Action("restore", "memory", _calling("memory.restore", "path", "change", needs=_ONCE), _MEMORY),
    Action("adopt", "memory", _calling("memory.adopt", "path"), _MEMORY),
    Action("take", "review", _calling("suggestion.accept", "suggestion", may=("text", "type"))),
    Action("dismiss", "review", _calling("suggestion.dismiss", "suggestion")),
    Action("accept", "review", _deciding("dream.accept")),
    Action("reject", "review", _deciding("dream.reject", "reason")),
    Action("rule-on", "rules", _calling("rule.add", "path", may=("answer", "check"))),
    Action("rule-off", "rules", _calling("rule.off", "rule")),
)


def _edit(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"read": query.about("memory.read", path=query["path"])}


def _edit_page(_: PageQuery, answers: Answers) -> Context:
    read = answers["read"]
    return {
        "memory": read,
        "ends": "crlf" if "\r\n" in read["content"] else "lf",
        "editable": is_editable(read["content"]),
        "request_id": secrets.token_hex(_REQUEST_BYTES),
    }


def _preview(method: str, *names: str) -> Callable[[PageQuery], Mapping[str, MethodCall]]:
    """Return a function that makes a dry run of a method, whose failure is shown."""

    def questions(query: PageQuery) -> Mapping[str, MethodCall]:
        given = {name: query[name] for name in names}
        return {"plan": query.perhaps(method, **given, dry_run=True)}

    return questions


def _confirm_page(_: PageQuery, answers: Answers) -> Context:
    plan = answered(answers, "plan")
    return {
        "plan": plan,
        "refused": None if plan else answers["plan"],
        "problems": [],  # the refusal stands in the place of the plan
        "request_id": secrets.token_hex(_REQUEST_BYTES),
    }


# Pages that lead to a change; they exist where the changes do.
FORMS = (
    PageView("edit", "Edit a memory", _edit, _edit_page, tab="project"),
    PageView("confirm-delete", "Delete a memory", _edit, _edit_page, tab="project"),
    PageView(
        "confirm-undo",
        "Undo a change",
        _preview("memory.undo", "change"),
        _confirm_page,
        tab="history",
    ),
    PageView(
        "confirm-restore",
        "Restore a version",
        _preview("memory.restore", "path", "change"),
        _confirm_page,
        tab="project",
    ),
)
