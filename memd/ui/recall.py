"""The view of a search: a prompt's memories with the reasons. Pure."""

from memd.ui.link import MethodCall
from memd.ui.views import Answers, Calls, Context, PageQuery, PageView, result_or_none

_SESSION = "memctl ui"  # nothing is marked in its name, and nothing of it is written
_DEADLINE_MS = 2_000  # of the recall
_HITS = 20  # of the search


def _search_calls(query: PageQuery) -> Calls:
    """Return the calls that recall and search memories, none before words are given."""
    cwd, words = query["cwd"], query.get("q")
    if not words:
        return {}
    # The local ranker alone, so that the view makes no model call.
    local = {"strategy": "local", "deadline_ms": _DEADLINE_MS}
    session = query.get("session") or _SESSION
    options = {"query": words, "session_id": session, "explain": True, **local}
    search = query.project_call("memory.search", query=words, limit=_HITS)
    return {"prefetch": MethodCall("prefetch", {"cwd": cwd, **options}), "search": search}


def _search_page(query: PageQuery, answers: Answers) -> Context:
    """Return the recalled rows, the rows left out, and the hits that recall did not rank."""
    result = result_or_none(answers, "prefetch") or {}
    explanation = result.get("explanation") or {}
    rows = explanation.get("rows", ())
    hits = {hit["path"]: hit for hit in result_or_none(answers, "search", "hits") or ()}
    ranked = {row["path"] for row in rows}
    return {
        "q": query.get("q"),
        "session": query.get("session"),
        "brought": [row for row in rows if row["kept"]],
        "left": [row for row in rows if not row["kept"]],
        "hits": hits,
        "others": [hit for path, hit in hits.items() if path not in ranked],
        "best": max((abs(row["score"]) for row in rows), default=0) or 1,
        "explanation": explanation,
        "skipped": (result.get("skipped") or "").replace("_", " "),
        "note": result.get("note"),
    }


VIEWS = (PageView("search", "Search", _search_calls, _search_page, tab="search"),)
