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

from memd.base.names import TEAM
from memd.ui import texts
from memd.ui.link import MethodCall
from memd.ui.memory import is_editable
from memd.ui.views import Answers, Calls, Context, PageQuery, PageView, result_or_none

Fields = Mapping[str, str]  # the fields of a form that was sent
FormCall = Callable[[PageQuery, Fields], MethodCall]
_REQUEST_BYTES = 16  # random bytes of a request id


class Action(Struct, frozen=True):
    """A form: its path, its call, and the view after it."""

    path: str
    view: str
    call: FormCall
    view_values: tuple[str, ...] = ("cwd",)  # the values of the address that the view gets

    def next_address(self, query: PageQuery, result: Any) -> str:
        """Return the address of the page that follows."""
        change = result.get("change") if isinstance(result, dict) else ""
        values = {name: query.get(name) for name in self.view_values}
        return texts.url(self.view, values, done=change or "yes")


def _form_call(
    method: str, *names: str, needs: tuple[str, ...] = (), optional: tuple[str, ...] = ()
) -> FormCall:
    """Return a function that makes a call from a page's address and a form's fields.

    The address must have ``names`` and the form ``needs``; either may have ``optional``.
    """

    def call(query: PageQuery, form: Fields) -> MethodCall:
        fields = PageQuery(form, query.now)
        params = {name: query[name] for name in names} | {name: fields[name] for name in needs}
        more = {name: fields.get(name) or query.get(name) for name in optional}
        return query.project_call(method, **params, **more)

    return call


def _write(query: PageQuery, form: Fields) -> MethodCall:
    """Return the call that writes a whole memory, with the line ends that it had."""
    content = form.get("content", "").replace("\r\n", "\n")
    if form.get("ends") == "crlf":
        content = content.replace("\n", "\r\n")
    scope = "team" if query["path"].startswith(TEAM) else ""
    base = _form_call("memory.write", "path", needs=_HASH_AND_REQUEST)(query, form)
    return query.project_call("memory.write", **base.params, content=content, scope=scope)


def _decide(query: PageQuery, form: Fields) -> MethodCall:
    """Return the call that decides an item of the review, or one file of it."""
    paths = [query.get("path")] if query.get("path") else None
    base = _form_call("review.decide", "id", "choice", optional=_WORDS)(query, form)
    return query.project_call("review.decide", **base.params, paths=paths)


_MEMORY = ("cwd", "path")  # the values that the view of a memory needs
_REQUEST = ("request_id",)
_HASH_AND_REQUEST = ("base_hash", "request_id")
_WORDS = ("text", "type", "reason")
ACTIONS = (
    Action("write", "memory", _write, _MEMORY),
    Action("delete", "project", _form_call("memory.delete", "path", needs=_HASH_AND_REQUEST)),
    Action("undo", "project", _form_call("memory.undo", "change", needs=_REQUEST)),
    Action("decide", "review", _decide),
)


def _edit_calls(query: PageQuery) -> Calls:
    return {"read": query.project_call("memory.read", path=query["path"])}


def _edit_page(_: PageQuery, answers: Answers) -> Context:
    """Return the memory, its line ends, and whether a form can change it."""
    read = answers["read"]
    return {
        "memory": read,
        "ends": "crlf" if "\r\n" in read["content"] else "lf",
        "editable": is_editable(read["content"]),
        "request_id": secrets.token_hex(_REQUEST_BYTES),
    }


def _undo_calls(query: PageQuery) -> Calls:
    """Return the dry run of the undo, whose failure is shown."""
    plan = query.optional_call("memory.undo", change=query["change"], dry_run=True)
    return {"plan": plan}


def _undo_page(_: PageQuery, answers: Answers) -> Context:
    """Return the result of the dry run, or why it failed."""
    plan = result_or_none(answers, "plan")
    return {
        "plan": plan,
        "refused": None if plan else answers["plan"],
        "problems": [],  # the refusal stands in the place of the plan
        "request_id": secrets.token_hex(_REQUEST_BYTES),
    }


# Pages that lead to a change; they exist where the changes do.
FORMS = (
    PageView("edit", "Edit a memory", _edit_calls, _edit_page, tab="project"),
    PageView("confirm-delete", "Delete a memory", _edit_calls, _edit_page, tab="project"),
    PageView("confirm-undo", "Undo a change", _undo_calls, _undo_page, tab="project"),
)
