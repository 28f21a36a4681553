"""What becomes of candidates beside the memories that are there: the plan of a change set. Pure.

Rules of this file
- What a memory of its type already says is nothing new; ``sameness`` is the judge.
- A restatement that says more and a correction update that memory: one in the form that memd
  writes is written anew, one that somebody worked on gets a dated paragraph and keeps every line.
- Everything else is a memory of its own.
- A damaged memory is never touched.
- The same candidates again change nothing: a stretch that a crash made run twice is harmless.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memd.core import text
from memd.core.names import INDEX
from memd.core.values import Draft, FileEdit, MemoryType, Pointer, Tree
from memd.core.yielding import yield_to_requests
from memd.documents import document
from memd.documents.document import FrontmatterNotEditableError
from memd.documents.index import entries, with_pointer
from memd.extract import cues
from memd.extract.candidates import Candidate
from memd.extract.inverted_index import InvertedIndex
from memd.extract.sameness import NOT_MARKED, ComparedStatement, Sameness, compare, said
from memd.extract.wording import Worded, compose, state, update_note, word

_OWN_CHARACTERS = 1200  # a longer body is not rewritten
# Of the words of a description or a statement, whichever has fewer: what a restatement and what a
# marked correction share at least.
_WORTH_READING = (0.75, 0.5)
_MOST_BYTES = 32 * 1024  # a memory above is not made longer
_ELABORATE = re.compile(r"^\s*(?:#|[-*+] |\d+\. |```)|^\*\*Update ", re.MULTILINE)
_OWN_PARAGRAPH = re.compile(
    r"\*\*(?:Why|How to apply):\*\* |Said by the user on \d|\u7528\u6237\u4e8e \d"
)
_UPDATE = re.compile(r"^\*\*Update \d{4}-\d\d-\d\d:\*\* (.+)$", re.MULTILINE)
_WHY = re.compile(r"^\*\*Why:\*\*\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MergedDraft:
    """A draft and what it does, as paths: new memories, and changed ones."""

    draft: Draft
    saved: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()


@dataclass(slots=True)
class _KnownMemory:
    """One memory as the plan goes on: ``base`` is its hash on disk, "" when it is new.

    One on disk has no ``content`` until it is met.
    """

    path: str
    type: MemoryType
    description: str
    content: bytes = b""
    body: str = ""
    base: str = ""
    changed: bool = False


@dataclass(slots=True)
class _Work:
    """What the plan has decided so far."""

    tree: Tree
    session: str
    modified: str
    taken: set[str] = field(default_factory=set)
    known: dict[str, _KnownMemory] = field(default_factory=dict)
    known_by_type: dict[MemoryType, InvertedIndex[str]] = field(
        default_factory=lambda: {kind: InvertedIndex() for kind in MemoryType}
    )
    pointers: dict[str, Pointer] = field(default_factory=dict)
    hooks: dict[str, tuple[str, Worded]] = field(default_factory=dict)


def merge(
    candidates: Sequence[Candidate],
    tree: Tree,
    *,
    session: str,
    at: float,
) -> MergedDraft:
    """Return the change set that brings candidates into a directory; ``at`` stamps the files.

    Raises what reading the tree raises.
    """
    work = _Work(tree, session, text.iso_time(at))
    request = frozenset[str]().union(*(said(state(item)).words for item in candidates))
    for header in tree.headers():
        work.taken.add(header.path.casefold())
        if header.type is not None and not header.damaged:
            known = _KnownMemory(header.path, header.type, header.description)
            work.known[header.path] = known
            described = said(header.description)
            # Most of a large directory shares no word with them and need not be sorted in.
            if described.words & request or not described.words:
                work.known_by_type[header.type].put(described, header.path)
    for candidate in candidates:
        yield_to_requests()
        _take(candidate, work)
    changed = [item for item in work.known.values() if item.changed]
    edits = [FileEdit(item.path, item.content, base=item.base) for item in changed]
    index = _index_edit(work)
    return MergedDraft(
        Draft((*edits, *([index] if index else [])), work.pointers),
        saved=tuple(item.path for item in changed if not item.base),
        updated=tuple(item.path for item in changed if item.base),
    )


def finish(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return candidates without those that a later one of the same run corrects or says again."""
    known_by_type: dict[MemoryType, InvertedIndex[int]] = {
        kind: InvertedIndex() for kind in MemoryType
    }
    retained: dict[int, Candidate] = {}
    stated: dict[int, ComparedStatement] = {}
    for number, candidate in enumerate(candidates):
        yield_to_requests()
        new, index = said(state(candidate)), known_by_type[candidate.type]
        verdicts = {
            other: compare(new, stated[other], candidate.change)
            for other in index.plausible(new)
            if other in retained
        }
        known = next((o for o, result in verdicts.items() if result is Sameness.NOTHING), None)
        if known is not None:
            if candidate.why and not retained[known].why:
                retained[known] = replace(retained[known], why=candidate.why)
            continue
        for other, result in verdicts.items():
            if result is Sameness.UPDATE:
                older = retained.pop(other)
                if not candidate.why and _same_side(new, stated[other]):
                    candidate = replace(candidate, why=older.why)  # noqa: PLW2901 - it grows
        retained[number] = candidate
        stated[number] = new
        index.put(new, number)
    return tuple(retained[number] for number in sorted(retained))


def _take(candidate: Candidate, work: _Work) -> None:
    new = said(state(candidate))
    near: _KnownMemory | None = None
    for path in work.known_by_type[candidate.type].plausible(new):
        item = _loaded(work.known[path], new, candidate, work)
        decision = _decision(new, candidate, item) if item else Sameness.ADD
        if decision is Sameness.NOTHING:
            return
        if decision is Sameness.UPDATE and near is None:
            near = item
    worded = word(candidate, work.taken)
    if near is None:
        _add(worded, work)
    else:
        _update(worded, candidate, near, work)
        work.known_by_type[near.type].put(new, near.path)


def _decision(new: ComparedStatement, candidate: Candidate, item: _KnownMemory) -> Sameness:
    """Return what becomes of a candidate; only what the body says may be replaced."""
    current = said(_current(item.body))
    decision = compare(new, current, candidate.change)
    described = compare(new, said(item.description), candidate.change)
    if decision is not Sameness.UPDATE and described is Sameness.NOTHING:
        decision = Sameness.NOTHING
    if decision is Sameness.NOTHING and candidate.why and new.words == current.words:
        reasoned = said(candidate.why).words <= said(item.body).words
        return Sameness.NOTHING if reasoned or not _own(item.body) else Sameness.UPDATE
    return decision


def _loaded(
    item: _KnownMemory, new: ComparedStatement, candidate: Candidate, work: _Work
) -> _KnownMemory | None:
    """Return a memory with its text, ``None`` when it is gone or speaks of something else."""
    if not item.content:
        described = said(item.description).words
        least = _WORTH_READING[candidate.change > NOT_MARKED]
        if len(described & new.words) < least * min(len(described), len(new.words)):
            return None
        file = work.tree.read(item.path)
        if file is None or not file.content:
            return None
        item.content, item.body, item.base = file.content, file.body, file.hash
    return item


def _add(worded: Worded, work: _Work) -> None:
    content = document.new(
        worded.name,
        worded.description,
        worded.type,
        worded.body,
        session=work.session,
        modified=work.modified,
    )
    work.taken.add(worded.path.casefold())
    work.known[worded.path] = _KnownMemory(
        worded.path, worded.type, worded.description, content, worded.body, changed=True
    )
    work.known_by_type[worded.type].put(said(worded.statement), worded.path)
    work.pointers[worded.path] = worded.pointer


def _update(worded: Worded, candidate: Candidate, near: _KnownMemory, work: _Work) -> None:
    body = _updated_body(worded, candidate, near)
    head = _head(near)
    if head is None or len(near.content) > _MOST_BYTES:
        return
    try:
        fields = {"description": worded.description, "metadata.modified": work.modified}
        fresh = document.with_fields(head, fields)
    except FrontmatterNotEditableError:
        return
    work.hooks.setdefault(near.path, (near.description, worded))
    if near.path in work.pointers:
        work.pointers[near.path] = replace(worded.pointer, title=work.pointers[near.path].title)
    near.content = fresh + body.encode("utf-8", "replace")
    near.body, near.description, near.changed = body, worded.description, True


def _updated_body(worded: Worded, candidate: Candidate, near: _KnownMemory) -> str:
    if not _own(near.body):
        return f"{near.body.rstrip()}\n\n{update_note(candidate, worded.statement)}\n"
    older = _WHY.search(near.body)
    same_side = _same_side(said(worded.statement), said(_current(near.body)))
    return compose(candidate, worded.statement, older.group(1) if older and same_side else "")


def _own(body: str) -> bool:
    """Return whether a body has the form that memd writes, so that nobody's work is in it."""
    if len(body) > _OWN_CHARACTERS or _ELABORATE.search(body):
        return False
    paragraphs = body.strip().split("\n\n")
    return len(paragraphs) == 1 or bool(_OWN_PARAGRAPH.match(paragraphs[-1]))


def _same_side(new: ComparedStatement, old: ComparedStatement) -> bool:
    """Return whether an older reason still speaks for a newer statement."""
    return new.denied & old.words == old.denied & new.words and old.words <= new.words


def _head(near: _KnownMemory) -> bytes | None:
    """Return the bytes before the body, ``None`` when they cannot be told apart for certain."""
    body = near.body.encode("utf-8", "replace")
    if not near.content.endswith(body):
        return None
    return near.content[: len(near.content) - len(body)]


def _current(body: str) -> str:
    """Return what a body says now: its latest dated paragraph, else its first one."""
    updates = _UPDATE.findall(body)
    if not updates:
        return body.strip().split("\n\n", 1)[0]
    latest = str(updates[-1])
    return latest.removesuffix(_note_end(latest))


def _note_end(note: str) -> str:
    return cues.of(note).wording["update"].split("{content}")[1]


def _index_edit(work: _Work) -> FileEdit | None:
    """Return the index with new hooks for updated memories, where memd wrote the old hook."""
    before = work.tree.index() if work.hooks else None
    if before is None:
        return None
    content = before
    for entry in entries(before):
        result = work.hooks.get(entry.path)
        if result is not None and entry.hook and result[0].startswith(entry.hook.rstrip("…")):
            pointer = Pointer(entry.title, result[1].pointer.hook)
            content = with_pointer(content, entry.path, pointer)
    if content == before:
        return None
    return FileEdit(INDEX, content, base=text.sha256(before))
