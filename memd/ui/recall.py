"""The views of what a model gets: a prompt's memories with the reasons, and the index. Pure."""

from collections.abc import Mapping

from memd.core.names import INDEX
from memd.ui import texts
from memd.ui.link import MethodCall
from memd.ui.views import Answers, Context, PageQuery, PageView, answered

_SESSION = "memctl ui"  # nothing is marked in its name, and nothing of it is written
_DEADLINE_MS = 2_000
_HITS = 20


def _search(query: PageQuery) -> Mapping[str, MethodCall]:
    cwd, words = query["cwd"], query.get("q")
    if not words:
        return {}
    # The local ranker alone, so that the view makes no model call.
    local = {"strategy": "local", "deadline_ms": _DEADLINE_MS}
    session = query.get("session") or _SESSION
    options = {"query": words, "session_id": session, "explain": True, **local}
    return {
        "prefetch": MethodCall("prefetch", {"cwd": cwd, **options}),
        "search": query.about("memory.search", query=words, limit=_HITS),
    }


def _search_page(query: PageQuery, answers: Answers) -> Context:
    result = answered(answers, "prefetch") or {}
    explanation = result.get("explanation") or {}
    rows = explanation.get("rows", ())
    hits = {hit["path"]: hit for hit in answered(answers, "search", "hits") or ()}
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


def _index(query: PageQuery) -> Mapping[str, MethodCall]:
    return {
        "listed": query.about("memory.list", limit=1),
        "read": query.perhaps("memory.read", path=INDEX),
    }


def _prompt(query: PageQuery, answers: Answers) -> Mapping[str, MethodCall]:
    # Without a memory the call would make its directory, and a view must change nothing.
    has_memories = answers["listed"]["memories"] or answers["listed"]["index"]["bytes"]
    return {"loaded": query.perhaps("load_prompt")} if has_memories else {}


def _index_page(query: PageQuery, answers: Answers) -> Context:
    loaded = answered(answers, "loaded")
    prompt = (loaded or {}).get("prompt") or ""
    lines = (answered(answers, "read", "content") or "").strip().split("\n")
    seen = next((n for n, one in enumerate(lines) if one.rstrip() not in prompt), len(lines))
    unseen = texts.cut("\n".join(lines[seen:]), whole=bool(query.get("all")))
    return {
        "loaded": loaded,
        "prompt": texts.CutText(prompt),
        "facts": (loaded or answers["listed"])["index"],
        "index": texts.CutText("\n".join(lines[:seen])),
        "unseen": unseen,
    }


VIEWS = (
    PageView("search", "Search", _search, _search_page, tab="search"),
    PageView("index", "Index", _index, _index_page, _prompt, "index", "memory.changed"),
)
