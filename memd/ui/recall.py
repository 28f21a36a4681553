"""The views of what a model gets: a prompt's memories with the reasons, and the index. Pure."""

from collections.abc import Mapping

from memd.core.names import INDEX
from memd.ui import texts
from memd.ui.link import MethodCall
from memd.ui.views import Answers, Context, PageQuery, PageView, answered, problems

_SESSION = "memctl-ui"  # nothing is marked in its name, and nothing of it is written
_DEADLINE_MS = 5_000
_HITS = 20


def _search(query: PageQuery) -> Mapping[str, MethodCall]:
    words = query.get("q")
    if not words:
        return {}
    # The local ranker alone: a look costs no model.
    return {
        "prefetch": query.about(
            "prefetch",
            query=words,
            session_id=query.get("session") or _SESSION,
            strategy="local",
            deadline_ms=_DEADLINE_MS,
            explain=True,
        ),
        "search": query.about("memory.search", query=words, limit=_HITS),
    }


def _search_page(query: PageQuery, answers: Answers) -> Context:
    result = answered(answers, "prefetch") or {}
    explanation = result.get("explanation") or {}
    hits = answered(answers, "search", "hits") or []
    snippets = {hit["path"]: hit for hit in hits}
    rows = [
        {
            **row,
            "seen": query.at(row["last_surfaced"]),
            "hit": snippets.get(row["path"]),
            "parts": sorted(row["parts"].items(), key=lambda part: -abs(part[1])),
        }
        for row in explanation.get("rows", ())
    ]
    ranked = {row["path"] for row in rows}
    return {
        "q": query.get("q"),
        "session": query.get("session"),
        "brought": [row for row in rows if row["kept"]],
        "left": [row for row in rows if not row["kept"]],
        "others": [hit for hit in hits if hit["path"] not in ranked],
        "best": max((abs(row["score"]) for row in rows), default=0) or 1,
        "explanation": explanation,
        "skipped": (result.get("skipped") or "").replace("_", " "),
        "note": result.get("note"),
        "problems": problems(answers),
    }


def _index(query: PageQuery) -> Mapping[str, MethodCall]:
    return {
        "list": query.about("memory.list", limit=1),
        "read": query.about("memory.read", path=INDEX, optional=True),
    }


def _prompt(query: PageQuery, answers: Answers) -> Mapping[str, MethodCall]:
    # Where there is no memory yet, asking would make its directory: a look changes nothing.
    some = answers["list"]["memories"] or answers["list"]["index"]["bytes"]
    return {"prompt": query.about("load_prompt", optional=True)} if some else {}


def _index_page(query: PageQuery, answers: Answers) -> Context:
    loaded = answered(answers, "prompt")
    prompt = (loaded or {}).get("prompt") or ""
    index = (answered(answers, "read", "content") or "").strip()
    seen, unseen = _cut(prompt, index)
    return {
        "loaded": loaded,
        "prompt": texts.cut(prompt, whole=True),
        "facts": (loaded or answers["list"])["index"],
        "index": texts.cut(seen, whole=bool(query.get("all"))),
        "unseen": texts.cut(unseen, whole=bool(query.get("all"))),
        "problems": problems({name: one for name, one in answers.items() if name != "read"}),
    }


def _cut(prompt: str, index: str) -> tuple[str, str]:
    """Return the lines of the index that a prompt has, and those behind its cut."""
    lines = index.split("\n")
    shown = next((n for n, one in enumerate(lines) if one.rstrip() not in prompt), len(lines))
    return "\n".join(lines[:shown]), "\n".join(lines[shown:])


VIEWS = (
    PageView("search", "Search", "search", _search, _search_page, tab="search"),
    PageView(
        "index",
        "Index",
        "index",
        _index,
        _index_page,
        then=_prompt,
        tab="index",
        topics=("memory.changed",),
    ),
)
