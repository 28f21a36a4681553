"""The nine views: what each asks the daemon, and the values for its template.

Looking changes nothing: a view calls methods that read, and a search says that nobody gets what it
finds.
"""

from collections.abc import Mapping
from typing import Any

from memd.base.names import INDEX
from memd.base.values import MemoryType
from memd.ui import texts
from memd.ui.link import MethodCall
from memd.ui.visit import Context, PageView, PageVisit

PAGE = 100  # the most rows of a list
CHANGES = 20  # of a history on one page, each with its diff
TYPES = (*MemoryType, "none")  # the filters of the list; "none" is for memories without a type
_PROJECTS = 100  # whose memories are counted
_HITS = 50  # of a search by words
_JOBS = 200  # the newest jobs, among which are the dreams
_SEARCH_MS = 2_000  # for the recall
# The lists in a dream's result whose lengths are shown.
_COUNTS = ("created", "changed", "merged", "removed", "left", "listed")


async def _projects(visit: PageVisit) -> Context:
    """Return the projects with the number of their memories, and what waits there."""
    status = MethodCall("status", {})
    waiting = MethodCall("review.list", {}, optional=True)
    answers = await visit.ask(status=status, waiting=waiting)
    folders = {cwd: directory for directory, cwd in answers["status"]["folders"].items()}
    if visit.here not in folders:
        folders = {visit.here: "", **folders}
    counting = {
        cwd: MethodCall("memory.list", {"cwd": cwd, "limit": 1}, optional=True)
        for cwd in list(folders)[:_PROJECTS]
    }
    listed = await visit.ask(**counting)
    items = [item["project"] for item in (answers["waiting"] or {"items": ()})["items"]]
    rows = [
        {
            "cwd": cwd,
            "memories": listed[cwd]["count"] if listed.get(cwd) else None,
            "waiting": items.count(cwd),
            "team": directory in answers["status"]["teams"],
        }
        for cwd, directory in folders.items()
    ]
    # A call fails where memory is off, and the page may be started outside of any project.
    visit.problems.clear()
    return {
        "status": answers["status"],
        "projects": [row for row in rows if folders[row["cwd"]] or row["memories"]],
    }


async def _memories(visit: PageVisit) -> Context:
    """Return a page of the project's memories, filtered by words and type."""
    words, kind = visit.get("q"), visit.one_of("type", "", *TYPES)
    call = visit.call(
        "memory.list", limit=PAGE, after=visit.get("after"), contains=words, type=kind
    )
    return {**await visit.ask(listed=call), "types": TYPES, "q": words, "type": kind}


async def _memory(visit: PageVisit) -> Context:
    """Return a memory's text, where it comes from, and its history with diffs."""
    path, whole = visit["path"], bool(visit.get("all"))
    before = visit.get("before")
    answers = await visit.ask(
        memory=visit.call("memory.read", path=path, optional=True),
        why=visit.call("memory.why", path=path, optional=path == INDEX),  # which has no origin
        history=visit.call("memory.history", path=path, limit=CHANGES, before=before),
    )
    changes, why = answers["history"]["changes"], answers["why"] or {}
    ids = [change["id"] for change in changes if change["id"]]
    diffs = await visit.ask(
        **{each: visit.call("memory.diff", path=path, change=each, optional=True) for each in ids}
    )
    content = (answers["memory"] or {}).get("content", "")
    return {
        **answers,
        "changes": changes,
        "older": changes[-1]["id"] if len(changes) == CHANGES else "",
        "diffs": {
            each: [texts.shown_diff(file, whole=whole) for file in (diff or {"files": ()})["files"]]
            for each, diff in diffs.items()
        },
        "is_index": path == INDEX,
        "content": content,
        "body": texts.cut(body_of(content), whole=whole),
        "editable": is_editable(content),
        "writers": _writers(why),
    }


def _writers(why: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return who wrote a memory first and last, once where that is one change."""
    first, last = why.get("first"), why.get("last")
    if first and last and first["change"] == last["change"]:
        return [("Written", first)]
    return [(word, each) for word, each in (("First", first), ("Last", last)) if each]


def body_of(content: str) -> str:
    """Return a memory's text without its frontmatter."""
    lines = content.split("\n")
    bare = [line.rstrip("\r") for line in lines]
    if bare[0] != "---" or "---" not in bare[1:]:
        return content
    return "\n".join(lines[bare.index("---", 1) + 1 :]).lstrip("\n")


def is_editable(content: str) -> bool:
    """Return whether a form sends a text back unchanged: browsers change or hide none of it."""
    without_crlf = content.replace("\r\n", "")
    mixed = "\r\n" in content and "\n" in without_crlf
    return "\r" not in without_crlf and not mixed and texts.visible(content) == content


async def _search(visit: PageVisit) -> Context:
    """Return the memories that a prompt would bring, those left out with the reason, and hits."""
    words = visit.get("q")
    if not words:
        await visit.ask()
        return {"q": ""}
    # The local ranker alone, so that the view makes no model call. Nothing is marked in the name
    # of the session, and nothing of it is written.
    local: dict[str, Any] = {"strategy": "local", "deadline_ms": _SEARCH_MS, "explain": True}
    answers = await visit.ask(
        result=visit.call("prefetch", query=words, session_id="memctl ui", **local),
        found=visit.call("memory.search", query=words, limit=_HITS, optional=True),
    )
    result = answers["result"]
    explanation = result.get("explanation") or {}
    rows = explanation.get("rows", ())
    hits = {hit["path"]: hit for hit in (answers["found"] or {"hits": ()})["hits"]}
    ranked = {row["path"] for row in rows}
    return {
        "q": words,
        "brought": [row for row in rows if row["kept"]],
        "left": [row for row in rows if not row["kept"]],
        "hits": hits,
        "others": [hit for path, hit in hits.items() if path not in ranked],
        "best": max((abs(row["score"]) for row in rows), default=0) or 1,
        "explanation": explanation,
        "skipped": (result.get("skipped") or "").replace("_", " "),
        "note": result.get("note"),
    }


async def _review(visit: PageVisit) -> Context:
    """Return the items that wait, here or in every project, each with the diffs of its files."""
    whole = bool(visit.get("all"))
    call = visit.call("review.list") if visit.project else MethodCall("review.list", {})
    items = (await visit.ask(review=call))["review"]["items"]
    shown = [
        (item, [(file, texts.shown_diff(file, whole=whole)) for file in item["files"]])
        for item in items
    ]
    return {"items": shown, "types": tuple(MemoryType)}


async def _dreams(visit: PageVisit) -> Context:
    """Return the state of dreaming, the changes by dreams, and dreams that changed nothing."""
    before = visit.get("before")
    answers = await visit.ask(
        status=visit.call("dream.status"),
        jobs=visit.call("job.list", limit=_JOBS),
        history=visit.call("memory.history", actor="dream", limit=CHANGES, before=before),
    )
    jobs = [job for job in answers["jobs"]["jobs"] if job["kind"] == "dream"]
    changes = answers["history"]["changes"]
    return {
        "status": answers["status"],
        "changes": changes,
        "older": changes[-1]["id"] if len(changes) == CHANGES else "",
        "reports": {(job["result"] or {}).get("change"): _dream_report(job) for job in jobs},
        "without": [_dream_report(job) for job in jobs if not (job["result"] or {}).get("change")],
    }


def _dream_report(job: Mapping[str, Any]) -> Context:
    """Return a dream job's facts for the template, empty where its result lacks them."""
    result = job["result"] or {}
    names = ("engine", "dollars", "proposal", "before", "after", "said")
    return {
        **{name: result.get(name) for name in names},
        "state": job["state"],
        "ended": job["ended"] or job["created"],
        "error": (job["error"] or {}).get("message", ""),
        "counts": [(name, len(result[name])) for name in _COUNTS if result.get(name)],
    }


async def _notes(visit: PageVisit) -> Context:
    """Return the notes of the session that the address names, or the list of all."""
    session = visit.get("session")
    if not session:
        return {**await visit.ask(listed=visit.call("notes.list", limit=PAGE)), "notes": None}
    notes = (await visit.ask(notes=visit.call("notes.read", session_id=session)))["notes"]
    return {"notes": notes, "body": texts.cut(notes["content"], whole=bool(visit.get("all")))}


async def _report(visit: PageVisit) -> Context:
    """Return the report of some days, a week unless the address says another number."""
    days = visit.number("days", 1, 365, 7)
    where = {"cwd": visit["cwd"]} if visit.project else {}
    return {**await visit.ask(report=MethodCall("report", {"days": days, **where})), "days": days}


async def _health(visit: PageVisit) -> Context:
    """Return the checks: the failed ones first, then the warnings, then the others."""
    answers = await visit.ask(
        doctor=MethodCall("doctor", {"cwd": visit["cwd"]} if visit.project else {}),
        status=MethodCall("status", {}),
        listed=MethodCall("job.list", {"limit": 20}, optional=True),
    )
    ranks = {"failed": 0, "warning": 1}
    checks = sorted(answers["doctor"]["checks"], key=lambda each: ranks.get(each["state"], 2))
    return {**answers, "checks": checks}


VIEWS: Mapping[str, PageView] = {
    view.path: view
    for view in (
        PageView("", "Projects", _projects),
        PageView("project", "Memories", _memories),
        PageView("memory", "Memory", _memory),
        PageView("search", "Search", _search),
        PageView("review", "Review", _review),
        PageView("dreams", "Dreams", _dreams),
        PageView("notes", "Notes of sessions", _notes),
        PageView("report", "Report", _report),
        PageView("health", "Health", _health),
    )
}
