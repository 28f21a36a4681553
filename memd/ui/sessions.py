"""The views of sessions: surfaced memories, notes, agents and messages. Pure."""

from memd.ui import texts
from memd.ui.views import ON_CHANGE, Answers, Calls, Context, PageQuery, PageView, result_or_none

_ROWS = 100  # the most rows of a list on one page
_ORDERS = ("most", "least", "recent")  # of the list of used memories; the first is the default


def _usage_calls(query: PageQuery) -> Calls:
    """Return the calls for the newest surfacings and for a page of the used memories."""
    order, after, session = (
        query.one_of("order", *_ORDERS),
        query.get("after"),
        query.get("session"),
    )
    unused = bool(query.get("unused")) or None  # a call leaves out what is None
    before = query.number("before", 0, 10**9, 0) or None
    page = {"order": order, "unused": unused, "limit": _ROWS, "after": after}
    surfaced = {"session_id": session, "limit": _ROWS, "before": before}
    recent = query.optional_call("usage.recent", **surfaced)
    return {"recent": recent, "listed": query.optional_call("usage.list", **page)}


def _usage_page(query: PageQuery, answers: Answers) -> Context:
    """Return the surfacings, the id before which older ones lie, and the address's values."""
    rows = result_or_none(answers, "recent", "surfacings")
    return {
        "rows": rows,
        "older": rows[-1]["id"] if rows and len(rows) == _ROWS else "",
        "order": query.one_of("order", *_ORDERS),
        "unused": query.get("unused"),
        "session": query.get("session"),
    }


def _notes_calls(query: PageQuery) -> Calls:
    return {"listed": query.project_call("notes.list", limit=_ROWS)}


def _note_calls(query: PageQuery) -> Calls:
    return {"notes": query.project_call("notes.read", session_id=query["session"])}


def _note_page(query: PageQuery, answers: Answers) -> Context:
    return {"text": texts.cut(answers["notes"]["content"], whole=bool(query.get("all")))}


def _agents_calls(query: PageQuery) -> Calls:
    log = query.optional_call("message.log", limit=_ROWS, before=query.get("before"))
    return {"known": query.optional_call("agent.list"), "log": log}


def _agents_page(_: PageQuery, answers: Answers) -> Context:
    """Return the messages, and the id before which older ones lie."""
    messages = result_or_none(answers, "log", "messages") or []
    older = messages[-1]["id"] if len(messages) == _ROWS else ""
    return {"messages": messages, "older": older}


_AGENT_TOPICS = "agent.changed message.pending message.ended"
VIEWS = (
    PageView("usage", "Use", _usage_calls, _usage_page, tab="usage", topics=ON_CHANGE),
    PageView("notes", "Notes of sessions", _notes_calls, tab="notes"),
    PageView("note", "Notes of a session", _note_calls, _note_page, tab="notes"),
    PageView(
        "agents",
        "Agents and messages",
        _agents_calls,
        _agents_page,
        tab="agents",
        topics=_AGENT_TOPICS,
    ),
)
