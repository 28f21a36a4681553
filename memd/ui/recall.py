"""The views of what a model gets: a prompt's memories with the reasons, and the index. Pure."""

from memd.core.names import INDEX
from memd.ui import texts
from memd.ui.link import MethodCall
from memd.ui.views import ON_CHANGE, Answers, Calls, Context, PageQuery, PageView, result_or_none

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


def _index_calls(query: PageQuery) -> Calls:
    read = query.optional_call("memory.read", path=INDEX)
    return {"listed": query.project_call("memory.list", limit=1), "read": read}


def _later_index_calls(query: PageQuery, answers: Answers) -> Calls:
    """Return the call for the system prompt's section, none if the project has no memories."""
    # Without a memory the call would make its directory, and a view must change nothing.
    has_memories = answers["listed"]["memories"] or answers["listed"]["index"]["bytes"]
    return {"loaded": query.optional_call("load_prompt")} if has_memories else {}


def _index_page(query: PageQuery, answers: Answers) -> Context:
    """Return the prompt, and the index in two parts: what the prompt has, and the rest."""
    loaded = result_or_none(answers, "loaded")
    prompt = (loaded or {}).get("prompt") or ""
    lines = (result_or_none(answers, "read", "content") or "").strip().split("\n")
    # The prompt has the index's first lines; the first that it lacks begins the rest.
    count = next((n for n, line in enumerate(lines) if line.rstrip() not in prompt), len(lines))
    return {
        "loaded": loaded,
        "prompt": texts.CutText(prompt),
        "facts": (loaded or answers["listed"])["index"],
        "index": texts.CutText("\n".join(lines[:count])),
        "unseen": texts.cut("\n".join(lines[count:]), whole=bool(query.get("all"))),
    }


VIEWS = (
    PageView("search", "Search", _search_calls, _search_page, tab="search"),
    PageView("index", "Index", _index_calls, _index_page, _later_index_calls, "index", ON_CHANGE),
)
