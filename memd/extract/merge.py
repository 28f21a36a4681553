"""What becomes of candidates beside the memories that are there: the plan of a change set. Pure.

Rules of this file (spec 4.6)
- A candidate that says what a memory of its type already says is nothing new.
- One about the same thing that says more, or the opposite, updates that memory: a short one is
  written anew, one that somebody worked on gets a dated paragraph and keeps every line.
- A damaged memory is never touched.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from memd.core import text
from memd.core.values import Draft, FileEdit, MemoryFile, MemoryType, Pointer, Tree
from memd.extract import cues
from memd.extract.candidates import Candidate
from memd.extract.wording import Worded, compose, update_note, word
from memd.state.words import words
from memd.store import document
from memd.store.document import FrontmatterNotEditableError
from memd.store.index import entries, with_pointer
from memd.store.names import INDEX

_NEAR = 0.5  # shared words of all words of two statements: the same thing said otherwise
_WITHIN = 0.75  # of the shorter one's words, when at least _SHARED are shared
_SHARED = 3
_KNOWN = 0.85  # of a candidate's words found in a memory: nothing new
_MAYBE = 0.25  # by the description alone: worth reading
_ELABORATE_CHARACTERS = 1200
_MOST_BYTES = 32 * 1024  # a memory above is not made longer
_ELABORATE = re.compile(r"^\s*(?:#|[-*+] |\d+\. |```)|^\*\*Update ", re.MULTILINE)
_WHY = re.compile(r"^\*\*Why:\*\*\s*(.+)$", re.MULTILINE)
_DATES = re.compile(r"\d{4}-\d\d(?:-\d\d)?|\d{4}-Q\d")
_DATED = re.compile(r"\((?:week of )?\d{4}-[^)]*\)")
_PIECE = re.compile(r"[^\s,.;:!?()]+")


@dataclass(frozen=True, slots=True)
class Merged:
    """A draft and what it does, as paths: new memories, and changed ones."""

    draft: Draft
    saved: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()


@dataclass(slots=True)
class _Known:
    """One memory as the plan goes on: ``base`` is its hash on disk, "" when it is new."""

    path: str
    type: MemoryType
    description: str
    content: bytes
    body: str
    base: str
    changed: bool = False


@dataclass(slots=True)
class _Work:
    """What the plan has decided so far."""

    tree: Tree
    session: str
    modified: str
    known: dict[str, _Known] = field(default_factory=dict)
    pointers: dict[str, Pointer] = field(default_factory=dict)
    hooks: dict[str, tuple[str, Worded]] = field(default_factory=dict)


def merge(
    candidates: Sequence[Candidate],
    tree: Tree,
    *,
    session: str,
    at: float,
) -> Merged:
    """Return the change set that brings candidates into a directory; ``at`` stamps the files.

    Raises what reading the tree raises.
    """
    work = _Work(tree, session, text.iso_time(at))
    for candidate in candidates:
        _take(candidate, work)
    changed = [item for item in work.known.values() if item.changed]
    edits = [FileEdit(item.path, item.content, base=item.base) for item in changed]
    index = _index_edit(work)
    return Merged(
        Draft((*edits, *([index] if index else [])), work.pointers),
        saved=tuple(item.path for item in changed if not item.base),
        updated=tuple(item.path for item in changed if item.base),
    )


def _take(candidate: Candidate, work: _Work) -> None:
    paths = [header.path for header in work.tree.headers()]
    worded = word(candidate, (*paths, *work.known))
    near = _nearest(worded, candidate, work)
    if near is None:
        _add(worded, work)
    elif not _says_already(worded, candidate, near):
        _update(worded, candidate, near, work)


def _add(worded: Worded, work: _Work) -> None:
    content = document.new(
        worded.name,
        worded.description,
        worded.type,
        worded.body,
        session=work.session,
        modified=work.modified,
    )
    work.known[worded.path] = _Known(
        worded.path, worded.type, worded.description, content, worded.body, "", changed=True
    )
    work.pointers[worded.path] = worded.pointer


def _update(worded: Worded, candidate: Candidate, near: _Known, work: _Work) -> None:
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
    work.known[near.path] = near


def _updated_body(worded: Worded, candidate: Candidate, near: _Known) -> str:
    elaborate = len(near.body) > _ELABORATE_CHARACTERS or _ELABORATE.search(near.body)
    if elaborate:
        return f"{near.body.rstrip()}\n\n{update_note(candidate, worded.statement)}\n"
    older = _WHY.search(near.body)
    same_side = _denies(worded.statement, candidate) == _denies(_first(near.body), candidate)
    return compose(candidate, worded.statement, older.group(1) if older and same_side else "")


def _head(near: _Known) -> bytes | None:
    """Return the bytes before the body, ``None`` when they cannot be told apart for certain."""
    body = near.body.encode("utf-8", "replace")
    if not near.content.endswith(body):
        return None
    return near.content[: len(near.content) - len(body)]


def _nearest(worded: Worded, candidate: Candidate, work: _Work) -> _Known | None:
    terms = _terms(worded.statement, candidate)
    best, score = None, 0.0
    for item in (*work.known.values(), *_on_disk(worded, terms, candidate, work)):
        if item.type is worded.type:
            likeness = max(
                _likeness(terms, _terms(item.description, candidate)),
                _likeness(terms, _terms(_first(item.body), candidate)),
            )
            if likeness > score:
                best, score = item, likeness
    return best if score >= _NEAR else None


def _on_disk(
    worded: Worded, terms: frozenset[str], candidate: Candidate, work: _Work
) -> Iterable[_Known]:
    for header in work.tree.headers():
        if header.type is not worded.type or header.damaged or header.path in work.known:
            continue
        if _likeness(terms, _terms(f"{header.description} {header.name}", candidate)) < _MAYBE:
            continue
        file = work.tree.read(header.path)
        if file is not None and file.content:
            yield _known(file, header.type)


def _known(file: MemoryFile, kind: MemoryType) -> _Known:
    header = file.header
    return _Known(header.path, kind, header.description, file.content, file.body, file.hash)


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return how much two statements are about the same thing, 0 to 1."""
    shared = len(one & other)
    if not shared:
        return 0.0
    if shared >= _SHARED and shared >= _WITHIN * min(len(one), len(other)):
        return max(_NEAR, shared / len(one | other))
    return shared / len(one | other)


def _says_already(worded: Worded, candidate: Candidate, near: _Known) -> bool:
    new = _terms(f"{worded.statement} {candidate.why}", candidate)
    old = _terms(f"{near.description} {near.body}", candidate)
    if len(new & old) < _KNOWN * len(new):
        return False
    said = f"{worded.statement} {candidate.why}"
    if not set(_DATES.findall(said)) <= set(_DATES.findall(near.body)):
        return False
    return _denies(worded.statement, candidate) == _denies(_first(near.body), candidate)


def _terms(said: str, candidate: Candidate) -> frozenset[str]:
    stop = cues.language(candidate.language).stop
    plain = _DATED.sub(" ", said)
    pieces = _PIECE.findall(plain)
    return frozenset(words(" ".join(piece for piece in pieces if piece.lower() not in stop)))


def _denies(said: str, candidate: Candidate) -> bool:
    return bool(cues.language(candidate.language).negations.search(said))


def _first(body: str) -> str:
    return body.strip().split("\n\n", 1)[0]


def _index_edit(work: _Work) -> FileEdit | None:
    """Return the index with new hooks for updated memories, where memd wrote the old hook."""
    before = work.tree.index() if work.hooks else None
    if before is None:
        return None
    content = before
    for entry in entries(before):
        found = work.hooks.get(entry.path)
        if found is not None and entry.hook and found[0].startswith(entry.hook.rstrip("…")):
            pointer = Pointer(entry.title, found[1].pointer.hook)
            content = with_pointer(content, entry.path, pointer)
    if content == before:
        return None
    return FileEdit(INDEX, content, base=text.sha256(before))
