"""The changes that a person can make from a page started with ``--write``.

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

from memd.base.errors import Invalid
from memd.base.names import TEAM
from memd.ui import texts
from memd.ui.link import MethodCall
from memd.ui.views import is_editable
from memd.ui.visit import Context, PageView, PageVisit

Fields = Mapping[str, str]  # the fields of a form that was sent


class Action(Struct, frozen=True):
    """A form: its path, its call, and the view after it with the values that the view gets."""

    path: str
    view: str
    call: Callable[[PageVisit, Fields], MethodCall]
    view_values: tuple[str, ...] = ("cwd",)

    def next_address(self, visit: PageVisit, result: Any) -> str:
        """Return the address of the page that follows."""
        change = result.get("change") if isinstance(result, dict) else ""
        values = {name: visit.get(name) for name in self.view_values}
        return texts.url(self.view, values, done=change or "yes")


def _base(form: Fields) -> dict[str, Any]:
    """Return the hash of the text that a form showed, and its request id. Raises Invalid."""
    if not (form.get("base_hash") and form.get("request_id")):
        raise Invalid("the form does not say which text it showed", hint="load its page again")
    return {name: form[name] for name in ("base_hash", "request_id")}


def _write(visit: PageVisit, form: Fields) -> MethodCall:
    """Return the call that writes a whole memory, with the line ends that it had."""
    path, content = visit["path"], form.get("content", "").replace("\r\n", "\n")
    if form.get("ends") == "crlf":
        content = content.replace("\n", "\r\n")
    scope = "team" if path.startswith(TEAM) else ""
    return visit.call("memory.write", path=path, content=content, scope=scope, **_base(form))


def _delete(visit: PageVisit, form: Fields) -> MethodCall:
    return visit.call("memory.delete", path=visit["path"], **_base(form))


def _undo(visit: PageVisit, form: Fields) -> MethodCall:
    request_id = form.get("request_id", "")
    return visit.call("memory.undo", change=visit["change"], request_id=request_id)


def _decide(visit: PageVisit, form: Fields) -> MethodCall:
    """Return the call that decides an item of the review, or one file of it."""
    params: dict[str, Any] = {name: visit[name] for name in ("id", "choice")}
    params |= {name: form.get(name, "") for name in ("text", "type", "reason")}
    paths = [visit["path"]] if visit.get("path") else None
    return visit.call("review.decide", paths=paths, **params)


ACTIONS = (
    Action("write", "memory", _write, ("cwd", "path")),
    Action("delete", "project", _delete),
    Action("undo", "project", _undo),
    Action("decide", "review", _decide),
)


async def _edit(visit: PageVisit) -> Context:
    """Return the memory, its line ends, and whether a form can change it."""
    memory = (await visit.ask(memory=visit.call("memory.read", path=visit["path"])))["memory"]
    return {
        "memory": memory,
        "ends": "crlf" if "\r\n" in memory["content"] else "lf",
        "editable": is_editable(memory["content"]),
        "request_id": secrets.token_hex(16),
    }


async def _confirm_undo(visit: PageVisit) -> Context:
    """Return what the undo would do."""
    plan = visit.call("memory.undo", change=visit["change"], dry_run=True)
    return {**await visit.ask(plan=plan), "request_id": secrets.token_hex(16)}


# Pages that lead to a change; they exist where the changes do.
FORMS = (
    PageView("edit", "Edit a memory", _edit),
    PageView("confirm-delete", "Delete a memory", _edit),
    PageView("confirm-undo", "Undo a change", _confirm_undo),
)
