"""The views of sessions: what was surfaced, their notes, agents and messages. Pure."""

from collections.abc import Mapping

from memd.ui import texts
from memd.ui.link import MethodCall
from memd.ui.memory import surfacing_rows, usage_row
from memd.ui.views import Answers, Context, PageQuery, PageView, answered, problems

_ROWS = 100


def _usage(query: PageQuery) -> Mapping[str, MethodCall]:
    session, path = query.get("session"), query.get("path")
    recent = {"session_id": session, "path": path, "limit": _ROWS, "before": query.get("before")}
    order = query.one_of("order", "most", "least", "recent")
    page = {"limit": _ROWS, "after": query.get("after")}
    listed = {"order": order, "unused": bool(query.get("unused")) or None, **page}
    return {
        "recent": query.about("usage.recent", optional=True, **recent),
        "list": query.about("usage.list", optional=True, **listed),
    }


def _usage_page(query: PageQuery, answers: Answers) -> Context:
    rows = surfacing_rows(query, answered(answers, "recent", "surfacings"))
    memories = answered(answers, "list", "memories")
    return {
        "rows": rows,
        "older": rows[-1]["id"] if rows and len(rows) == _ROWS else "",
        "memories": None if memories is None else [usage_row(query, one) for one in memories],
        "next": answered(answers, "list", "next"),
        "since": query.at(answered(answers, "list", "since")),
        "order": query.one_of("order", "most", "least", "recent"),
        "unused": query.get("unused"),
        "session": query.get("session"),
        "problems": problems(answers),
    }


def _notes(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"notes": query.about("notes.list", limit=_ROWS)}


def _notes_page(query: PageQuery, answers: Answers) -> Context:
    rows = answers["notes"]["notes"]
    return {"notes": [{**row, "time": query.at(row["at"])} for row in rows]}


def _note(query: PageQuery) -> Mapping[str, MethodCall]:
    return {"read": query.about("notes.read", session_id=query["session"])}


def _note_page(query: PageQuery, answers: Answers) -> Context:
    read = answers["read"]
    text = texts.cut(read["content"], whole=bool(query.get("all")))
    return {"session": query["session"], "notes": read, "text": text}


def _agents(query: PageQuery) -> Mapping[str, MethodCall]:
    return {
        "agents": query.about("agent.list", optional=True),
        "messages": query.about(
            "message.log", limit=_ROWS, before=query.get("before"), optional=True
        ),
    }


def _agents_page(query: PageQuery, answers: Answers) -> Context:
    agents = answered(answers, "agents", "agents") or []
    messages = answered(answers, "messages", "messages") or []
    return {
        "agents": [{**one, "time": query.at(one["since"])} for one in agents],
        "messages": [
            {**one, "sender": one["from"], "time": query.at(one["sent_at"])} for one in messages
        ],
        "older": messages[-1]["id"] if len(messages) == _ROWS else "",
        "problems": problems(answers),
    }


VIEWS = (
    PageView("usage", "Use", "usage", _usage, _usage_page, tab="usage", topics=("memory.changed",)),
    PageView("notes", "Notes of sessions", "notes", _notes, _notes_page, tab="notes"),
    PageView("note", "Notes of a session", "note", _note, _note_page, tab="notes"),
    PageView(
        "agents",
        "Agents and messages",
        "agents",
        _agents,
        _agents_page,
        tab="agents",
        topics=("agent.changed", "message.pending", "message.ended"),
    ),
)
