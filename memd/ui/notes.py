"""The views of the notes of sessions. Pure."""

from memd.ui import texts
from memd.ui.views import Answers, Calls, Context, PageQuery, PageView

_ROWS = 100  # the most rows of the list


def _notes_calls(query: PageQuery) -> Calls:
    return {"listed": query.project_call("notes.list", limit=_ROWS)}


def _note_calls(query: PageQuery) -> Calls:
    return {"notes": query.project_call("notes.read", session_id=query["session"])}


def _note_page(query: PageQuery, answers: Answers) -> Context:
    return {"text": texts.cut(answers["notes"]["content"], whole=bool(query.get("all")))}


VIEWS = (
    PageView("notes", "Notes of sessions", _notes_calls, tab="notes"),
    PageView("note", "Notes of a session", _note_calls, _note_page, tab="notes"),
)
