"""What becomes of candidates beside the memories that are there: the plan of a change set. Pure.

Rules of this file
- What a memory already says is nothing new, whatever its type; ``sameness`` compares. One that came
  from outside gives no orders, so the person's words never go into it and count as new beside it.
- A restatement that says more and a correction update that memory: one in the form that memd
  writes is written anew, any other gets a dated paragraph and keeps every line.
- Everything else is a memory of its own. A damaged memory is never touched.
- The same candidates again change nothing: a stretch that a crash made run twice is harmless.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memd.core import text
from memd.core.names import INDEX
from memd.core.values import FOREIGN, Draft, FileEdit, Pointer, Tree
from memd.core.yielding import yield_to_requests
from memd.documents import document
from memd.documents.document import FrontmatterNotEditableError
from memd.documents.index import entries, with_pointer
from memd.extract.candidates import Candidate
from memd.extract.sameness import Sameness, compare, statement
from memd.extract.wording import WordedMemory, statement_of, word

_MOST_BYTES = 32 * 1024  # a memory above is not made longer
TOO_MANY = "too_many"  # of one stretch of a conversation
_MOST_AT_ONCE = 400  # a change set may have 500 files
_MOST_COMPARED = 8  # memories that share most words with a candidate
_OWN_BODY = re.compile(r'[^\n]+\n\n\*\*Said:\*\* "[^\n]*" \(\d{4}-\d\d-\d\d\)\n')
_UPDATE = re.compile(r"^\*\*Update \d{4}-\d\d-\d\d:\*\* (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MergedDraft:
    """A draft and what it does, as paths: new memories, and changed ones."""

    draft: Draft
    saved: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()


@dataclass(slots=True)
class _KnownMemory:
    """One memory as the plan goes on; ``base`` is its hash on disk, "" when it is new."""

    description: str
    content: bytes = b""
    body: str = ""
    base: str = ""
    changed: bool = False


@dataclass(slots=True)
class _Work:
    """What the plan has decided so far. ``described`` are the words of the descriptions."""

    tree: Tree
    session: str
    modified: str
    taken: set[str]
    described: dict[str, frozenset[str]]
    known: dict[str, _KnownMemory] = field(default_factory=dict)
    pointers: dict[str, Pointer] = field(default_factory=dict)
    hooks: dict[str, tuple[str, str]] = field(default_factory=dict)  # path: old, new description


def merge(candidates: Sequence[Candidate], tree: Tree, *, session: str, at: float) -> MergedDraft:
    """Return the change set that brings candidates into a directory; ``at`` stamps the files.

    Raises what reading the tree raises.
    """
    headers = tree.headers()
    work = _Work(
        tree,
        session,
        text.iso_time(at),
        {header.path.casefold() for header in headers},
        {
            header.path: statement(header.description).words
            for header in headers
            if header.type and not header.damaged and header.origin not in FOREIGN
        },
    )
    for candidate in candidates:
        yield_to_requests()
        _take(candidate, work)
    changed = {path: item for path, item in work.known.items() if item.changed}
    edits = [FileEdit(path, item.content, base=item.base) for path, item in changed.items()]
    index = _index_edit(work)
    return MergedDraft(
        Draft((*edits, *([index] if index else [])), work.pointers),
        saved=tuple(path for path, item in changed.items() if not item.base),
        updated=tuple(path for path, item in changed.items() if item.base),
    )


def finish(candidates: Sequence[Candidate]) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """Return candidates that no later one of the same run corrects or says again.

    Of more than a change set holds the newest are left; the others are returned as their reasons.
    """
    newest = candidates[-_MOST_AT_ONCE:]
    retained: dict[str, Candidate] = {}
    for candidate in newest:
        yield_to_requests()
        new = statement(statement_of(candidate))
        results = {key: compare(new, statement(key)) for key in retained}
        if Sameness.NOTHING in results.values():
            continue
        for key, result in results.items():
            if result is Sameness.UPDATE:
                del retained[key]
        retained[statement_of(candidate)] = candidate
    return tuple(retained.values()), (TOO_MANY,) * (len(candidates) - len(newest))


def _take(candidate: Candidate, work: _Work) -> None:
    new = statement(statement_of(candidate))
    near = ""
    for path in _nearest(new.words, work):
        item = _loaded(path, work)
        if item is None:
            continue
        results = {
            compare(new, statement(item.description)),
            compare(new, statement(_current(item.body))),
        }
        if Sameness.NOTHING in results:
            return
        if Sameness.UPDATE in results:
            near = near or path
    worded = word(candidate, work.taken)
    if near:
        _update(worded, near, candidate.at, work)
    else:
        _add(worded, work)


def _nearest(words: frozenset[str], work: _Work) -> list[str]:
    """Return the paths of the memories that are most alike by their words, the likeliest first."""
    alike = {
        path: len(words & own) / len(words | own)
        for path, own in work.described.items()
        if words & own
    }
    return sorted(alike, key=lambda path: (-alike[path], path))[:_MOST_COMPARED]


def _loaded(path: str, work: _Work) -> _KnownMemory | None:
    """Return a memory with its text, ``None`` when it is gone."""
    if path not in work.known:
        file = work.tree.read(path)
        if file is None or not file.content:
            return None
        work.known[path] = _KnownMemory(file.header.description, file.content, file.body, file.hash)
    return work.known[path]


def _add(worded: WordedMemory, work: _Work) -> None:
    content = document.new(
        worded.name,
        worded.description,
        worded.type,
        worded.body,
        session=work.session,
        modified=work.modified,
    )
    work.taken.add(worded.path.casefold())
    work.known[worded.path] = _KnownMemory(worded.description, content, worded.body, changed=True)
    work.described[worded.path] = statement(worded.statement).words
    work.pointers[worded.path] = worded.pointer


def _update(worded: WordedMemory, path: str, at: float, work: _Work) -> None:
    near = work.known[path]
    old = near.body.encode("utf-8", "replace")
    if len(near.content) > _MOST_BYTES or not near.content.endswith(old):
        return  # too long, or its head cannot be told from its body for certain
    if _OWN_BODY.fullmatch(near.body):
        body = worded.body
    else:
        note = f"**Update {text.iso_time(at)[:10]}:** {worded.statement}"
        body = f"{near.body.rstrip()}\n\n{note}\n\n{worded.quotation}\n"
    try:
        fields = {"description": worded.description, "metadata.modified": work.modified}
        head = document.with_fields(near.content[: len(near.content) - len(old)], fields)
    except FrontmatterNotEditableError:
        return
    work.hooks.setdefault(path, (near.description, worded.description))
    if path in work.pointers:
        work.pointers[path] = replace(worded.pointer, title=work.pointers[path].title)
    near.content = head + body.encode("utf-8", "replace")
    near.body, near.description, near.changed = body, worded.description, True
    work.described[path] = statement(worded.statement).words


def _current(body: str) -> str:
    """Return what a body says now: its latest dated paragraph, else its first one."""
    updates = _UPDATE.findall(body)
    return str(updates[-1]) if updates else body.strip().split("\n\n", 1)[0]


def _index_edit(work: _Work) -> FileEdit | None:
    """Return the index with new hooks for updated memories, where memd wrote the old hook."""
    before = work.tree.index() if work.hooks else None
    if before is None:
        return None
    content = before
    for entry in entries(before):
        old, new = work.hooks.get(entry.path, ("", ""))
        if new and entry.hook and old.startswith(entry.hook.rstrip("…")):
            content = with_pointer(content, entry.path, Pointer(entry.title, new))
    return None if content == before else FileEdit(INDEX, content, base=text.sha256(before))
