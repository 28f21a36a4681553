"""The views of sessions: what was surfaced, their notes, agents and messages. Pure."""

from collections.abc import Mapping

from memd.ui import texts
from memd.ui.link import MethodCall
from memd.ui.views import Answers, Context, PageQuery, PageView, answered

_ROWS = 100
_ORDERS = ("most", "least", "recent")


def _usage(query: PageQuery) -> Mapping[str, MethodCall]:
    session, before = query.get("session"), query.number("before", 0, 10**9, 0) or None
    order, unused = query.one_of("order", *_ORDERS), bool(query.get("unused")) or None
    page = {"order": order, "unused": unused, "limit": _ROWS, "after": query.get("after")}
    surfaced = {"session_id": session, "limit": _ROWS, "before": before}
    return {
        "recent": query.perhaps("usage.recent", **surfaced),
        "listed": query.perhaps("usage.list", **page),
    }


def _usage_page(query: PageQuery, answers: Answers) -> Context:
    rows = answered(answers, "recent", "surfacings")
    return {
        "rows": rows,
        "older": rows[-1]["id"] if rows and len(rows) == _ROWS else "",
        "order": query.one_of("order", *_ORDERS),
        "unused": query.get("unused"),
        "session": query.get("session"),
    }


def _notes(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"listed": query.about("notes.list", limit=_ROWS)}


def _note(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"notes": query.about("notes.read", session_id=query["session"])}


def _note_page(query: PageQuery, answers: Answers) -> Context:
    return {"text": texts.cut(answers["notes"]["content"], whole=bool(query.get("all")))}


def _agents(query: PageQuery) -> Mapping[str, MethodCall]:
    page = {"limit": _ROWS, "before": query.get("before")}
    return {
        "known": query.perhaps("agent.list"),
        "log": query.perhaps("message.log", **page),
    }


def _agents_page(_: PageQuery, answers: Answers) -> Context:
    messages = answered(answers, "log", "messages") or []
    older = messages[-1]["id"] if len(messages) == _ROWS else ""
    return {"messages": messages, "older": older}


VIEWS = (
    PageView("usage", "Use", _usage, _usage_page, tab="usage", topics="memory.changed"),
    PageView("notes", "Notes of sessions", _notes, tab="notes"),
    PageView("note", "Notes of a session", _note, _note_page, tab="notes"),
    PageView(
        "agents",
        "Agents and messages",
        _agents,
        _agents_page,
        tab="agents",
        topics="agent.changed message.pending message.ended",
    ),
)
